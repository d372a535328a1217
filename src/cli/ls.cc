// pawl ls: every lock that is held, closed or waited for; or the waiting requests.
#include <fmt/format.h>

#include <memory>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/lock_pages.h"
#include "cli/reply.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

struct LsArguments {
  std::string prefix;
  bool waits = false;
};

std::string first_owner(const wire::Value& lock) {
  const auto& holders = items_of(lock, "holders");
  if (holders.empty()) return "-";
  const std::string owner = owner_of(holders.front());
  const auto count = integer_of(lock, "holder_count").value_or(1);
  return count <= 1 ? owner : fmt::format("{} +{}", owner, count - 1);
}

std::string expires(const wire::Value& lock) {
  const auto& holders = items_of(lock, "holders");
  if (holders.empty()) return duration_of(lock, "reopens_in_ms");
  return duration_of(holders.front(), "expires_in_ms");
}

int list_locks(Console& console, const LsArguments& options) {
  bool first = true;
  const auto print = [&](const LockPage& page) -> Result<void> {
    Table table({"LOCK", "STATE", "TOKEN", "OWNER", "EXPIRES", "WAITING"});
    for (const wire::Value& lock : page) {
      table.row({text_of(lock, "lock"), text_of(lock, "state"), text_of(lock, "token"),
                 first_owner(lock), expires(lock), text_of(lock, "waiters")});
    }
    if (!table.empty()) console.data(table.text(std::exchange(first, false)));
    return {};
  };
  const auto listed = each_lock_page(console, options.prefix, print);
  if (!listed) return console.fail(listed.error());
  if (first)
    console.note("no lock is held or waited for" +
                 (options.prefix.empty() ? "" : " below " + printable(options.prefix)));
  return kExitOk;
}

int list_locks_json(Console& console, const LsArguments& options) {
  Json json;
  json.array();
  const auto listed =
      each_lock_page(console, options.prefix, [&](const LockPage& page) -> Result<void> {
        for (const wire::Value& lock : page) json.value(lock);
        return {};
      });
  if (!listed) return console.fail(listed.error());
  json.end();
  return console.data(json) ? kExitOk : kExitOutput;
}

// Each lock with a queue, as INSPECT shows it.
Result<std::vector<wire::Value>> locks_waited_for(Console& console, const std::string& prefix) {
  std::vector<wire::Value> found;
  const auto listed = each_lock_page(console, prefix, [&](const LockPage& page) -> Result<void> {
    for (const wire::Value& lock : page) {
      const wire::Value* name = lock.find("lock");
      if (name == nullptr || integer_of(lock, "waiters").value_or(0) == 0) continue;
      auto shown = console.ask({"INSPECT", name->text});
      if (!shown) return shown.error();
      found.push_back(std::move(*shown));
    }
    return {};
  });
  if (!listed) return listed.error();
  return found;
}

void add_wait(Json& json, const wire::Value& lock, const wire::Value& waiter) {
  json.object().key("lock").value(*lock.find("lock"));
  for (const char* key : {"owner", "mode", "waited_ms"}) {
    const wire::Value* value = waiter.find(key);
    json.key(key).value(value == nullptr ? wire::Value::null() : *value);
  }
  json.key("held_by").array();
  for (const wire::Value& holder : items_of(lock, "holders")) {
    if (const wire::Value* owner = holder.find("owner")) json.value(*owner);
  }
  json.end().end();
}

int list_waits(Console& console, const LsArguments& options) {
  const auto locks = locks_waited_for(console, options.prefix);
  if (!locks) return console.fail(locks.error());
  Table table({"WAITING", "FOR", "LOCK", "HELD BY"});
  Json json;
  json.array();
  for (const wire::Value& lock : *locks) {
    for (const wire::Value& waiter : items_of(lock, "queue")) {
      table.row({owner_of(waiter), duration_of(waiter, "waited_ms"), text_of(lock, "lock"),
                 first_owner(lock)});
      add_wait(json, lock, waiter);
    }
  }
  json.end();
  if (console.json()) return console.data(json) ? kExitOk : kExitOutput;
  if (table.empty()) console.note("no request is waiting");
  if (!table.empty()) console.data(table.text(true));
  return kExitOk;
}

int list(Console& console, const LsArguments& options) {
  if (options.waits) return list_waits(console, options);
  return console.json() ? list_locks_json(console, options) : list_locks(console, options);
}

}  // namespace

void add_ls(CommandLine& line) {
  auto options = std::make_shared<LsArguments>();
  Verb verb =
      line.verb("ls", "list the locks that are held, closed or waited for", Talks::kToPawld);
  verb.optional("PREFIX", options->prefix, "only locks starting with PREFIX");
  verb.flag("--waits", options->waits,
            "waiting requests and the holders they wait for (the first 16 of each queue)");
  verb.examples(
      "  pawl ls\n"
      "  pawl ls reports/\n"
      "  pawl ls --waits\n"
      "  pawl ls --json | jq -r '.[].lock'");
  verb.run([options](Console& console) { return list(console, *options); });
}

}  // namespace pawl::cli
