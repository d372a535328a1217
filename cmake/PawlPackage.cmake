# The Debian packages: `make deb`, or `cpack --config build/CPackConfig.cmake`. One component per package:
#
#   pawld            the server, its unit, configuration, backup timer and alerts; no database client
#   pawl             the command line, manual, completions, guards (.sql and the extension for SQLite), documentation
#   libpawl0         libpawl; libpawl-guards0: its fronts of guards; libpawl-testing0: the test server
#   libpawl-dev      headers, pkg-config and CMake files, examples in C++
#   postgresql-15-pawl   the optional C part of the PostgreSQL guard, if it was built
include(GNUInstallDirs)

set(packages pawld pawl libpawl0 libpawl-guards0 libpawl-testing0 libpawl-dev)
get_property(postgres_library GLOBAL PROPERTY PAWL_POSTGRES_LIBRARY)
if(postgres_library)
  list(APPEND packages postgresql-15-pawl)
endif()
set(here "${PROJECT_SOURCE_DIR}/deploy/debian")
set(made "${PROJECT_BINARY_DIR}/debian")

# What a file of a package is installed with. `cmake --install` leaves these out.
macro(pawl_ship package)
  install(${ARGN} COMPONENT ${package} EXCLUDE_FROM_ALL)
endmacro()
macro(pawl_ship_directories package to)
  install(DIRECTORY ${ARGN} DESTINATION ${to} COMPONENT ${package} EXCLUDE_FROM_ALL
          PATTERN node_modules EXCLUDE PATTERN __pycache__ EXCLUDE)
endmacro()

# In Debian 12 units are in /lib. Files in /etc belong there, whatever the prefix is.
pawl_ship(pawld FILES deploy/systemd/pawld.service deploy/systemd/pawl-backup.service deploy/systemd/pawl-backup.timer
          deploy/systemd/pawl-audit.service DESTINATION /lib/systemd/system)
pawl_ship(pawld FILES deploy/systemd/pawld-cluster.conf DESTINATION share/pawl/systemd)
pawl_ship(pawld FILES deploy/pawl.toml deploy/backup.env deploy/audit.env DESTINATION /etc/pawl)
pawl_ship(pawld FILES deploy/logrotate/pawl DESTINATION /etc/logrotate.d)
pawl_ship(pawld PROGRAMS deploy/libexec/backup deploy/libexec/audit DESTINATION libexec/pawl)
pawl_ship(pawld FILES deploy/prometheus/pawl.rules.yml deploy/prometheus/pawl.generic-names.rules.yml
          deploy/prometheus/pawl.postgres_exporter.yml DESTINATION share/pawl/prometheus)

pawl_ship_directories(pawl share/pawl/guards guards/redis guards/sqlite)
foreach(database postgres mariadb)
  pawl_ship(pawl FILES "${PROJECT_BINARY_DIR}/generated/guard/${database}/pawl.sql" guards/${database}/uninstall.sql
            DESTINATION share/pawl/guards/${database})
endforeach()
if(postgres_library)
  pawl_ship(postgresql-15-pawl FILES "${postgres_library}" DESTINATION lib/postgresql/15/lib)
endif()
# As in the source tree, so that the links of the pages lead somewhere.
pawl_ship_directories(pawl share/doc/pawl docs examples)
pawl_ship(pawl FILES README.md SECURITY.md CONTRIBUTING.md CHANGELOG.md DESTINATION share/doc/pawl)
pawl_ship(pawl FILES bench/README.md DESTINATION share/doc/pawl/bench)
pawl_ship_directories(libpawl-dev share/doc/libpawl-dev/examples
                      examples/cpp-worker examples/leader-scheduler examples/postgres-worker)

file(READ "${here}/changelog.in" changelog)
foreach(package ${packages})
  string(CONFIGURE "${changelog}" of_package @ONLY)
  file(WRITE "${made}/${package}/changelog" "${of_package}")
  pawl_ship(${package} FILES "${made}/${package}/changelog" "${here}/copyright" DESTINATION share/doc/${package})
  if(EXISTS "${here}/${package}.lintian-overrides")
    pawl_ship(${package} FILES "${here}/${package}.lintian-overrides" DESTINATION share/lintian/overrides RENAME ${package})
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pawl)
set(CPACK_PACKAGE_CONTACT "Pawl developers <pawl@example.org>")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_SET_DESTDIR ON)  # because of /etc and /lib
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/PawlPackageStaged.cmake")
set(CPACK_COMPONENTS_ALL ${packages})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# pawl_package(name SECTION … SUMMARY … TEXT … [DEPENDS …] [RECOMMENDS …] [SUGGESTS …])
macro(pawl_package name)
  cmake_parse_arguments(ARG "" "SECTION;SUMMARY;TEXT;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER ${name} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${ARG_SECTION})
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${ARG_SUMMARY}\n${about}\n\n${ARG_TEXT}")
  foreach(relation DEPENDS RECOMMENDS SUGGESTS)
    if(ARG_${relation})
      set(CPACK_DEBIAN_${key}_PACKAGE_${relation} "${ARG_${relation}}")
    endif()
  endforeach()
endmacro()

set(about "Pawl is a lock service. Every grant carries a fencing token, a number that
only grows, so that a database or another resource can refuse a holder whose
lease is over and who does not know it yet.")
pawl_package(pawld SECTION admin DEPENDS "passwd" RECOMMENDS "pawl" SUGGESTS "logrotate, prometheus"
             SUMMARY "lock service whose every grant carries a fencing token (server)"
             TEXT "This package has the server. It speaks RESP, the protocol of Redis, and HTTP.")
pawl_package(pawl SECTION admin SUGGESTS "pawld"
             SUMMARY "lock service whose every grant carries a fencing token (commands)"
             TEXT "This package has the commands: run a job under a lock, look at locks, operate
the server, and install guards in PostgreSQL, MariaDB, SQLite, Redis, etcd, S3
and DynamoDB.")
pawl_package(libpawl0 SECTION libs
             SUMMARY "client library of the Pawl lock service"
             TEXT "This package has the library that C++ programs load to hold locks.")
pawl_package(libpawl-guards0 SECTION libs DEPENDS "libpawl0 (= ${PROJECT_VERSION})"
             SUMMARY "client library of the Pawl lock service (guards)"
             TEXT "This package has the libraries that C++ programs load to write to
PostgreSQL, MariaDB, SQLite, Redis, etcd, S3 and DynamoDB under a token.")
pawl_package(libpawl-testing0 SECTION libs DEPENDS "libpawl0 (= ${PROJECT_VERSION})"
             SUMMARY "client library of the Pawl lock service (test server)"
             TEXT "This package has a server that runs inside a test, with a clock that the test
moves.")
set(same_version "(= ${PROJECT_VERSION})")
pawl_package(libpawl-dev SECTION libdevel
             DEPENDS "libpawl0 ${same_version}, libpawl-guards0 ${same_version}, libpawl-testing0 ${same_version}"
             SUGGESTS "libpq-dev, libmariadb-dev, libsqlite3-dev, libhiredis-dev"
             SUMMARY "client library of the Pawl lock service (development)"
             TEXT "This package has headers, files for pkg-config and CMake, and examples.")
pawl_package(postgresql-15-pawl SECTION database DEPENDS "postgresql-15" SUGGESTS "pawl"
             SUMMARY "guard of the Pawl lock service for PostgreSQL (faster checks)"
             TEXT "This package has the optional part in C of the guard that pawl installs in a
PostgreSQL database. Guards installed from then on find it by themselves.")

file(WRITE "${made}/conffiles" "/etc/logrotate.d/pawl\n/etc/pawl/audit.env\n/etc/pawl/backup.env\n/etc/pawl/pawl.toml\n")
set(CPACK_DEBIAN_PAWLD_PACKAGE_CONTROL_EXTRA "${here}/postinst" "${here}/prerm" "${here}/postrm" "${made}/conffiles")
# The linker of programs finds these by ldconfig; and packages that link them depend on what is in shlibs.
file(WRITE "${made}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${made}/libpawl0/shlibs" "libpawl 0 libpawl0 (>= ${PROJECT_VERSION})\n")
file(WRITE "${made}/libpawl-guards0/shlibs"
     "libpawl_dynamodb 0 libpawl-guards0 (>= ${PROJECT_VERSION})\n"
     "libpawl_etcd 0 libpawl-guards0 (>= ${PROJECT_VERSION})\n"
     "libpawl_mariadb 0 libpawl-guards0 (>= ${PROJECT_VERSION})\nlibpawl_postgres 0 libpawl-guards0 (>= ${PROJECT_VERSION})\n"
     "libpawl_redis 0 libpawl-guards0 (>= ${PROJECT_VERSION})\n"
     "libpawl_s3 0 libpawl-guards0 (>= ${PROJECT_VERSION})\n"
     "libpawl_sqlite_front 0 libpawl-guards0 (>= ${PROJECT_VERSION})\n")
file(WRITE "${made}/libpawl-testing0/shlibs" "libpawl-testing 0 libpawl-testing0 (>= ${PROJECT_VERSION})\n")
foreach(package libpawl0 libpawl-guards0 libpawl-testing0)
  string(TOUPPER ${package} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA "${made}/triggers" "${made}/${package}/shlibs")
endforeach()
include(CPack)
