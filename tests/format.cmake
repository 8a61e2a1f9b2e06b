# cmake -DROOT=<source folder> -DCLANG_FORMAT=<program> -P format.cmake
cmake_minimum_required(VERSION 3.25)
set(files "")
foreach(layer model reference sim kernels verify reports tests)
  file(GLOB_RECURSE found "${ROOT}/${layer}/*.hpp" "${ROOT}/${layer}/*.cpp" "${ROOT}/${layer}/*.cuh"
       "${ROOT}/${layer}/*.cu" "${ROOT}/${layer}/*.h")
  list(APPEND files ${found})
endforeach()
execute_process(COMMAND ${CLANG_FORMAT} --dry-run --Werror ${files} RESULT_VARIABLE code
                ERROR_VARIABLE out)
if(NOT code EQUAL 0)
  string(SUBSTRING "${out}" 0 4000 out)
  message(FATAL_ERROR "run clang-format -i on:\n${out}")
endif()
