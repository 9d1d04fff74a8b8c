# One target per folder of src/tessera. The objects of every module but cli/ are gathered into the
# installed library. tools/check_layers proves that the includes follow DEPS, and that DEPS follow
# its table.

set(TESSERA_SOURCE_ROOT ${CMAKE_CURRENT_LIST_DIR}/../src)
cmake_path(NORMAL_PATH TESSERA_SOURCE_ROOT)

# tessera_module(<folder> [DEPS <folders>...] [EXCLUDE <files>...])
#
# Called from <folder>'s CMakeLists.txt. Compiles its *.cpp into the object library
# tessera_<folder> ("backend/cpu" gives tessera_backend_cpu), which sees the folders in DEPS and
# what those see. A folder without .cpp becomes an interface library. main.cpp is left out: it
# belongs to a command; so are the files in EXCLUDE.
function(tessera_module folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;EXCLUDE")
  _tessera_target_name(target ${folder})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  foreach(file IN ITEMS main.cpp ${arg_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(sources)
    add_library(${target} OBJECT ${sources})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  if(sources AND TESSERA_PRECOMPILE)
    _tessera_precompile(${target})
  endif()
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${TESSERA_SOURCE_ROOT}>)
  target_link_libraries(${target} ${scope} Threads::Threads ${CMAKE_DL_LIBS})
  foreach(dep IN LISTS arg_DEPS)
    _tessera_target_name(dep_target ${dep})
    target_link_libraries(${target} ${scope} ${dep_target})
  endforeach()
  if(sources AND NOT folder STREQUAL "cli")
    set_property(GLOBAL APPEND PROPERTY TESSERA_OBJECTS $<TARGET_OBJECTS:${target}>)
  endif()
endfunction()

# tessera_variant(<folder> <name> SOURCES <files>... [OPTIONS <flags>...] [DEFINITIONS <names>...])
#
# Compiles SOURCES into the library once more, with other flags, e.g. for one instruction set. The
# module itself also compiles its *.cpp, unless its EXCLUDE names them.
function(tessera_variant folder name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;OPTIONS;DEFINITIONS")
  _tessera_target_name(module ${folder})
  set(target ${module}_${name})
  add_library(${target} OBJECT ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${TESSERA_SOURCE_ROOT})
  target_compile_options(${target} PRIVATE ${arg_OPTIONS})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINITIONS})
  set_property(GLOBAL APPEND PROPERTY TESSERA_OBJECTS $<TARGET_OBJECTS:${target}>)
endfunction()

# Checks that no symbol but the table leaves the objects of variants (see check_linkage.cmake).
# Sanitizers add symbols of their own. Makefiles know no rule for another target's objects: there the
# targets alone come first.
function(tessera_check_linkage name)
  if(NOT CMAKE_NM OR TESSERA_SANITIZE)
    return()
  endif()
  set(objects "")
  foreach(target IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(files "")
  if(CMAKE_GENERATOR MATCHES "Ninja")
    set(files ${objects})
  endif()
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_custom_command(OUTPUT ${stamp} DEPENDS ${ARGN} ${files}
    COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} "-DOBJECTS=${objects}" -D STAMP=${stamp}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_linkage.cmake
    COMMENT "Checking the linkage of the SIMD loops (${name})" VERBATIM)
  add_custom_target(tessera_${name} ALL DEPENDS ${stamp})
endfunction()

# The standard headers that most files include, compiled for the first module and shared by all.
function(_tessera_precompile target)
  if(target STREQUAL "tessera_base")
    target_precompile_headers(${target} PRIVATE <algorithm> <functional> <memory> <optional> <span>
                                                <string> <unordered_map> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM tessera_base)
  endif()
endfunction()

function(_tessera_target_name result folder)
  string(REPLACE "/" "_" name ${folder})
  set(${result} tessera_${name} PARENT_SCOPE)
endfunction()
