# Installs the programs, their manual pages and completions, and what programs of others load. Only this: cmake --install build --component programs
include(GNUInstallDirs)

install(TARGETS pawl pawld RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
# For sqlite3, Python and others, by its path: nobody links it, so it is in a folder where no linker looks.
install(TARGETS libpawl_sqlite LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/pawl" COMPONENT programs)
foreach(section 1 8)
  file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.${section}")
  install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT programs)
endforeach()

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
install(DIRECTORY "${made}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT programs)
set(completions "${made}/completions")
install(FILES "${completions}/pawl" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT programs)
install(FILES "${completions}/_pawl" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions" COMPONENT programs)
install(FILES "${completions}/pawl.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" COMPONENT programs)
