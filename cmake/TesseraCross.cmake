# What the tests of a cross build need besides its toolchain file.

# GoogleTest for the target, from the sources that Debian installs beside the host's.
function(tessera_add_googletest)
  set(TESSERA_GTEST_SOURCE /usr/src/googletest CACHE PATH "GoogleTest's sources, for cross builds")
  if(NOT EXISTS ${TESSERA_GTEST_SOURCE}/CMakeLists.txt)
    message(FATAL_ERROR "The tests of a cross build need GoogleTest's sources: apt-get install "
                        "googletest (or configure with -DTESSERA_GTEST_SOURCE=<their folder>)")
  endif()
  set(BUILD_GMOCK OFF CACHE BOOL "")
  set(INSTALL_GTEST OFF CACHE BOOL "")
  add_subdirectory(${TESSERA_GTEST_SOURCE} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
  foreach(target IN ITEMS gtest gtest_main)
    target_compile_options(${target} PRIVATE -w)
  endforeach()
endfunction()

# tessera_emulate(<result> <target>)
#
# Sets <result> to a file that a program under the emulator can execute as <target>, whose own file
# the host's kernel refuses: a script. Under ctest, <target> finds the script's name in argv[0], so
# that it can start itself again, as death tests do.
function(tessera_emulate result target)
  set(script ${CMAKE_CURRENT_BINARY_DIR}/emulated/${target})
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  file(GENERATE OUTPUT ${script}
    CONTENT "#!/bin/sh\nexec ${emulator} -0 \"$0\" '$<TARGET_FILE:${target}>' \"$@\"\n"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set_target_properties(${target} PROPERTIES
    CROSSCOMPILING_EMULATOR "${CMAKE_CROSSCOMPILING_EMULATOR};-0;${script}")
  set(${result} ${script} PARENT_SCOPE)
endfunction()
