# Fails where an object compiled for one instruction set defines a symbol that the linker may merge
# with another file's: the copy it keeps could crash on older processors.
execute_process(COMMAND ${NM} --defined-only ${OBJECTS}
  OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${NM} could not read ${OBJECTS}")
endif()
string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" weak "${symbols}")
if(weak)
  message(FATAL_ERROR "symbols that other files may share: ${weak}")
endif()
file(TOUCH ${STAMP})
