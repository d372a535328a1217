// What differs between the databases that Pawl's guard is in, for the scratch space that they share
// (scratch.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "guard/administration.h"
#include "guard/scratch.h"
#include "guard/session.h"
#include "guard/sql/scratch_names.h"

namespace pawl::guard {

struct SqlTraits {
  std::string_view kind;
  std::string_view call;  // before the name of a function of the guard, in SQL
  std::string_view by;    // protect()'s expression for rows that share their column `resource`
  bool schemas = true;
  Abilities abilities = {};  // beyond what all databases can
  Abilities watched = {};    // beyond that, where a trigger judges
};

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;

  [[nodiscard]] virtual const SqlTraits& traits() const = 0;
  virtual Administration& administration() = 0;
  // Before anything else: whether scratch resources can be used there.
  virtual Result<void> inspect() = 0;
  // How effects are ordered, to follow the space's name; empty: nothing to add.
  [[nodiscard]] virtual std::string remark(Layout layout) const = 0;

  virtual Result<void> run(const std::string& sql) = 0;
  // Between the brackets of CREATE TABLE.
  [[nodiscard]] virtual std::string_view columns(Layout layout) const = 0;
  virtual Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                              const std::string& key) = 0;
  // On a connection of its own.
  virtual Result<std::unique_ptr<Session>> open(const ScratchNames& names) = 0;
};

}  // namespace pawl::guard
