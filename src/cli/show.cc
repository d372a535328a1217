// pawl show, pawl history: one lock, now and before.
#include <fmt/format.h>

#include <memory>

#include "base/duration.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

std::string mode_of(const wire::Value& entry) {
  const std::string mode = text_of(entry, "mode");
  return mode == "limit" && entry.find("limit") != nullptr ? "one of " + text_of(entry, "limit")
                                                           : mode;
}

std::string joined(const std::vector<wire::Value>& names) {
  std::string list;
  for (const wire::Value& name : names) list += (list.empty() ? "" : ", ") + printable(name.text);
  return list;
}

// META is a map or a list of pairs.
std::string meta_of(const wire::Value& holder) {
  std::string list;
  const auto& items = items_of(holder, "meta");
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    list += fmt::format("{}{}={}", list.empty() ? "" : ", ", printable(items[i].text),
                        printable(items[i + 1].text));
  }
  return list;
}

std::string describe_holder(const Console& console, const wire::Value& holder) {
  const bool breaking = integer_of(holder, "breaking").value_or(0) != 0;
  std::string out =
      fmt::format("  held by     {}{}\n", console.paint(Paint::kStrong, owner_of(holder)),
                  breaking ? console.paint(Paint::kBad, "  (broken: cannot renew)") : "");
  out += fmt::format("    token     {}  ({})\n", text_of(holder, "token"), mode_of(holder));
  if (integer_of(holder, "slot")) out += fmt::format("    slot      {}\n", text_of(holder, "slot"));
  out += fmt::format("    since     {} ago\n", duration_of(holder, "held_ms"));
  out += fmt::format("    expires   in {} unless renewed (renewed {} times)\n",
                     duration_of(holder, "expires_in_ms"), text_of(holder, "renewals"));
  if (items_of(holder, "locks").size() > 1) {
    out += fmt::format("    together  {}\n", joined(items_of(holder, "locks")));
  }
  if (const std::string meta = meta_of(holder); !meta.empty())
    out += fmt::format("    meta      {}\n", meta);
  return out;
}

std::string describe_queue(const wire::Value& lock) {
  const auto waiters = integer_of(lock, "waiters").value_or(0);
  if (waiters == 0) return "  queue       empty\n";
  std::string out = fmt::format("  queue       {} waiting\n", waiters);
  std::int64_t place = 0;
  for (const wire::Value& waiter : items_of(lock, "queue")) {
    out += fmt::format("    {:<9} {}  ({}, for {})\n", fmt::format("{}.", ++place),
                       owner_of(waiter), text_of(waiter, "mode"), duration_of(waiter, "waited_ms"));
  }
  if (place > 0 && place < waiters) out += fmt::format("    and {} more\n", waiters - place);
  return out;
}

std::string describe(const Console& console, const wire::Value& lock) {
  const std::string state = text_of(lock, "state");
  const Paint paint = state == "free" ? Paint::kGood : Paint::kBad;
  std::string out = fmt::format("{}  {}", console.paint(Paint::kStrong, text_of(lock, "lock")),
                                console.paint(paint, state));
  if (integer_of(lock, "reopens_in_ms"))
    out += fmt::format(", reopens in {}", duration_of(lock, "reopens_in_ms"));
  out += "\n";
  const auto& holders = items_of(lock, "holders");
  for (const wire::Value& holder : holders) out += describe_holder(console, holder);
  const auto count = static_cast<std::size_t>(integer_of(lock, "holder_count").value_or(0));
  if (count > holders.size()) {
    out += fmt::format("    and {} more holders; `pawl show --all` lists them\n",
                       count - holders.size());
  }
  out += describe_queue(lock);
  out += fmt::format("  last token  {}\n", text_of(lock, "last_token"));
  out += fmt::format("  protection  {}\n", console.paint(Paint::kDim, text_of(lock, "label")));
  return out;
}

struct ShowArguments {
  std::string lock;
  bool all = false;
};

// Where a reply with a page of holders keeps them; nullptr when it has none.
std::vector<wire::Value>* holders_in(wire::Value& lock) {
  for (std::size_t i = 0; i + 1 < lock.items.size(); i += 2) {
    if (lock.items[i].text == "holders") return &lock.items[i + 1].items;
  }
  return nullptr;
}

// Every holder, page by page. One that joins meanwhile has a greater token, so none is left out.
Result<wire::Value> ask_all(Console& console, const std::string& lock) {
  const std::string most = std::to_string(limits::kCountMax);
  auto shown = console.ask({"INSPECT", lock, "HOLDERS", most});
  if (!shown) return shown;
  std::vector<wire::Value>* holders = holders_in(*shown);
  for (std::size_t page = holders == nullptr ? 0 : holders->size(); page == limits::kCountMax;) {
    auto next =
        console.ask({"INSPECT", lock, "HOLDERS", most, "AFTER", text_of(holders->back(), "token")});
    if (!next) return next;
    const auto& more = items_of(*next, "holders");
    page = more.size();
    holders->insert(holders->end(), more.begin(), more.end());
  }
  return shown;
}

int show(Console& console, const ShowArguments& options) {
  const auto shown =
      options.all ? ask_all(console, options.lock) : console.ask({"INSPECT", options.lock});
  if (!shown) return console.fail(shown.error());
  if (console.json()) {
    Json json;
    json.value(*shown);
    return console.data(json) ? kExitOk : kExitOutput;
  }
  return console.data(describe(console, *shown)) ? kExitOk : kExitOutput;
}

struct HistoryArguments {
  std::string lock;
  std::uint64_t count = 20;
};

std::string tenure(const wire::Value& epoch) {
  const auto granted = integer_of(epoch, "granted"), ended = integer_of(epoch, "ended");
  return granted && ended ? to_text(Millis(*ended - *granted)) : "-";
}

int history(Console& console, const HistoryArguments& options) {
  const auto reply = console.ask({"HISTORY", options.lock, "COUNT", std::to_string(options.count)});
  if (!reply) return console.fail(reply.error());
  if (console.json()) {
    Json json;
    json.value(*reply);
    return console.data(json) ? kExitOk : kExitOutput;
  }
  if (reply->items.empty()) {
    console.note(fmt::format(
        "no earlier holders of {} are known (pawld keeps the history in memory until it restarts)",
        printable(options.lock)));
    return kExitOk;
  }
  Table table({"TOKEN", "OWNER", "GRANTED", "ENDED", "HELD", "HOW"});
  for (const wire::Value& epoch : reply->items) {
    table.row({text_of(epoch, "token"), owner_of(epoch), time_of(epoch, "granted"),
               time_of(epoch, "ended"), tenure(epoch), text_of(epoch, "how")});
  }
  return console.data(table.text(true)) ? kExitOk : kExitOutput;
}

}  // namespace

void add_show(CommandLine& line) {
  auto options = std::make_shared<ShowArguments>();
  Verb verb =
      line.verb("show", "show who holds a lock, until when, and who waits", Talks::kToPawld);
  verb.required("LOCK", options->lock, "its name");
  verb.flag("--all", options->all, "show every holder; otherwise the first 16 and how many more");
  verb.examples(
      "  pawl show reports/nightly\n"
      "  pawl show reports/nightly --json | jq .token    the token that holds it, null when free");
  verb.run([options](Console& console) { return show(console, *options); });
}

void add_history(CommandLine& line) {
  auto options = std::make_shared<HistoryArguments>();
  Verb verb = line.verb("history", "show who held a lock before, newest first", Talks::kToPawld);
  verb.required("LOCK", options->lock, "its name");
  verb.number("-c,--count", options->count, "maximum entries (default 20)");
  verb.examples(
      "  pawl history reports/nightly\n"
      "  pawl history reports/nightly -c 3 --json");
  verb.run([options](Console& console) { return history(console, *options); });
}

}  // namespace pawl::cli
