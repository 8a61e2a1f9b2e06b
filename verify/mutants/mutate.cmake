# cmake -DTABLE=<table file> -DINDEX=n -DINPUT=<file of kernels/> -DFOLDER=<of all copies> -DOUTPUT=<copy> -P mutate.cmake
# Copies a file with a row's text replaced. The text must be there exactly once.
cmake_minimum_required(VERSION 3.25)
file(READ "${TABLE}" table)
foreach(key id find with)
  string(JSON ${key} GET "${table}" mutants ${INDEX} ${key})
endforeach()
file(READ "${INPUT}" text)
string(LENGTH "${text}" before)
string(REPLACE "${find}" "" without "${text}")
string(LENGTH "${without}" after)
string(LENGTH "${find}" length)
math(EXPR times "(${before} - ${after}) / ${length}")
if(NOT times EQUAL 1)
  message(FATAL_ERROR "mutant ${id}: its text is ${times} times in ${INPUT}, expected once; "
                      "update ${TABLE}:\n${find}")
endif()
string(REPLACE "${find}" "${with}" text "${text}")
# A copy of another file, from when the row named that one, would still shadow it.
file(GLOB_RECURSE copies "${FOLDER}/indexpool/*.cuh" "${FOLDER}/indexpool/*.hpp" "${FOLDER}/indexpool/*.cpp")
list(REMOVE_ITEM copies "${OUTPUT}")
if(copies)
  file(REMOVE ${copies})
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "${text}" @ONLY)  # leaves an equal file alone
file(TOUCH "${OUTPUT}.stamp")
