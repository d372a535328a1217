// Prints the files of a store for people: what is there, and what is wrong with it. Takes no lock,
// changes nothing and continues after damage, so it may be used on a running or a broken store.
// (What a running store writes at the same time may look torn.)
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/file.h"

namespace pawl::store::journal {

// Returns one operation's key and value as text; the store itself only knows bytes. `value` is
// empty for an erase.
using FormatOperation =
    std::function<std::string(bool put, std::string_view key, std::string_view value)>;

// Calls `line` for each line of text. An error only if the directory itself cannot be read.
Result<void> dump(Files& files, const std::string& directory, const FormatOperation& format,
                  const std::function<void(std::string_view)>& line);

}  // namespace pawl::store::journal
