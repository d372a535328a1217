// What pawld does without serving: look at a store or a backup, and make a store from a backup.
#pragma once

#include "pawld/options.h"

namespace pawl::pawld {

// Reads all of options.config.data, a store or a backup, and says what is in it, or what is wrong
// with it. Returns the exit code: 0 when it is whole.
int verify(const Options& options);

// Makes a store in options.config.data from the backup options.restore.from (design rule 9).
// Returns the exit code.
int restore(const Options& options);

// Prints that the configuration, which parse_options() has accepted, is right, and as which user
// its files were tried. As root it also tries them as the owner of the data. Returns the exit code.
int check_config(const Options& options);

}  // namespace pawl::pawld
