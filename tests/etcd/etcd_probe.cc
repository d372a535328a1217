// Drives the etcd client by lines of text, for the tests against a real etcd.
//
//   etcd_probe HOST:PORT,… [--user U --password P] [--ca FILE] [--cert FILE --key FILE]
//              [--attempt-ms N] [--resend-ms N] [--status-ms N]
//   etcd_probe --decode range|txn|watch|status|compaction|authenticate < bytes
//
// Commands on stdin, and what they begin; "-" stands for an absent value:
//
//   txn KEY OLD NEW              compare, put, and range KEY if the comparison fails
//   append PREFIX HEAD NEXT N FIRST BYTES    the transaction of a log: compare and put PREFIXhead,
//                                put PREFIXlog/N of so many bytes, delete the entries before FIRST
//   duplicate KEY                a transaction that etcd refuses: it puts KEY twice
//   range KEY END REVISION | watch KEY END REVISION | compact REVISION | progress CALL
//   cancel CALL
//   endpoints                    what is known of the endpoints
//   count KEY N MICROSECONDS SEED    N transactions, one after the other, from the value 0 to N;
//                                the first attempts of each have a random time, up to MICROSECONDS
//
// Each answer is one line of JSON: {"call": n} as soon as a call has begun, then one line for each
// of its events.
#include <poll.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/boot_clock.h"
#include "base/random.h"
#include "etcd/driver.h"
#include "etcd/messages.h"

namespace pawl::etcd {
namespace {

namespace json = boost::json;

constexpr std::size_t kShown = 256;

// --- JSON ----------------------------------------------------------------------------------------

json::object to_json(const ResponseHeader& header) {
  return {{"cluster_id", header.cluster_id},
          {"member_id", header.member_id},
          {"revision", header.revision},
          {"raft_term", header.raft_term}};
}

json::object to_json(const KeyValue& kv) {
  return {{"key", kv.key},
          {"value", kv.value.substr(0, kShown)},
          {"size", kv.value.size()},
          {"create_revision", kv.create_revision},
          {"mod_revision", kv.mod_revision},
          {"version", kv.version}};
}

json::object to_json(const RangeResponse& range) {
  json::array kvs;
  for (const KeyValue& kv : range.kvs) kvs.push_back(to_json(kv));
  return {{"header", to_json(range.header)},
          {"kvs", kvs},
          {"more", range.more},
          {"count", range.count}};
}

json::object to_json(const TxnResponse& txn) {
  json::array responses;
  for (const ResponseOp& op : txn.responses) {
    if (const auto* range = std::get_if<RangeResponse>(&op)) {
      responses.push_back(json::object{{"range", to_json(*range)}});
    } else if (const auto* deleted = std::get_if<DeleteRangeResponse>(&op)) {
      responses.push_back(json::object{{"deleted", deleted->deleted}});
    } else {
      responses.push_back(json::object{{"put", true}});
    }
  }
  return {{"header", to_json(txn.header)}, {"succeeded", txn.succeeded}, {"responses", responses}};
}

json::object to_json(const WatchResponse& watch) {
  json::array events;
  for (const WatchEvent& event : watch.events)
    events.push_back(json::object{{"delete", event.is_delete}, {"kv", to_json(event.kv)}});
  return {{"header", to_json(watch.header)},
          {"created", watch.created},
          {"canceled", watch.canceled},
          {"compact_revision", watch.compact_revision},
          {"cancel_reason", watch.cancel_reason},
          {"fragment", watch.fragment},
          {"events", events}};
}

json::object to_json(const StatusResponse& status) {
  return {{"header", to_json(status.header)}, {"version", status.version},
          {"db_size", status.db_size},        {"db_size_in_use", status.db_size_in_use},
          {"leader", status.leader},          {"is_leader", status.is_leader()},
          {"raft_term", status.raft_term},    {"errors", json::value_from(status.errors)}};
}

json::object to_json(const CompactionResponse& answer) {
  return {{"header", to_json(answer.header)}};
}

json::object to_json(const AuthenticateResponse& answer) {
  return {{"header", to_json(answer.header)}, {"token", answer.token}};
}

std::string_view to_text(TxnDone::Outcome outcome) {
  switch (outcome) {
    case TxnDone::Outcome::kApplied:
      return "applied";
    case TxnDone::Outcome::kCompareFailed:
      return "compare_failed";
    case TxnDone::Outcome::kFatal:
      return "fatal";
  }
  return "";
}

std::string_view to_text(RangeDone::Outcome outcome) {
  switch (outcome) {
    case RangeDone::Outcome::kAnswered:
      return "answered";
    case RangeDone::Outcome::kCompacted:
      return "compacted";
    case RangeDone::Outcome::kFatal:
      return "fatal";
  }
  return "";
}

json::object event_json(const TxnDone& done) {
  json::object out{{"call", done.call.value},   {"txn", to_text(done.outcome)},
                   {"sends", done.sends.count}, {"went_back", done.went_back},
                   {"text", done.text},         {"answer", to_json(done.answer)}};
  if (done.found) out["found"] = to_json(*done.found);
  return out;
}
json::object event_json(const RangeDone& done) {
  return {{"call", done.call.value},
          {"range", to_text(done.outcome)},
          {"went_back", done.went_back},
          {"text", done.text},
          {"answer", to_json(done.answer)}};
}
json::object event_json(const CompactionDone& done) {
  return {{"call", done.call.value}, {"compaction", done.done}, {"text", done.text}};
}
json::object event_json(const WatchAnswer& answer) {
  return {{"call", answer.call.value}, {"watch", to_json(answer.answer)}};
}
json::object event_json(const WatchEnded& ended) {
  return {{"call", ended.call.value}, {"ended", ended.text}};
}
json::object event_json(const Trouble& trouble) {
  return {{"trouble", trouble.text}, {"endpoint", trouble.endpoint}};
}

void print(const json::object& line) {
  std::cout << json::serialize(line) << std::endl;
}

// --- Decoding ------------------------------------------------------------------------------------

template <class Answer>
int print_decoded(const Result<Answer>& answer) {
  if (!answer) {
    std::cerr << answer.error().detail << "\n";
    return 1;
  }
  print(to_json(*answer));
  return 0;
}

int decode(std::string_view kind) {
  const std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  if (kind == "range") return print_decoded(decode_range(bytes));
  if (kind == "txn") return print_decoded(decode_txn(bytes));
  if (kind == "watch") return print_decoded(decode_watch(bytes));
  if (kind == "status") return print_decoded(decode_status(bytes));
  if (kind == "compaction") return print_decoded(decode_compaction(bytes));
  if (kind == "authenticate") return print_decoded(decode_authenticate(bytes));
  std::cerr << "unknown kind of message\n";
  return 64;
}

// --- Commands ------------------------------------------------------------------------------------

Compare value_is(const std::string& key, const std::string& old) {
  if (old == "-") return CreateRevisionIs{key, 0};
  return ValueIs{key, old};
}

std::string step_request(const std::string& key, const std::string& old, const std::string& next) {
  return encode(TxnRequest{.compare = {value_is(key, old)},
                           .success = {PutRequest{key, next}},
                           .failure = {RangeRequest{key}}});
}

// Counts from 0 to n, one transaction for each step.
class Counter {
 public:
  Counter(Client& client, std::string key, std::uint64_t steps, std::uint64_t micros,
          std::uint64_t seed)
      : client_(client), key_(std::move(key)), steps_(steps), micros_(micros), random_(seed) {
    begin_step();
  }

  // Whether the event was one of its own.
  bool take(const Event& event) {
    if (std::holds_alternative<Trouble>(event)) {
      take_trouble();
      return true;
    }
    const auto* done = std::get_if<TxnDone>(&event);
    if (done == nullptr || done->call != call_) return false;
    const std::string written = std::to_string(at_);
    if (done->outcome == TxnDone::Outcome::kCompareFailed && done->found &&
        done->found->value == written) {
      earlier_ += 1;  // An earlier send was applied.
    } else if (done->outcome != TxnDone::Outcome::kApplied) {
      failed_ = event_json(*done);
    }
    if (unknown_here_ > 0) settled_ += 1;
    if (at_ < steps_ && !failed_)
      begin_step();
    else
      finished_ = true;
    return true;
  }
  [[nodiscard]] bool is_finished() const { return finished_; }
  [[nodiscard]] json::object result() const {
    json::object out{{"counted", at_},
                     {"unknown", unknown_},
                     {"settled", settled_},
                     {"earlier_send_applied", earlier_}};
    if (failed_) out["failed"] = *failed_;
    return out;
  }

 private:
  static constexpr std::uint64_t kShortAttempts = 3;
  static constexpr Nanos kLongTime = std::chrono::seconds(1);

  void begin_step() {
    const std::string old = at_ == 0 ? "-" : std::to_string(at_);
    at_ += 1;
    unknown_here_ = 0;
    request_ = step_request(key_, old, std::to_string(at_));
    call_ = client_.transact(request_, short_time());
  }
  // A time that is too short for every attempt would never end.
  void take_trouble() {
    unknown_ += 1;
    unknown_here_ += 1;
    if (unknown_here_ != kShortAttempts) return;
    client_.cancel(call_);
    call_ = client_.transact(request_, kLongTime);
  }
  std::optional<Nanos> short_time() {
    if (micros_ == 0) return std::nullopt;
    return std::chrono::microseconds(random_.below(micros_));
  }

  Client& client_;
  const std::string key_;
  const std::uint64_t steps_;
  const std::uint64_t micros_;
  SeededRandom random_;
  CallId call_;
  std::string request_;
  std::uint64_t at_ = 0;
  std::uint64_t unknown_here_ = 0;
  std::uint64_t unknown_ = 0, settled_ = 0, earlier_ = 0;
  std::optional<json::object> failed_;
  bool finished_ = false;
};

class Probe {
 public:
  explicit Probe(Driver& driver) : driver_(driver) {}

  // Until the end of stdin.
  void run() {
    while (!ended_) {
      driver_.pump(boot_now());
      for (const Event& event : driver_.client().take_events()) take(event);
      if (counter_ && counter_->is_finished()) {
        print(counter_->result());
        counter_.reset();
        continue;
      }
      // What an event has begun is to be sent now.
      driver_.pump(boot_now());
      std::vector<pollfd> ready = driver_.interest();
      ready.push_back({STDIN_FILENO, POLLIN, 0});
      ::poll(ready.data(), ready.size(), poll_timeout(driver_.deadline() - boot_now()));
      if (ready.back().revents != 0) read_commands();
    }
  }

 private:
  void take(const Event& event) {
    if (counter_ && counter_->take(event)) return;
    print(std::visit([](const auto& one) { return event_json(one); }, event));
  }

  void read_commands() {
    char buffer[4096];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got <= 0) {
      ended_ = true;
      return;
    }
    input_.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = input_.find('\n')) != std::string::npos;) {
      std::istringstream line(input_.substr(0, end));
      input_.erase(0, end + 1);
      const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
      if (!words.empty()) command(words);
    }
  }

  void command(std::vector<std::string> words) {
    Client& client = driver_.client();
    for (std::string& word : words) {
      if (word == "-" && words[0] != "txn" && words[0] != "append") word.clear();
    }
    const std::string& verb = words[0];
    if (verb == "txn") {
      began(client.transact(step_request(words.at(1), words.at(2), words.at(3))));
    } else if (verb == "append") {
      began(client.transact(append_request(words)));
    } else if (verb == "duplicate") {
      const PutRequest put{words.at(1), "x"};
      began(
          client.transact(encode(TxnRequest{.compare = {}, .success = {put, put}, .failure = {}})));
    } else if (verb == "range") {
      began(client.range({words.at(1), words.at(2), 0, std::stoll(words.at(3))}, Millis(10'000)));
    } else if (verb == "compact") {
      began(client.compact(std::stoll(words.at(1))));
    } else if (verb == "watch") {
      began(client.watch({.key = words.at(1),
                          .range_end = words.at(2),
                          .start_revision = std::stoll(words.at(3)),
                          .fragment = true}));
    } else if (verb == "progress") {
      client.ask_progress({std::stoull(words.at(1))});
    } else if (verb == "cancel") {
      client.cancel({std::stoull(words.at(1))});
    } else if (verb == "endpoints") {
      print_endpoints();
    } else if (verb == "count") {
      counter_.emplace(client, words.at(1), std::stoull(words.at(2)), std::stoull(words.at(3)),
                       std::stoull(words.at(4)));
    } else {
      PAWL_ASSERT(false);
    }
  }

  static std::string append_request(const std::vector<std::string>& words) {
    const std::string head = words.at(1) + "head";
    const std::string log = words.at(1) + "log/";
    TxnRequest request{
        .compare = {value_is(head, words.at(2))},
        .success = {PutRequest{head, words.at(3)},
                    PutRequest{log + words.at(4), std::string(std::stoull(words.at(6)), 'x')}},
        .failure = {RangeRequest{head}}};
    if (words.at(5) != "-")
      request.success.push_back(DeleteRangeRequest{log + "0", log + words.at(5)});
    return encode(request);
  }

  void print_endpoints() {
    json::array all;
    for (const EndpointView& view : driver_.client().endpoints()) {
      json::object one{{"name", view.name}, {"usable", view.usable}, {"error", view.error}};
      if (view.status) one["status"] = to_json(*view.status);
      all.push_back(one);
    }
    print({{"endpoints", all}});
  }

  static void began(CallId call) { print({{"call", call.value}, {"began", true}}); }

  Driver& driver_;
  std::string input_;
  std::optional<Counter> counter_;
  bool ended_ = false;
};

int run(const std::vector<std::string>& words) {
  std::map<std::string, std::string> given;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) given[words[i]] = words[i + 1];
  DriverOptions options;
  const auto endpoints = parse_endpoints(words.at(0));
  PAWL_ASSERT(endpoints.has_value());
  options.endpoints = *endpoints;
  options.client.user = given["--user"];
  options.client.password = given["--password"];
  const auto millis = [&](const char* name, Nanos& into) {
    if (given.contains(name)) into = Millis(std::stoll(given[name]));
  };
  millis("--attempt-ms", options.client.attempt_time);
  millis("--resend-ms", options.client.resend_pause);
  millis("--status-ms", options.client.status_interval);
  millis("--reconnect-ms", options.client.reconnect_pause);
  if (given.contains("--ca")) {
    const auto tls = tls::ClientContext::load(
        {.ca = given["--ca"], .cert = given["--cert"], .key = given["--key"]});
    PAWL_ASSERT(tls.has_value());
    options.tls = *tls;
  }
  const auto driver = Driver::create(std::move(options));
  PAWL_ASSERT(driver.has_value());
  Probe(**driver).run();
  return 0;
}

}  // namespace
}  // namespace pawl::etcd

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "--decode") return pawl::etcd::decode(words[1]);
  return pawl::etcd::run(words);
}
