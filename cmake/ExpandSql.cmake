# cmake -DINPUT=a.sql -DOUTPUT=b.sql -P ExpandSql.cmake: a script for psql or for the client of MariaDB with its lines
# `\ir FILE` or `source FILE` replaced by the files they include, and without its lines `\set …`, so that it can be sent to
# a server or copied to another machine as one file.
get_filename_component(folder "${INPUT}" DIRECTORY)
file(READ "${INPUT}" text)
string(REGEX MATCHALL "\n(\\\\ir|source) [^\n]+" includes "${text}")
foreach(line ${includes})
  string(REGEX REPLACE "^\n(.ir|source) " "" part "${line}")
  file(READ "${folder}/${part}" content)
  string(REPLACE "${line}\n" "\n${content}\n" text "${text}")
endforeach()
string(REGEX REPLACE "\n\\\\set [^\n]+" "" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
