# cmake -DPROGRAM=indexpool -DPYTHON=python3 -DEXAMPLE=x.py -DNEEDS="numpy" -DEXPORT="--lengths 9"
#       -DCHECK="--tail fixed" -DFOLDER=... -P run_example.cmake
# Exports cases, runs a Python kernel on them, and expects that its outputs are certified.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${PYTHON} -c "import ${NEEDS}" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(missing)
  message(STATUS "SKIPPED: ${PYTHON} can't import ${NEEDS}")
  return()
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  message(STATUS "${text}")
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "exit code ${code}: ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
separate_arguments(export UNIX_COMMAND "${EXPORT}")
separate_arguments(check UNIX_COMMAND "${CHECK}")
run(${PROGRAM} export ${export} --out "${FOLDER}")
run(${PYTHON} "${EXAMPLE}" "${FOLDER}")
run(${PROGRAM} check "${FOLDER}" ${check})
