# What `cmake --install` copies, and what find_package(Tessera) finds afterwards.

include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)

install(TARGETS tessera EXPORT TesseraTargets)
install(TARGETS tessera_command)
install(DIRECTORY src/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "cli" EXCLUDE)
install(EXPORT TesseraTargets NAMESPACE Tessera:: DESTINATION ${config_dir})

configure_package_config_file(cmake/TesseraConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/TesseraConfig.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/TesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/TesseraConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/TesseraConfigVersion.cmake
        DESTINATION ${config_dir})
