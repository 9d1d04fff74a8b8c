# Run by the test `consumer`: install, configure, build, run, each into a fresh SCRATCH.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output ECHO_OUTPUT_VARIABLE ECHO_ERROR_VARIABLE)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "consumer: failed with ${status}: ${command}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/build -G ${GENERATOR}
    -D CMAKE_TOOLCHAIN_FILE=${TOOLCHAIN} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix
    -D TESSERA_EXPECTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run(${EMULATOR} ${SCRATCH}/build/consumer)
foreach(expected IN ITEMS "19.5 22.5 43.5 50.5" "matmul: inner dimensions differ")
  string(FIND "${output}" "${expected}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "consumer: expected ${expected} in its output, got: ${output}")
  endif()
endforeach()
run(${EMULATOR} ${SCRATCH}/prefix/bin/tessera --version)
if(NOT output MATCHES "${VERSION}")
  message(FATAL_ERROR "consumer: expected version ${VERSION}, got: ${output}")
endif()
