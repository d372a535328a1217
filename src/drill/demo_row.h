// The row that the demo's workers write to, in a scratch table without a guard at first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "conformance/sql_database.h"
#include "drill/target.h"
#include "pawl/result.h"

namespace pawl::drill {

class DemoRow {
 public:
  struct Content {
    std::uint64_t token = 0;  // that it was last written with
    std::string value;
  };

  // `kind`: sqlite, postgres, mariadb; `where`: a file, or a DSN. The guard must be installed
  // there.
  static Result<std::unique_ptr<DemoRow>> make(const std::string& kind, const std::string& where);
  // Removes the table and its guard.
  ~DemoRow();
  DemoRow(const DemoRow&) = delete;
  DemoRow& operator=(const DemoRow&) = delete;

  [[nodiscard]] const std::string& table() const { return table_; }
  // How a worker writes to it.
  [[nodiscard]] Target target() const;

  Result<Content> read();
  // Sets its content, with token 0: nobody has written to it.
  Result<void> reset(const std::string& value);
  // Puts the table under guard, in mode enforce.
  Result<void> protect();

 private:
  DemoRow(std::string kind, std::string where, std::unique_ptr<conformance::SqlDatabase> database);

  const std::string kind_;
  const std::string where_;
  const std::unique_ptr<conformance::SqlDatabase> database_;
  const std::string table_;
  bool guarded_ = false;
};

}  // namespace pawl::drill
