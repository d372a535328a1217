# Installs libpawl and libpawl-testing: headers, libraries, `find_package(Pawl CONFIG)`, pawl.pc and pawl-testing.pc.
# Only these: cmake --install build --component libpawl
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pawl_package "${CMAKE_INSTALL_LIBDIR}/cmake/Pawl")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pawl" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT libpawl)
install(TARGETS libpawl libpawl_testing libpawl_postgres libpawl_sqlite_front EXPORT PawlTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libpawl
        NAMELINK_COMPONENT libpawl INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT PawlTargets NAMESPACE Pawl:: DESTINATION "${pawl_package}" COMPONENT libpawl)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/PawlConfig.cmake.in" "${PROJECT_BINARY_DIR}/PawlConfig.cmake"
                              INSTALL_DESTINATION "${pawl_package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/PawlConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/PawlConfig.cmake" "${PROJECT_BINARY_DIR}/PawlConfigVersion.cmake"
        DESTINATION "${pawl_package}" COMPONENT libpawl)

# Relative, so that a package may be moved: from <prefix>/<libdir>/pkgconfig up to <prefix>.
string(REGEX REPLACE "[^/]+" ".." pawl_up "${CMAKE_INSTALL_LIBDIR}")
foreach(name pawl pawl-testing)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT libpawl)
endforeach()
