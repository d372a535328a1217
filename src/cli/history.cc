// pawl history: who held a lock before.
#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/duration.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/utf8.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

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
        "no earlier holders of {} are known (pawld keeps the history in memory, until it restarts)",
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

void add_history(CommandLine& line) {
  auto options = std::make_shared<HistoryArguments>();
  Verb verb = line.verb("history", "who held a lock before, newest first", Talks::kToPawld);
  verb.required("LOCK", options->lock, "its name");
  verb.number("-c,--count", options->count, "how many at most (default 20)");
  verb.examples(
      "  pawl history reports/nightly\n"
      "  pawl history reports/nightly -c 3 --json");
  verb.run([options](Console& console) { return history(console, *options); });
}

}  // namespace pawl::cli
