// A toy guard that shows what a guard without transactions looks like: a JSON file that is only
// replaced by compare-and-swap, as objects in a store with conditional writes are.
//
//   {"contract": 1, "generation": 7, "resources": {
//     "orders": {"guarded": true, "fence": 34, "log": [[34, "v1", "6f1c…"]]}}}
//
// Every change reads the file, judges, and replaces it if its generation is still the same; else it
// begins again. There are no transactions, no modes and no operation numbers: a write with an
// unknown outcome is settled by reading the log back and looking for the write's nonce.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "guard/retry_and_settle.h"
#include "pawl/guard.h"
#include "pawl/result.h"

namespace pawl::guard {

class JsonFile {
 public:
  enum class Swap : std::uint8_t {
    kDone,
    kConflict,  // Another process was faster. Nothing happened.
    kUnknown,   // The answer was lost (tests only).
  };

  explicit JsonFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  // kUnavailable: it cannot be read. kInvalid: it is not such a file.
  [[nodiscard]] Result<boost::json::object> read() const;
  // Replaces the document if its generation is still that of `document`; durable when it returns.
  Result<Swap> swap(boost::json::object document);
  // A new file without resources.
  Result<void> create();

  // Called in swap() after the comparison: true loses the answer, with the file replaced or not.
  struct Loss {
    bool lost = false;
    bool replaced = false;
  };
  std::function<Loss()> lose_answer = {};

 private:
  [[nodiscard]] Result<void> replace(const boost::json::object& document) const;

  const std::string path_;
};

// Used by one thread at a time.
class ToyGuard final : public Guard {
 public:
  explicit ToyGuard(std::string path) : file_(std::move(path)) {}

  [[nodiscard]] std::string name() const override { return "toy " + file_.path(); }
  [[nodiscard]] GuardStrength strength() override;
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Appends (token, value) to the resource's log, once.
  [[nodiscard]] Result<Decision> write(HeldToken held, std::string_view resource,
                                       std::string_view value);
  // The same for a resource without a guard.
  [[nodiscard]] Result<void> write_unguarded(std::uint64_t token, std::string_view resource,
                                             std::string_view value);

  [[nodiscard]] JsonFile& file() { return file_; }

 private:
  JsonFile file_;
};

// Changes the document until no other process was faster. An error of `change` ends it.
Result<void> change_document(JsonFile& file,
                             const std::function<Result<void>(boost::json::object&)>& change);
// nullptr: there is no such resource.
[[nodiscard]] boost::json::object* find_resource(boost::json::object& document,
                                                 std::string_view resource);
// 0: none yet.
[[nodiscard]] std::uint64_t fence_of(const boost::json::object& resource);

}  // namespace pawl::guard
