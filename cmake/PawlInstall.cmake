# Installs libpawl, libpawl-testing and the fronts of guards: headers, libraries, `find_package(Pawl CONFIG)`, and pawl.pc,
# pawl-testing.pc, pawl-mariadb.pc, pawl-postgres.pc, pawl-sqlite.pc.
# Only these: cmake --install build --component libpawl
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pawl_package "${CMAKE_INSTALL_LIBDIR}/cmake/Pawl")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pawl" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT libpawl)
install(TARGETS libpawl libpawl_testing libpawl_mariadb libpawl_postgres libpawl_sqlite_front EXPORT PawlTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libpawl
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
foreach(front "mariadb;MariaDB;pawl_mariadb" "postgres;PostgreSQL;pawl_postgres" "sqlite;SQLite;pawl_sqlite_front")
  list(GET front 0 kind)
  list(GET front 1 pawl_database)
  list(GET front 2 pawl_front)
  set(name "pawl-${kind}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/pawl-guard.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT libpawl)
endforeach()
