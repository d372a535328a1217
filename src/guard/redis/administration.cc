// The administration of a guard in Redis, over a connection of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "guard/redis/access.h"
#include "guard/redis/calls.h"
#include "guard/redis/health.h"
#include "guard/redis/kind.h"
#include "guard/redis/names.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

// The names of all guards. Only for lists: a guard works without being in it.
constexpr const char* kIndex = "pawl:guards";

// In the place of a replication id: the guard was lost, and made anew without its fences.
constexpr const char* kLost = "lost";

// How far `problems` looks for guards when the list of them is gone.
constexpr int kScanSteps = 1000;

std::uint64_t to_number(const std::optional<std::string>& text) {
  std::uint64_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

std::string to_time(std::uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

// A guard as pawl_status answers it.
struct GuardRecord {
  std::string name;
  json::object policy = {};
  std::string fence = {};
  std::string server = {};
  std::uint64_t since = 0, missing_before = 0, would_refuse_before = 0;
  std::uint64_t replayed = 0, stale = 0, missing = 0, ahead = 0, malformed = 0, would_refuse = 0;

  [[nodiscard]] std::string text(std::string_view field) const {
    const json::value* found = policy.if_contains(field);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : "";
  }
  [[nodiscard]] std::vector<std::string> patterns() const {
    std::vector<std::string> list;
    const json::value* found = policy.if_contains("keys");
    if (found == nullptr || !found->is_array()) return list;  // Lua spells an empty list {}.
    for (const json::value& each : found->as_array()) list.emplace_back(each.as_string());
    return list;
  }
};

GuardRecord to_record(const std::string& name, const RedisAnswer& answer) {
  GuardRecord record{.name = name};
  std::error_code broken;
  const json::value policy = json::parse(answer.at(0).value_or("{}"), broken);
  if (!broken && policy.is_object()) record.policy = policy.as_object();
  record.fence = answer.at(1).value_or("");
  record.server = answer.at(2).value_or("");
  std::size_t at = 3;
  for (std::uint64_t* field :
       {&record.since, &record.missing_before, &record.would_refuse_before, &record.replayed,
        &record.stale, &record.missing, &record.ahead, &record.malformed, &record.would_refuse})
    *field = to_number(answer.at(at++));
  return record;
}

std::vector<std::string> reasons_not_ready(const GuardRecord& record) {
  std::vector<std::string> because;
  const std::string mode = record.text("mode");
  const std::string since = to_time(record.since);
  if (mode == "observe") because.emplace_back("nothing is judged in observe: shadow comes next");
  if (record.missing > record.missing_before)
    because.push_back(fmt::format("{} writes came without a token since {}",
                                  record.missing - record.missing_before, since));
  if (mode != "enforce" && record.would_refuse > record.would_refuse_before)
    because.push_back(fmt::format("{} writes would have been refused since {}",
                                  record.would_refuse - record.would_refuse_before, since));
  return because;
}

Status to_status(const GuardRecord& record) {
  Status status;
  status.guard = record.name;
  status.kind = record.text("kind");
  status.tables = record.patterns();
  status.mode = record.text("mode");
  if (status.mode == "canary") status.percent = static_cast<int>(to_number(record.text("percent")));
  status.require_token = record.text("require_token") == "on";
  status.equal = record.text("equal");
  status.max_step = to_number(record.text("max_step"));
  status.floor = to_number(record.text("floor"));
  if (const std::uint64_t fence = to_number(record.fence); fence != 0) status.fence = fence;
  status.replayed = record.replayed;
  status.stale = record.stale;
  status.missing = record.missing;
  status.ahead = record.ahead;
  status.malformed = record.malformed;
  status.would_refuse = record.would_refuse;
  status.because = reasons_not_ready(record);
  status.ready = status.because.empty();
  return status;
}

class RedisAdministration final : public Administration {
 public:
  explicit RedisAdministration(std::shared_ptr<RedisClient> client)
      : client_(std::move(client)),
        send_([client = client_](const RedisWords& words) { return client->command(words); }),
        calls_(send_,
               client_->dsn().script ? std::optional(RedisCalls::Form::kScript) : std::nullopt) {}

  [[nodiscard]] std::string_view title() const override { return "Redis"; }
  // A call in Redis never waits for another, and a function is not told who calls it.
  [[nodiscard]] bool can(Task task) const override {
    return task != Task::kBlockers && task != Task::kEvict && task != Task::kSightings;
  }

  Result<std::optional<Installation>> installed() override {
    const auto found = calls_.installed();
    if (!found) return found.error();
    if (!*found) return std::optional<Installation>{};
    return std::optional<Installation>{
        {(*found)->version, static_cast<int>(to_number((*found)->contract))}};
  }

  Result<Installation> install(Rehearse rehearse) override {
    const auto before = installed();
    if (!before) return before.error();
    if (*before && (*before)->contract > kGuardContract)
      return Error{Code::kInvalid,
                   fmt::format("guard {} (contract {}) is installed here; this pawl knows contract "
                               "{} only. Use a newer pawl.",
                               (*before)->version, (*before)->contract, kGuardContract)};
    const Installation offered{offered_version(), kGuardContract};
    if (rehearse == Rehearse::kYes) return offered;
    const RedisAnswer done = load();
    if (!done) return to_error(*done.failure);
    return offered;
  }

  Result<void> uninstall(Rehearse rehearse) override {
    const auto names = guard_names();
    if (!names) return names.error();
    if (rehearse == Rehearse::kYes) return {};
    for (const std::string& name : *names) {
      if (const auto done = send_({"DEL", guard_key(name), guard_key(name) + ":audit"}); !done)
        return to_error(*done.failure);
    }
    for (const char* key : {kIndex, kScriptMark}) {
      if (const auto done = send_({"DEL", key}); !done) return to_error(*done.failure);
    }
    if (calls_.form() == RedisCalls::Form::kScript) return {};
    const RedisAnswer done = client_->on_every_master({"FUNCTION", "DELETE", "pawl"});
    if (!done) return to_error(*done.failure);
    return {};
  }

  [[nodiscard]] Result<std::string_view> script() const override { return redis_library(); }

  Result<std::string> protect(const Protection& wanted, Rehearse rehearse) override {
    const auto made = to_redis_protection(wanted, in_cluster());
    if (!made) return made.error();
    const auto others = records("");
    if (!others) return others.error();
    for (const GuardRecord& other : *others) {
      for (const std::string& pattern : other.patterns()) {
        if (other.name != made->guard && overlap(pattern, wanted.table))
          return Error{Code::kInvalid, fmt::format("{} is under guard {} already, which has {}",
                                                   wanted.table, other.name, pattern)};
      }
    }
    const bool lost = is_lost(made->guard);
    const auto done = change("pawl_protect", made->guard,
                             {wanted.table, made->kind, made->by, wanted.mode}, rehearse);
    if (!done) return done.error();
    if (rehearse == Rehearse::kYes) return made->guard;
    if (lost) {
      if (const auto noted = send_({"HSET", guard_key(made->guard), "server", kLost}); !noted)
        return to_error(*noted.failure);
    }
    if (const auto listed = send_({"SADD", kIndex, made->guard}); !listed)
      return to_error(*listed.failure);
    return made->guard;
  }

  [[nodiscard]] Result<std::string> access_advice(const std::string& guard) override {
    const auto found = records(guard);
    if (!found) return found.error();
    const std::vector<std::string> patterns = found->front().patterns();
    const RedisAccess access = find_access(send_, guard, patterns);
    if (access.users.empty() && access.unknown.empty()) return std::string();
    return access_rules(guard, patterns);
  }

  Result<void> unprotect(const std::string& table, Rehearse rehearse) override {
    const auto all = records("");
    if (!all) return all.error();
    for (const GuardRecord& record : *all) {
      const auto patterns = record.patterns();
      if (std::find(patterns.begin(), patterns.end(), table) != patterns.end())
        return change("pawl_unprotect", record.name, {table}, rehearse);
    }
    return Error{Code::kInvalid, fmt::format("{} is not under guard", table)};
  }

  Result<void> drop(const std::string& guard, Rehearse rehearse) override {
    if (const auto done = change("pawl_drop", guard, {}, rehearse); !done) return done.error();
    if (rehearse == Rehearse::kYes) return {};
    if (const auto done = send_({"SREM", kIndex, guard}); !done) return to_error(*done.failure);
    return {};
  }

  Result<std::vector<Problem>> problems() override {
    const auto names = guard_names();
    if (!names) return names.error();
    std::vector<Problem> list;
    if (names->empty()) find_unlisted(list);
    for (const std::string& name : *names) {
      const auto found = records(name);
      if (!found) {
        list.push_back({"error", name, guard_key(name),
                        "the guard is gone: its key was deleted, evicted or has expired, and every "
                        "guarded write is refused",
                        "pawl guard protect redis again, and then " + settle(name)});
        continue;
      }
      for (Problem& error : find_errors_of(found->front())) list.push_back(std::move(error));
      find_bypasses_of(found->front(), list);
    }
    return list;
  }

  Result<std::vector<Status>> status(const std::string& guard) override {
    const auto found = records(guard);
    if (!found) return found.error();
    const auto weaknesses = find_weaknesses(send_);
    std::vector<Status> list;
    for (const GuardRecord& record : *found) {
      Status status = to_status(record);
      auto why = weaknesses;
      if (const std::string around = describe(find_access(send_, record.name, record.patterns()));
          !around.empty())
        why.push_back(around);
      status.strength = to_strength(why);
      weaken_by_problems(status, find_errors_of(record));
      list.push_back(std::move(status));
    }
    return list;
  }

  Result<void> set_mode(const ModeChange& wanted, Rehearse rehearse) override {
    if (wanted.mode == "canary" || wanted.mode == "enforce") {
      if (const auto sound = insist_on_no_error(wanted.guard); !sound) return sound.error();
    }
    return change(
        "pawl_mode", wanted.guard,
        {wanted.mode, wanted.percent ? std::to_string(*wanted.percent) : "", wanted.reason, "mode"},
        rehearse);
  }

  Result<void> set_policy(const PolicyChange& wanted, Rehearse rehearse) override {
    if (wanted.bare_token)
      return Error{Code::kInvalid, "bare_token is a policy of guards in PostgreSQL"};
    std::string require;
    if (wanted.require_token) require = *wanted.require_token ? "on" : "off";
    return change("pawl_policy", wanted.guard,
                  {require, wanted.equal.value_or(""),
                   wanted.max_step ? std::to_string(*wanted.max_step) : "", wanted.reason},
                  rehearse);
  }

  Result<void> emergency(const std::string& guard, const std::string& reason) override {
    auto names = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_names();
      if (!all) return all.error();
      names = *std::move(all);
    }
    for (const std::string& name : names) {
      const auto done =
          change("pawl_mode", name, {"shadow", "", reason, "emergency"}, Rehearse::kNo);
      if (!done) return done.error();
    }
    return {};
  }

  Result<std::optional<std::uint64_t>> fence(const std::string& resource) override {
    const RedisAnswer asked = calls_.call("pawl_max", resource, {resource});
    if (!asked) return to_error(*asked.failure);
    const std::uint64_t fence = to_number(to_text(asked.reply));
    return fence == 0 ? std::optional<std::uint64_t>{} : fence;
  }

  Result<std::uint64_t> advance(const std::string& resource, std::uint64_t token,
                                std::chrono::milliseconds, Stragglers stragglers) override {
    if (stragglers == Stragglers::kEvict) return unable(Task::kEvict);
    return calls_.advance(resource, token);
  }

  Result<void> compact(const std::string& guard, std::uint64_t below, Rehearse rehearse) override {
    const auto done = change("pawl_compact", guard, {std::to_string(below)}, rehearse);
    if (!done || rehearse == Rehearse::kYes) return done;
    std::string cursor = "0";
    do {
      const RedisAnswer step = calls_.call("pawl_forget", guard, {cursor});
      if (!step) return to_error(*step.failure);
      cursor = to_text(step.reply).value_or("0");
    } while (cursor != "0");
    return {};
  }

 private:
  // The version that the library says it is.
  static std::string offered_version() {
    constexpr std::string_view kBefore = "VERSION = '";
    const std::string_view file = redis_library();
    PAWL_ASSERT(file.find(kBefore) != file.npos);
    const std::size_t from = file.find(kBefore) + kBefore.size();
    return std::string(file.substr(from, file.find('\'', from) - from));
  }

  // Functions where there are any; else a mark that clients are to use the script.
  RedisAnswer load() {
    const std::string mark = fmt::format("{} {}", offered_version(), kGuardContract);
    if (client_->dsn().script) return send_({"SET", kScriptMark, mark});
    RedisAnswer done =
        client_->on_every_master({"FUNCTION", "LOAD", "REPLACE", std::string(redis_library())});
    if (done || done.failure->text.find("unknown command") == std::string::npos) return done;
    return send_({"SET", kScriptMark, mark});
  }

  bool in_cluster() {
    const RedisAnswer info = send_({"INFO", "cluster"});
    return info && info_field("\n" + info.reply.text, "cluster_enabled") == "1";
  }

  Result<void> change(std::string_view function, const std::string& guard, RedisWords arguments,
                      Rehearse rehearse) {
    arguments.emplace_back(rehearse == Rehearse::kYes ? "rehearse" : "change");
    const RedisAnswer done = calls_.call(function, guard, std::move(arguments));
    if (!done) return to_error(*done.failure);
    return {};
  }

  Result<std::vector<std::string>> guard_names() {
    const RedisAnswer found = send_({"SMEMBERS", kIndex});
    if (!found) return to_error(*found.failure);
    std::vector<std::string> names;
    for (const RedisReply& each : found.reply.items) names.push_back(each.text);
    std::sort(names.begin(), names.end());
    return names;
  }

  // Of one guard, or of all that are there when `guard` is empty.
  Result<std::vector<GuardRecord>> records(const std::string& guard) {
    auto names = std::vector<std::string>{guard};
    if (guard.empty()) {
      auto all = guard_names();
      if (!all) return all.error();
      names = *std::move(all);
    }
    std::vector<GuardRecord> list;
    for (const std::string& name : names) {
      const RedisAnswer answer = calls_.call("pawl_status", name, {});
      if (answer) {
        list.push_back(to_record(name, answer));
      } else if (!guard.empty() && answer.failure->word() == "PAWLUNGUARDED") {
        return Error{Code::kInvalid, fmt::format("there is no guard \"{}\" here", guard)};
      } else if (answer.failure->word() != "PAWLUNGUARDED") {
        return to_error(*answer.failure);
      }
    }
    return list;
  }

  static std::string describe(const RedisAccess& access) {
    if (!access.unknown.empty())
      return fmt::format("whether others may write around it is not known: {}", access.unknown);
    if (access.users.empty()) return {};
    return fmt::format("no ACL rule keeps the user {} from writing around it",
                       fmt::join(access.users, ", "));
  }

  std::vector<Problem> find_errors_of(const GuardRecord& record) {
    std::vector<Problem> list;
    const std::string key = guard_key(record.name);
    const RedisAnswer expiry = send_({"PTTL", key});
    if (expiry && expiry.reply.integer != -1)
      list.push_back({"error", record.name, key,
                      "the fences have an expiry: they will be lost, and every guarded write "
                      "refused",
                      fmt::format("redis-cli PERSIST '{}'", key)});
    if (record.server == kLost)
      list.push_back({"error", record.name, key,
                      "the guard was lost and made anew: it does not know the tokens that were "
                      "here before, and older ones pass",
                      settle(record.name)});
    if (was_promoted_since(record))
      list.push_back({"error", record.name, key,
                      "this server was a replica and was promoted: fences that the former master "
                      "acknowledged last may be lost, and older tokens pass",
                      settle(record.name)});
    return list;
  }

  static std::string settle(const std::string& guard) {
    return fmt::format(
        "pawl guard compact redis {}, which refuses all tokens older than the live ones", guard);
  }

  // In the list, but without its hash.
  bool is_lost(const std::string& guard) {
    const RedisAnswer listed = send_({"SISMEMBER", kIndex, guard});
    if (!listed || listed.reply.integer != 1) return false;
    const RedisAnswer there = send_({"EXISTS", guard_key(guard)});
    return there && there.reply.integer == 0;
  }

  // Guards that work, but that `status`, `emergency` and `protect` do not see.
  void find_unlisted(std::vector<Problem>& list) {
    std::string cursor = "0";
    for (int step = 0; step < kScanSteps; ++step) {
      const RedisAnswer found = send_({"SCAN", cursor, "MATCH", guard_key("*"), "COUNT", "1000"});
      if (!found || found.reply.items.size() != 2) return;
      for (const RedisReply& key : found.reply.items[1].items) {
        const std::string name(hash_tag(key.text));
        list.push_back({"error", name, key.text,
                        "the guard is not in the list of guards any more: it judges, but status, "
                        "emergency and protect do not see it",
                        fmt::format("redis-cli SADD {} {}", kIndex, name)});
      }
      cursor = found.reply.items[0].text;
      if (cursor == "0") return;
    }
  }

  void find_bypasses_of(const GuardRecord& record, std::vector<Problem>& list) {
    for (const std::string& pattern : record.patterns()) {
      const std::string around = describe(find_access(send_, record.name, {pattern}));
      if (around.empty()) continue;
      list.push_back({"warning", record.name, pattern, around,
                      "the rules that pawl guard protect redis prints; see ACL in the how-to"});
    }
  }

  // A replica that is promoted remembers the id of its former master as the second one. That need
  // not be the one of the record: a restart and the first replica give a master a new one.
  bool was_promoted_since(const GuardRecord& record) {
    const RedisAnswer info = send_({"INFO", "replication"});
    if (!info || record.server.empty() || record.server == kLost) return false;
    const std::string text = "\n" + info.reply.text;
    const std::string_view former = info_field(text, "master_replid2");
    return info_field(text, "role") == "master" &&
           info_field(text, "master_replid") != record.server &&
           former.find_first_not_of('0') != former.npos;
  }

  Result<void> insist_on_no_error(const std::string& guard) {
    const auto found = records(guard);
    if (!found) return found.error();
    const auto errors = find_errors_of(found->front());
    if (errors.empty()) return {};
    const Problem& first = errors.front();
    return Error{Code::kInvalid, fmt::format("the mode stays as it is: {}: {}. {}", first.object,
                                             first.problem, first.fix)};
  }

  const std::shared_ptr<RedisClient> client_;
  const RedisSend send_;
  RedisCalls calls_;
};

}  // namespace

Result<std::unique_ptr<Administration>> open_redis_administration(const std::string& dsn) {
  const auto where = parse_redis_dsn(dsn);
  if (!where) return where.error();
  auto client = RedisClient::open(*where);
  if (!client) return client.error();
  auto administration = std::make_unique<RedisAdministration>(*std::move(client));
  // Finds out whether functions or the script are in use.
  if (const auto found = administration->installed(); !found) return found.error();
  return std::unique_ptr<Administration>(std::move(administration));
}

}  // namespace pawl::guard
