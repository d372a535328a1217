// A store's files for people: what is there, and what is wrong with it. Takes no lock, changes
// nothing, and goes on past damage, so it may be pointed at a running or a broken store. (What a
// running store writes meanwhile may look torn.)
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/file.h"

namespace pawl::store::journal {

// Writes one operation's key and value for people: the store knows only bytes. `value` is empty for
// an erase.
using FormatOperation =
    std::function<std::string(bool put, std::string_view key, std::string_view value)>;

// Calls `line` for each line of text. An error only when the directory itself cannot be read.
Result<void> dump(Files& files, const std::string& directory, const FormatOperation& format,
                  const std::function<void(std::string_view)>& line);

}  // namespace pawl::store::journal
