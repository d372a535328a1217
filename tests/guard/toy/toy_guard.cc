#include "toy/toy_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "base/unique_fd.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

constexpr int kRetries = 10'000;
constexpr std::chrono::milliseconds kPauseMax{2};

std::int64_t generation_of(const json::object& document) {
  return document.at("generation").to_number<std::int64_t>();
}

Error unguarded(std::string_view resource) {
  return {Code::kInvalid, fmt::format("unknown resource '{}'", resource)};
}

Error stale(std::uint64_t token, std::uint64_t fence) {
  return {Code::kStaleToken,
          fmt::format("token={} max={}: a newer holder has been here", token, fence)};
}

bool sync_and_close(const std::string& path, std::string_view text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         ::fsync(file.get()) == 0;
}

// One write: read, judge, append, swap. Nothing tells a lost swap from one that never was but the
// nonce in the log.
class ToyWriter final : public RetryAndSettle {
 public:
  ToyWriter(JsonFile& file, HeldToken held, std::string_view resource, std::string_view value)
      : RetryAndSettle(std::move(held), {.retries = kRetries, .pause_max = kPauseMax}),
        file_(file),
        resource_(resource),
        value_(value) {
    SystemRandom random;
    nonce_ = fmt::format("{:016x}{:016x}", random.next(), random.next());
  }

 private:
  Attempt attempt() override {
    auto document = file_.read();
    if (!document) return document.error();
    json::object* resource = find_resource(*document, resource_);
    if (resource == nullptr) return unguarded(resource_);
    const std::uint64_t fence = fence_of(*resource);
    if (token() < fence) return explain_stale(stale(token(), fence), fence);
    resource->insert_or_assign("fence", token());
    resource->at("log").as_array().push_back(json::array{token(), value_, nonce_});
    const auto swapped = file_.swap(*std::move(document));
    if (!swapped) return swapped.error();
    if (*swapped == JsonFile::Swap::kConflict)
      return Again{{Code::kUnavailable, "other writers were faster every time"}};
    if (*swapped == JsonFile::Swap::kUnknown)
      return Unknown{{Code::kUnknown, "the answer to the swap was lost"}};
    return Decision{.verdict = Verdict::kAdmitted, .token = token(), .max = token()};
  }

  Settled settle() override {
    auto document = file_.read();
    if (!document) return Settled::kNotYet;
    const json::object* resource = find_resource(*document, resource_);
    if (resource == nullptr) return Settled::kNotApplied;
    for (const json::value& line : resource->at("log").as_array()) {
      if (line.as_array().at(2) == json::value(nonce_)) return Settled::kApplied;
    }
    return Settled::kNotApplied;  // A rename that has not happened by now never will.
  }

  [[nodiscard]] std::string_view cannot_tell() const override { return ""; }

  JsonFile& file_;
  const std::string resource_;
  const std::string value_;
  std::string nonce_;
};

}  // namespace

Result<json::object> JsonFile::read() const {
  std::ifstream file(path_);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return Error{Code::kUnavailable, fmt::format("{} cannot be read", path_)};
  boost::system::error_code failed;
  json::value value = json::parse(text.str(), failed);
  if (failed || !value.is_object() || !value.as_object().contains("generation"))
    return Error{Code::kInvalid, fmt::format("{} is not a toy guard's file", path_)};
  return std::move(value).as_object();
}

Result<JsonFile::Swap> JsonFile::swap(json::object document) {
  const UniqueFd lock(::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    return Error{Code::kUnavailable, fmt::format("{}.lock cannot be locked", path_)};
  const auto now = read();
  if (!now) return now.error();
  if (generation_of(*now) != generation_of(document)) return Swap::kConflict;
  document.insert_or_assign("generation", generation_of(document) + 1);
  const Loss loss = lose_answer ? lose_answer() : Loss{};
  if (loss.lost && !loss.replaced) return Swap::kUnknown;
  if (const auto done = replace(document); !done) return done.error();
  return loss.lost ? Swap::kUnknown : Swap::kDone;
}

Result<void> JsonFile::replace(const json::object& document) const {
  const std::string next = path_ + ".next";
  if (!sync_and_close(next, json::serialize(document)) ||
      std::rename(next.c_str(), path_.c_str()) != 0)
    return Error{Code::kUnavailable, fmt::format("{} cannot be replaced", path_)};
  return {};
}

Result<void> JsonFile::create() {
  return replace({{"contract", kGuardContract}, {"generation", 1}, {"resources", json::object{}}});
}

Result<void> change_document(JsonFile& file,
                             const std::function<Result<void>(json::object&)>& change) {
  while (true) {
    auto document = file.read();
    if (!document) return document.error();
    if (const auto changed = change(*document); !changed) return changed.error();
    const auto swapped = file.swap(*std::move(document));
    if (!swapped) return swapped.error();
    if (*swapped == JsonFile::Swap::kUnknown)
      return Error{Code::kUnknown, "the answer to the swap was lost"};
    if (*swapped == JsonFile::Swap::kDone) return {};
  }
}

json::object* find_resource(json::object& document, std::string_view resource) {
  json::value* found = document.at("resources").as_object().if_contains(resource);
  return found == nullptr ? nullptr : &found->as_object();
}

std::uint64_t fence_of(const json::object& resource) {
  return resource.at("fence").to_number<std::uint64_t>();
}

GuardStrength ToyGuard::strength() {
  return {Strength::kBestEffort,
          "a program that replaces the file without comparing is not refused"};
}

// No write is open while another swaps, so there is nothing to wait for.
Result<std::uint64_t> ToyGuard::advance(std::string_view resource, std::uint64_t token,
                                        std::chrono::milliseconds) {
  std::uint64_t before = 0;
  const auto done = change_document(file_, [&](json::object& document) -> Result<void> {
    json::object* found = find_resource(document, resource);
    if (found == nullptr) return unguarded(resource);
    before = fence_of(*found);
    if (token < before) return stale(token, before);
    found->insert_or_assign("fence", token);
    return {};
  });
  if (!done) return done.error();
  return before;
}

Result<Decision> ToyGuard::check(std::string_view resource, std::uint64_t token) {
  auto document = file_.read();
  if (!document) return document.error();
  const json::object* found = find_resource(*document, resource);
  if (found == nullptr) return unguarded(resource);
  const std::uint64_t fence = fence_of(*found);
  return Decision{.verdict = token < fence ? Verdict::kStale : Verdict::kAdmitted,
                  .token = token,
                  .max = fence,
                  .mode = GuardMode::kEnforce};
}

Result<Decision> ToyGuard::write(HeldToken held, std::string_view resource,
                                 std::string_view value) {
  return ToyWriter(file_, std::move(held), resource, value).run();
}

Result<void> ToyGuard::write_unguarded(std::uint64_t token, std::string_view resource,
                                       std::string_view value) {
  return change_document(file_, [&](json::object& document) -> Result<void> {
    json::object* found = find_resource(document, resource);
    if (found == nullptr) return unguarded(resource);
    PAWL_ASSERT(!found->at("guarded").as_bool());
    found->at("log").as_array().push_back(json::array{token, value, ""});
    return {};
  });
}

}  // namespace pawl::guard
