# Run by cpack on the files of the packages before it packs them: manual pages and changelogs are compressed, as Debian
# wants them.
file(GLOB_RECURSE texts "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/man/*" "${CPACK_TEMPORARY_DIRECTORY}/*/usr/share/doc/*/changelog")
list(FILTER texts EXCLUDE REGEX "\\.gz$")
if(texts)
  execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
endif()
