# Installs the programs and their manual pages. Only this: cmake --install build --component programs
include(GNUInstallDirs)

install(TARGETS pawl pawld RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
foreach(section 1 8)
  file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.${section}")
  install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT programs)
endforeach()
