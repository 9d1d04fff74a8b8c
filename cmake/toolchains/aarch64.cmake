# A cross build for 64-bit ARM on Debian or Ubuntu, whose tests run under qemu. `tools/setup
# --aarch64` installs the compiler and the emulator.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

# Libraries and headers of the target only. Programs are the host's. Packages may come from either:
# a package installed into a prefix of the user's (CMAKE_PREFIX_PATH) is the target's too.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

find_program(TESSERA_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(TESSERA_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${TESSERA_QEMU} -L ${CMAKE_FIND_ROOT_PATH})
endif()
