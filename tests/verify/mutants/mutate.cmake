# cmake -DTABLE=mutants.json -DINDEX=n -DINPUT=<kernel file> -DOUTPUT=<copy> -P mutate.cmake
# Copies a kernel file with the table's text replaced. The text must be there exactly once.
cmake_minimum_required(VERSION 3.25)
file(READ "${TABLE}" table)
string(JSON name GET "${table}" mutants ${INDEX} name)
string(JSON find GET "${table}" mutants ${INDEX} find)
string(JSON replace GET "${table}" mutants ${INDEX} replace)
file(READ "${INPUT}" text)
string(LENGTH "${text}" before)
string(REPLACE "${find}" "" without "${text}")
string(LENGTH "${without}" after)
string(LENGTH "${find}" length)
math(EXPR times "(${before} - ${after}) / ${length}")
if(NOT times EQUAL 1)
  message(FATAL_ERROR "mutant ${name}: its text is ${times} times in ${INPUT}, expected once; "
                      "update tests/verify/mutants/mutants.json")
endif()
string(REPLACE "${find}" "${replace}" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
