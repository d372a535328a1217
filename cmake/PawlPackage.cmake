# The Debian package: `cpack --config build/CPackConfig.cmake`, or `make deb`. Programs, manual, completions, the extension for SQLite, service unit,
# configuration; libpawl for developers is installed by cmake --install (PawlInstall.cmake).
include(GNUInstallDirs)

install(FILES deploy/systemd/pawld.service DESTINATION lib/systemd/system COMPONENT service)
install(FILES deploy/prometheus/pawl.rules.yml DESTINATION share/pawl/prometheus COMPONENT service)
# A configuration file belongs in /etc, whatever the prefix is.
install(FILES deploy/pawl.toml DESTINATION /etc/pawl COMPONENT service)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pawl)
set(CPACK_PACKAGE_CONTACT "Pawl <pawl@localhost>")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "lock service whose every grant carries a fencing token")
set(CPACK_SET_DESTDIR ON)  # because of /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs service)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_NAME pawl)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "passwd, util-linux")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE "${PROJECT_BINARY_DIR}/debian/conffiles" "/etc/pawl/pawl.toml\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/deploy/debian/postinst" "${PROJECT_SOURCE_DIR}/deploy/debian/prerm"
    "${PROJECT_SOURCE_DIR}/deploy/debian/postrm" "${PROJECT_BINARY_DIR}/debian/conffiles")
include(CPack)
