// What differs between the databases that Pawl's guard is in, for the scratch space that they share
// (scratch.h).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard/administration.h"
#include "guard/scratch.h"
#include "guard/session.h"
#include "guard/sql/scratch_names.h"

namespace pawl::guard {

// An ability that a database does not have in any form, and why.
struct Lack {
  Ability ability;
  std::string_view why;
};

struct SqlTraits {
  std::string_view kind;
  std::string_view call;  // before the name of a function of the guard, in SQL
  std::string_view by;    // protect()'s expression for rows that share their column `resource`
  bool schemas = true;
  Abilities abilities = {};  // beyond what all databases can
  Abilities watched = {};    // beyond that, where a trigger judges
  std::span<const Lack> lacks = {};

  // Types of the column `resource`: one whose keys have one spelling each, and one that calls two
  // spellings equal.
  std::string_view key_type;
  std::string_view loose_key_type;
  std::array<std::string_view, 2> spellings = {};
  bool loose_by = true;  // A form `by` can have that type, too.
};

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;

  [[nodiscard]] virtual const SqlTraits& traits() const = 0;
  virtual Administration& administration() = 0;
  // Before anything else: whether scratch resources can be used there.
  virtual Result<void> inspect() = 0;
  // Once inspect() has seen the server: what it lacks beyond the traits.
  [[nodiscard]] virtual std::vector<Lack> lacks_here() const { return {}; }
  // How effects are ordered, to follow the space's name; empty: nothing to add.
  [[nodiscard]] virtual std::string remark(Layout layout) const = 0;

  virtual Result<void> run(const std::string& sql) = 0;
  // Between the brackets of CREATE TABLE.
  [[nodiscard]] virtual std::string columns(Layout layout, std::string_view key_type) const = 0;
  virtual Result<std::vector<Effect>> effects(const std::string& table, Layout layout,
                                              const std::string& key) = 0;
  // With kUnreachable and kEnclosed, as in ScratchSpace. `larger` is a name for a new table. What
  // is returned takes it back, as far as dropping the table does not.
  virtual Result<std::vector<std::string>> make_unreachable(const std::string& table);
  virtual Result<std::optional<std::vector<std::string>>> enclose(const std::string& table,
                                                                  const std::string& larger);
  // On a connection of its own.
  virtual Result<std::unique_ptr<Session>> open(const ScratchNames& names) = 0;
};

}  // namespace pawl::guard
