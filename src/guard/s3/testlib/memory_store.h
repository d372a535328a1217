// A bucket in memory for tests, which keeps conditions as S3 documents them, or misbehaves as told.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "aws/sigv4.h"
#include "guard/s3/object_store.h"

namespace pawl::guard {

struct MemoryStoreFaults {
  bool ignores_absent = false;       // If-None-Match: * overwrites
  bool ignores_match = false;        // If-Match overwrites
  bool refuses_conditions = false;   // 501
  bool wants_unquoted = false;       // If-Match with quotes never matches
  bool refuses_every_match = false;  // If-Match never matches
  bool match_revives = false;        // If-Match makes an object that is not there
  bool ignores_delete_match = false;
  Versioning versioning = Versioning::kOff;
};

// What happens to the next PUTs, one each; then they pass.
enum class PutFate : std::uint8_t {
  kPasses,
  kLandsWithoutAnswer,  // it has happened, and the answer is lost
  kLostOnTheWay,        // it has not, and nobody says so
  kLandsLate,           // the answer is lost, and it arrives with the next request
  kConflict,            // 409, nothing happened
  kLandsTwice,          // a copy has landed before: the answer is 412
};

// The objects of several MemoryStores, each used like a connection.
struct MemoryBucket {
  std::map<std::string, StoredObject> objects;
  MemoryStoreFaults faults;
  std::deque<PutFate> fates;
  std::function<void()> before_put;  // once, e.g. another writer
  std::function<void()> before_get;  // once
  std::vector<std::function<void()>> late;
  std::string policy;
  int puts = 0;
  int gets = 0;
};

class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(MemoryBucket& bucket) : bucket_(bucket) {}

  [[nodiscard]] std::string name() const override { return "a bucket in memory"; }

  Result<std::optional<StoredObject>> get(const std::string& key, std::size_t) override {
    ++bucket_.gets;
    if (bucket_.before_get) std::exchange(bucket_.before_get, nullptr)();
    arrive();
    const auto found = bucket_.objects.find(key);
    if (found == bucket_.objects.end()) return std::optional<StoredObject>{};
    return std::optional<StoredObject>{found->second};
  }

  Result<PutAnswer> put(const std::string& key, const std::string& bytes,
                        const Precondition& condition, EtagForm form) override {
    ++bucket_.puts;
    if (bucket_.before_put) std::exchange(bucket_.before_put, nullptr)();
    PutFate fate = PutFate::kPasses;
    if (!bucket_.fates.empty()) {
      fate = bucket_.fates.front();
      bucket_.fates.pop_front();
    }
    const Error lost{Code::kUnknown, "the connection broke"};
    switch (fate) {
      case PutFate::kPasses:
        break;
      case PutFate::kLandsWithoutAnswer:
        static_cast<void>(apply(key, bytes, condition, form));
        return lost;
      case PutFate::kLostOnTheWay:
        return lost;
      case PutFate::kLandsLate:
        bucket_.late.emplace_back(
            [=, this] { static_cast<void>(apply(key, bytes, condition, form)); });
        return lost;
      case PutFate::kConflict:
        return PutAnswer{.refused = true};
      case PutFate::kLandsTwice: {
        static_cast<void>(apply(key, bytes, condition, form));
        auto second = apply(key, bytes, condition, form);
        if (second) second->perhaps_repeated = true;
        return second;
      }
    }
    return apply(key, bytes, condition, form);
  }

  Result<bool> remove(const std::string& key, const Precondition& condition,
                      EtagForm form) override {
    if (condition.kind == Precondition::Kind::kMatches && !bucket_.faults.ignores_delete_match &&
        !matches(key, condition, form))
      return false;
    bucket_.objects.erase(key);
    return true;
  }

  Result<std::vector<std::string>> list(const std::string& prefix) override {
    std::vector<std::string> keys;
    for (const auto& [key, object] : bucket_.objects) {
      if (key.starts_with(prefix)) keys.push_back(key);
    }
    return keys;
  }

  Result<Versioning> versioning() override { return bucket_.faults.versioning; }
  Result<std::optional<std::string>> policy() override {
    if (bucket_.policy.empty()) return std::optional<std::string>{};
    return std::optional<std::string>{bucket_.policy};
  }

 private:
  void arrive() {
    for (const auto& land : std::exchange(bucket_.late, {})) land();
  }

  [[nodiscard]] bool matches(const std::string& key, const Precondition& condition,
                             EtagForm form) const {
    const auto found = bucket_.objects.find(key);
    if (found == bucket_.objects.end()) return bucket_.faults.match_revives;
    if (bucket_.faults.refuses_every_match) return false;
    if (bucket_.faults.wants_unquoted && form == EtagForm::kQuoted) return false;
    return found->second.etag == condition.etag;
  }

  Result<PutAnswer> apply(const std::string& key, const std::string& bytes,
                          const Precondition& condition, EtagForm form) {
    const MemoryStoreFaults& faults = bucket_.faults;
    if (condition.kind != Precondition::Kind::kNone && faults.refuses_conditions)
      return Error{Code::kInvalid, "501 NotImplemented"};
    if (condition.kind == Precondition::Kind::kAbsent && !faults.ignores_absent &&
        bucket_.objects.contains(key))
      return PutAnswer{.refused = true};
    if (condition.kind == Precondition::Kind::kMatches && !faults.ignores_match &&
        !matches(key, condition, form))
      return PutAnswer{.refused = true};
    const std::string etag = aws::sha256_hex(bytes).substr(0, 32);
    bucket_.objects.insert_or_assign(key, StoredObject{etag, bytes});
    return PutAnswer{.etag = etag};
  }

  MemoryBucket& bucket_;
};

}  // namespace pawl::guard
