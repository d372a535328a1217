# cmake -DINPUT=a.sql -DOUTPUT=a.h -DNAME=kA -P EmbedText.cmake: a text file as a string_view. In pieces, as compilers
# need not take a literal longer than 64 KiB.
file(READ "${INPUT}" text)
string(LENGTH "${text}" length)
set(pieces "")
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 16000 piece)
  string(APPEND pieces "R\"pawl_text(${piece})pawl_text\"\n")
  math(EXPR at "${at} + 16000")
endwhile()
# clang warns of the concatenated literal, which it takes.
set(quiet "#ifdef __clang__\n#pragma clang diagnostic ignored \"-Woverlength-strings\"\n#endif\n")
file(WRITE "${OUTPUT}" "#pragma once\n#include <string_view>\n${quiet}namespace pawl::guard {\ninline constexpr std::string_view ${NAME} =\n${pieces};\n}  // namespace pawl::guard\n")
