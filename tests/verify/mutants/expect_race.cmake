# cmake -DPROBE=... -DID=<mutant> -DTABLE=<its file> -DINDEX=n -DFILE=<mutated file>
#       -P expect_race.cmake
# The sanitizer's report must name the line of the mutated file that holds the table's race_at.
cmake_minimum_required(VERSION 3.25)
file(READ "${TABLE}" table)
string(JSON race_at GET "${table}" mutants ${INDEX} race_at)
file(READ "${FILE}" text)
string(FIND "${text}" "${race_at}" at)
if(at LESS 0)
  message(FATAL_ERROR "${FILE} does not hold \"${race_at}\"")
endif()
string(SUBSTRING "${text}" 0 ${at} before)
string(REGEX REPLACE "[^\n]" "" newlines "${before}")
string(LENGTH "${newlines}" line)
math(EXPR line "${line} + 1")
cmake_path(GET FILE FILENAME name)

execute_process(COMMAND ${CMAKE_COMMAND} -E env "TSAN_OPTIONS=exitcode=66" ${PROBE} ${ID}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE report)
if(NOT report MATCHES "ThreadSanitizer: data race")
  message(FATAL_ERROR "no data race reported (exit code ${result}):\n${output}${report}")
endif()
if(NOT report MATCHES "${name}:${line}[^0-9]")
  message(FATAL_ERROR "a data race, but none at ${name}:${line}:\n${report}")
endif()
message(STATUS "data race reported at ${name}:${line}")
