# Installs libpawl, libpawl-testing and the fronts of guards: headers, libraries, `find_package(Pawl CONFIG)`, and pawl.pc,
# pawl-testing.pc, pawl-dynamodb.pc, pawl-etcd.pc, pawl-mariadb.pc, pawl-postgres.pc, pawl-redis.pc, pawl-s3.pc, pawl-sqlite.pc.
# Only these: cmake --install build --component libpawl
# The Debian packages have components of their own (PawlPackage.cmake), which no other installation wants: EXCLUDE_FROM_ALL.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(pawl_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Pawl")
set(pawl_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(pawl_fronts libpawl_dynamodb libpawl_etcd libpawl_mariadb libpawl_postgres libpawl_redis libpawl_s3 libpawl_sqlite_front)

install(TARGETS libpawl libpawl_testing ${pawl_fronts} EXPORT PawlTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libpawl NAMELINK_COMPONENT libpawl
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS libpawl LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT libpawl0 NAMELINK_COMPONENT libpawl-dev EXCLUDE_FROM_ALL)
install(TARGETS ${pawl_fronts} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT libpawl-guards0 NAMELINK_COMPONENT libpawl-dev EXCLUDE_FROM_ALL)
install(TARGETS libpawl_testing LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT libpawl-testing0 NAMELINK_COMPONENT libpawl-dev EXCLUDE_FROM_ALL)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/PawlConfig.cmake.in" "${PROJECT_BINARY_DIR}/PawlConfig.cmake"
                              INSTALL_DESTINATION "${pawl_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/PawlConfigVersion.cmake" COMPATIBILITY SameMinorVersion)

# Relative, so that a package may be moved: from <prefix>/<libdir>/pkgconfig up to <prefix>.
string(REGEX REPLACE "[^/]+" ".." pawl_up "${CMAKE_INSTALL_LIBDIR}")
foreach(name pawl pawl-testing)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  list(APPEND pawl_pc_files "${PROJECT_BINARY_DIR}/${name}.pc")
endforeach()
foreach(front "dynamodb;DynamoDB;pawl_dynamodb" "etcd;etcd;pawl_etcd" "mariadb;MariaDB;pawl_mariadb" "postgres;PostgreSQL;pawl_postgres"
        "redis;Redis;pawl_redis" "s3;S3;pawl_s3" "sqlite;SQLite;pawl_sqlite_front")
  list(GET front 0 kind)
  list(GET front 1 pawl_database)
  list(GET front 2 pawl_front)
  set(name "pawl-${kind}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/pawl-guard.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  list(APPEND pawl_pc_files "${PROJECT_BINARY_DIR}/${name}.pc")
endforeach()

foreach(place "COMPONENT;libpawl" "COMPONENT;libpawl-dev;EXCLUDE_FROM_ALL")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pawl" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${place})
  install(EXPORT PawlTargets NAMESPACE Pawl:: DESTINATION "${pawl_cmake_dir}" ${place})
  install(FILES "${PROJECT_BINARY_DIR}/PawlConfig.cmake" "${PROJECT_BINARY_DIR}/PawlConfigVersion.cmake"
          DESTINATION "${pawl_cmake_dir}" ${place})
  install(FILES ${pawl_pc_files} DESTINATION "${pawl_pc_dir}" ${place})
endforeach()
