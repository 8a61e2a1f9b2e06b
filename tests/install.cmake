# cmake -DBUILD=<build folder> -DSOURCE=<source folder> -P install.cmake: installs to a scratch
# prefix, then configures, builds and runs a consumer that knows nothing but that prefix.
cmake_minimum_required(VERSION 3.25)
set(scratch "${BUILD}/install-test")
file(REMOVE_RECURSE "${scratch}")
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}\nexited with ${code}:\n${out}")
  endif()
endfunction()
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${scratch}/prefix")
run(${CMAKE_COMMAND} -S "${SOURCE}/tests/consumer" -B "${scratch}/build" -G Ninja
    "-DCMAKE_PREFIX_PATH=${scratch}/prefix" "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build "${scratch}/build")
run("${scratch}/build/consumer")
run("${scratch}/prefix/bin/indexpool" list devices)
file(REMOVE_RECURSE "${scratch}")
