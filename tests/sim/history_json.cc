#include "sim/history_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <span>
#include <utility>

#include "base/hex.h"
#include "base/limits.h"

namespace pawl::sim {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 3> kModes{"exclusive", "shared", "limit"};
constexpr std::array<std::string_view, 3> kDemands{"all", "clock_free", "tokens_only"};
constexpr std::array<std::string_view, 4> kAnswers{"granted", "nothing", "lost", "conflict"};
constexpr std::array<std::string_view, 5> kEffects{"advance", "read", "check", "write", "delete"};
constexpr std::array<std::string_view, 5> kVerdicts{"admitted", "replayed", "stale", "stale_op",
                                                    "ahead"};

std::span<const std::string_view> words_of(Mode) {
  return kModes;
}
std::span<const std::string_view> words_of(Demand) {
  return kDemands;
}
std::span<const std::string_view> words_of(Replay::Answer) {
  return kAnswers;
}
std::span<const std::string_view> words_of(Effect::Kind) {
  return kEffects;
}
std::span<const std::string_view> words_of(Effect::Verdict) {
  return kVerdicts;
}

// --- The format: one visit() per kind of record. must() is what a record cannot be without. ------

template <class Fields>
void visit(Fields& f, Attempt& a) {
  f("client", a.client);
  f("request", a.request);
  f("lease", a.lease);
  f.must("locks", a.locks);
  f("mode", a.mode);
  f("limit", a.limit);
  f.must("ttl_ms", a.ttl);
  f("delay_ms", a.delay);
  f("max_hold_ms", a.max_hold);
  f("owner", a.owner);
  f("value", a.value);
  f.must("asked_ns", a.asked);
  f("queued_ns", a.queued);
  f("answered_ns", a.answered);
  f("ended_ns", a.ended);
  f("token", a.token);
  f("floor", a.floor);
  f("slot", a.slot);
  f("waited_ms", a.waited);
  f("believed_until_ns", a.believed_until);
  f("lost_early", a.lost_early);
}
template <class Fields>
void visit(Fields& f, Renewal& r) {
  f.must("token", r.token);
  f.must("sent_ns", r.sent);
  f("returned_ns", r.returned);
  f("ok", r.ok);
  f("answered_ms", r.answered);
}
template <class Fields>
void visit(Fields& f, Release& r) {
  f.must("token", r.token);
  f.must("invoked_ns", r.invoked);
  f("returned_ns", r.returned);
  f("was_live", r.was_live);
}
template <class Fields>
void visit(Fields& f, Break& b) {
  f.must("token", b.token);
  f("now", b.now);
  f.must("invoked_ns", b.invoked);
  f("returned_ns", b.returned);
  f("was_live", b.was_live);
}
template <class Fields>
void visit(Fields& f, Sighting& s) {
  f.must("lock", s.lock);
  f("token", s.token);
  f.must("invoked_ns", s.invoked);
  f("returned_ns", s.returned);
}
template <class Fields>
void visit(Fields& f, Replay& r) {
  f.must("request", r.request);
  f("altered", r.altered);
  f.must("invoked_ns", r.invoked);
  f("returned_ns", r.returned);
  f("answer", r.answer);
  f("token", r.token);
}
template <class Fields>
void visit(Fields& f, Withdrawal& w) {
  f.must("request", w.request);
  f.must("invoked_ns", w.invoked);
  f("returned_ns", w.returned);
}
template <class Fields>
void visit(Fields& f, Raise& r) {
  f.must("token", r.token);
  f.must("invoked_ns", r.invoked);
  f("returned_ns", r.returned);
}
template <class Fields>
void visit(Fields& f, Leading& l) {
  f.must("observer", l.observer);
  f.must("lock", l.lock);
  f("token", l.token);
  f("owner", l.owner);
  f("value", l.value);
  f.must("at_ns", l.at);
}
template <class Fields>
void visit(Fields& f, Effect& e) {
  f.must("resource", e.resource);
  f.must("effect", e.kind);
  f.must("token", e.token);
  f("op", e.op);
  f.must("verdict", e.verdict);
  f("changed", e.changed);
  f.must("at_ns", e.at);
}
template <class Fields>
void visit(Fields& f, Start& s) {
  f.must("at_ns", s.at);
  f.must("last_token", s.last_token);
  f("restoring_ms", s.restoring);
}
template <class Fields>
void visit(Fields& f, Restore& r) {
  f.must("lost_ns", r.lost);
  f.must("last_token", r.last_token);
}
template <class Fields>
void visit(Fields& f, Pause& p) {
  f.must("from_ns", p.from);
  f.must("to_ns", p.to);
}

// Calls `each(kind, list)` for every kind of record.
template <class HistoryType, class Each>
void for_each_kind(HistoryType& h, Each each) {
  each("attempt", h.attempts);
  each("renewal", h.renewals);
  each("release", h.releases);
  each("break", h.breaks);
  each("sighting", h.sightings);
  each("replay", h.replays);
  each("withdrawal", h.withdrawals);
  each("raise", h.raises);
  each("leading", h.leaders);
  each("effect", h.effects);
  each("start", h.starts);
  each("restore", h.restores);
  each("pause", h.pauses);
}

// --- Writing: what is at its default is left out. ------------------------------------------------

json::value write(Moment m) {
  return m.time_since_epoch().count();
}
json::value write(Millis span) {
  return span.count();
}
json::value write(Token token) {
  return token.value;
}
json::value write(LeaseId lease) {
  return json::string(to_hex(lease));
}
json::value write(const std::string& text) {
  return json::string(text);
}
json::value write(bool yes) {
  return yes;
}
json::value write(const std::vector<std::string>& texts) {
  json::array all;
  for (const std::string& text : texts) all.push_back(write(text));
  return all;
}
template <class Number>
requires std::is_integral_v<Number> json::value write(Number number) {
  return number;
}
template <class Enum>
requires std::is_enum_v<Enum> json::value write(Enum choice) {
  return json::string(words_of(choice)[static_cast<std::size_t>(choice)]);
}
template <class T>
json::value write(const std::optional<T>& value) {
  return value ? write(*value) : json::value();
}

class Writer {
 public:
  // `plain`: a record of its kind in which nothing is set; nullptr: everything is written.
  Writer(std::string_view kind, const json::object* plain) : plain_(plain) {
    object_["kind"] = kind;
  }
  template <class T>
  void operator()(std::string_view name, const T& value) {
    json::value written = write(value);
    if (plain_ == nullptr || written != plain_->at(name)) object_[name] = std::move(written);
  }
  template <class T>
  void must(std::string_view name, const T& value) {
    object_[name] = write(value);
  }
  json::object take() { return std::move(object_); }

 private:
  const json::object* plain_;
  json::object object_;
};

template <class Record>
json::object described(std::string_view kind, Record record, const json::object* plain) {
  Writer writer(kind, plain);
  visit(writer, record);
  return writer.take();
}

template <class Record>
void add_line(std::string& out, std::string_view kind, const Record& record) {
  static const json::object plain = described(kind, Record{}, nullptr);
  out += json::serialize(described(kind, record, &plain)) + "\n";
}

// --- Reading -------------------------------------------------------------------------------------

class Reader {
 public:
  Reader(const json::object& object, std::string& wrong) : object_(object), wrong_(wrong) {}

  template <class T>
  void operator()(std::string_view name, T& value) {
    if (const json::value* found = take(name)) {
      if (!read(*found, value)) complain(name, "is not what it should be");
    }
  }
  template <class T>
  void must(std::string_view name, T& value) {
    if (!object_.contains(name)) return complain(name, "is missing");
    (*this)(name, value);
  }
  // An unknown member is a mistake of the writer.
  void done() {
    for (const auto& [name, value] : object_) {
      if (name != "kind" && std::find(taken_.begin(), taken_.end(), name) == taken_.end())
        complain(name, "is not known");
    }
  }

 private:
  const json::value* take(std::string_view name) {
    taken_.push_back(name);
    return object_.if_contains(name);
  }
  void complain(std::string_view name, std::string_view what) {
    if (wrong_.empty()) wrong_ = fmt::format("\"{}\" {}", name, what);
  }

  static bool read(const json::value& from, std::int64_t& number) {
    if (const auto* positive = from.if_uint64(); positive != nullptr && *positive <= INT64_MAX) {
      number = static_cast<std::int64_t>(*positive);
      return true;
    }
    const auto* whole = from.if_int64();
    if (whole != nullptr) number = *whole;
    return whole != nullptr;
  }
  template <class Number>
  requires std::is_integral_v<Number>
  static bool read(const json::value& from, Number& number) {
    std::int64_t whole = 0;
    if (!read(from, whole) || !std::in_range<Number>(whole)) return false;
    number = static_cast<Number>(whole);
    return true;
  }
  static bool read(const json::value& from, bool& yes) {
    if (!from.is_bool()) return false;
    yes = from.get_bool();
    return true;
  }
  static bool read(const json::value& from, Moment& moment) {
    std::int64_t ns = 0;
    if (!read(from, ns)) return false;
    moment = Moment(Nanos(ns));
    return true;
  }
  static bool read(const json::value& from, Millis& span) {
    std::int64_t ms = 0;
    // Anything longer could not be added to a moment.
    if (!read(from, ms) || ms < 0 ||
        ms > std::chrono::milliseconds(std::chrono::hours(24 * 366)).count())
      return false;
    span = Millis(ms);
    return true;
  }
  static bool read(const json::value& from, Token& token) {
    return read(from, token.value) && token.value <= limits::kTokenMax;
  }
  static bool read(const json::value& from, std::string& text) {
    if (!from.is_string()) return false;
    text = std::string(from.get_string());
    return true;
  }
  static bool read(const json::value& from, LeaseId& lease) {
    std::string digits;
    const auto id = read(from, digits) ? lease_from_hex(digits) : std::nullopt;
    if (id) lease = *id;
    return id.has_value();
  }
  static bool read(const json::value& from, std::vector<std::string>& texts) {
    if (!from.is_array()) return false;
    for (const json::value& item : from.get_array()) {
      if (!read(item, texts.emplace_back())) return false;
    }
    return !texts.empty();
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  static bool read(const json::value& from, Enum& choice) {
    std::string word;
    if (!read(from, word)) return false;
    const auto words = words_of(choice);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found != words.end()) choice = static_cast<Enum>(found - words.begin());
    return found != words.end();
  }
  template <class T>
  static bool read(const json::value& from, std::optional<T>& value) {
    if (from.is_null()) return true;
    return read(from, value.emplace());
  }

  const json::object& object_;
  std::string& wrong_;
  std::vector<std::string_view> taken_;
};

struct Head {
  Demand demand = Demand::kAll;
  Moment calm = kOpen;
};
template <class Fields>
void visit(Fields& f, Head& head) {
  f("demand", head.demand);
  f("calm_ns", head.calm);
}

// What is wrong with the line; empty: nothing.
std::string read_line(const json::object& object, History& history, bool& begun) {
  const json::value* kind = object.if_contains("kind");
  if (kind == nullptr || !kind->is_string()) return "\"kind\" is missing";
  std::string wrong =
      fmt::format("\"{}\" is no kind of record", std::string_view(kind->get_string()));
  const auto fill = [&](auto& record) {
    wrong.clear();
    Reader reader(object, wrong);
    visit(reader, record);
    reader.done();
  };
  if (begun == (kind->get_string() == "history"))
    return "one line of the kind \"history\" comes first";
  if (!std::exchange(begun, true)) {
    Head head;
    fill(head);
    history.demand = head.demand;
    history.calm = head.calm;
  }
  for_each_kind(history, [&](std::string_view name, auto& list) {
    if (kind->get_string() == name) fill(list.emplace_back());
  });
  return wrong;
}

}  // namespace

std::string to_json_lines(const History& history) {
  std::string out;
  add_line(out, "history", Head{history.demand, history.calm});
  for_each_kind(history, [&](std::string_view kind, const auto& list) {
    for (const auto& record : list) add_line(out, kind, record);
  });
  return out;
}

Result<History> history_from_json_lines(std::string_view text) {
  History history;
  bool begun = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    boost::system::error_code problem;
    const json::value value = json::parse(line, problem);
    const std::string wrong = problem              ? problem.message()
                              : !value.is_object() ? "not an object"
                                                   : read_line(value.get_object(), history, begun);
    if (!wrong.empty()) return Error{Code::kInvalid, fmt::format("line {}: {}", number, wrong)};
  }
  if (!begun) return Error{Code::kInvalid, "there is no line of the kind \"history\""};
  return history;
}

}  // namespace pawl::sim
