# Installs the programs, their manual pages and completions, and what programs of others load. Only this:
# cmake --install build --component programs
# The Debian packages have components of their own (PawlPackage.cmake), which no other installation wants: EXCLUDE_FROM_ALL.
include(GNUInstallDirs)

set(pawl_all COMPONENT programs)
set(pawl_client COMPONENT pawl EXCLUDE_FROM_ALL)
set(pawl_server COMPONENT pawld EXCLUDE_FROM_ALL)

# Pages and completions that pawl makes from its own declarations. A page written by hand goes before one that is made.
file(STRINGS "${PROJECT_SOURCE_DIR}/man/pawl.1" dated REGEX "^\\.Dd ")
string(REPLACE ".Dd " "" dated "${dated}")
file(GLOB by_hand CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/pawl-*.1")
set(except)
foreach(page ${by_hand})
  string(REGEX REPLACE ".*/pawl-(.*)\\.1$" "\\1" verb "${page}")
  list(APPEND except --except ${verb})
endforeach()
set(made "${PROJECT_BINARY_DIR}/made")
add_custom_command(
  OUTPUT "${made}/stamp"
  COMMAND ${CMAKE_COMMAND} -E rm -rf "${made}"
  COMMAND ${CMAKE_COMMAND} -E make_directory "${made}/man" "${made}/completions"
  COMMAND pawl manual --date "${dated}" ${except} "${made}/man"
  COMMAND pawl completion bash > "${made}/completions/pawl"
  COMMAND pawl completion zsh > "${made}/completions/_pawl"
  COMMAND pawl completion fish > "${made}/completions/pawl.fish"
  COMMAND ${CMAKE_COMMAND} -E touch "${made}/stamp"
  DEPENDS pawl VERBATIM)
add_custom_target(pawl_made ALL DEPENDS "${made}/stamp")

file(GLOB pages_of_pawl CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.1")
set(pages_of_pawld "${PROJECT_SOURCE_DIR}/man/pawld.8")
set(completions "${made}/completions")
foreach(place pawl_all pawl_client)
  install(TARGETS pawl RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" ${${place}})
  # For sqlite3, Python and others, by its path: nothing links it, so it is installed outside the linker's search path.
  install(TARGETS libpawl_sqlite LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/pawl" ${${place}})
  install(FILES ${pages_of_pawl} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" ${${place}})
  install(DIRECTORY "${made}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" ${${place}})
  install(FILES "${completions}/pawl" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" ${${place}})
  install(FILES "${completions}/_pawl" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" ${${place}})
  install(FILES "${completions}/pawl.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" ${${place}})
endforeach()
foreach(place pawl_all pawl_server)
  install(TARGETS pawld RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" ${${place}})
  install(FILES ${pages_of_pawld} DESTINATION "${CMAKE_INSTALL_MANDIR}/man8" ${${place}})
endforeach()
