// pawl status, pawl version: pawld and this program.
#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "cli/command_line.h"
#include "cli/exit_codes.h"
#include "cli/reply.h"
#include "cli/verbs.h"

namespace pawl::cli {
namespace {

// "leases 3 of 2000000 (0 %); one user at most 3 of 500000".
std::string describe_limits(const wire::Value& limits) {
  std::string out = "limits:\n";
  for (std::size_t i = 0; i + 1 < limits.items.size(); i += 2) {
    const wire::Value& limit = limits.items[i + 1];
    const auto most = integer_of(limit, "limit").value_or(0);
    const auto percent = most == 0 ? 0 : 100 * integer_of(limit, "use").value_or(0) / most;
    out += fmt::format("  {:<16} {} of {} ({} %)", printable(limits.items[i].text) + ":",
                       text_of(limit, "use"), text_of(limit, "limit"), percent);
    if (integer_of(limit, "greatest_user").value_or(0) > 0) {
      out += fmt::format("; one user: {} of {}", text_of(limit, "greatest_user"),
                         text_of(limit, "per_user"));
    }
    out += "\n";
  }
  return out;
}

// Which pawld run, and how etcd is.
std::string describe_cluster(const wire::Value& cluster) {
  std::string out = fmt::format("{:<18} {}\n", "cluster:", text_of(cluster, "name"));
  out += fmt::format("{:<18} {}\n", "etcd:", text_of(cluster, "health"));
  for (const wire::Value& node : items_of(cluster, "nodes")) {
    out += fmt::format("  pawld {:<24} {}, pid {}{}\n", text_of(node, "address"),
                       text_of(node, "role"), text_of(node, "pid"),
                       text_of(node, "self") == "yes" ? " (this one)" : "");
  }
  for (const wire::Value& endpoint : items_of(cluster, "etcd")) {
    const std::string problem = text_of(endpoint, "problem");
    out += fmt::format(
        "  etcd  {:<24} {}{}{}\n", text_of(endpoint, "endpoint"),
        text_of(endpoint, "usable") == "yes" ? text_of(endpoint, "version") : "no answer",
        text_of(endpoint, "leader") == "yes" ? ", leader" : "",
        problem.empty() ? "" : ": " + problem);
  }
  return out;
}

int status(Console& console) {
  const auto reply = console.ask({"STATUS"});
  if (!reply) return console.fail(reply.error());
  if (console.json()) {
    Json json;
    json.value(*reply);
    return console.data(json) ? kExitOk : kExitOutput;
  }
  std::string out;
  for (std::size_t i = 0; i + 1 < reply->items.size(); i += 2) {
    const std::string key = printable(reply->items[i].text);
    const bool span = key.ends_with("_ms");
    // Shown only while it lasts: nothing is granted until then.
    if (key == "restoring_ms" && reply->items[i + 1].integer == 0) continue;
    if (key == "limits") {
      out += describe_limits(reply->items[i + 1]);
      continue;
    }
    if (key == "cluster") {
      out += describe_cluster(reply->items[i + 1]);
      continue;
    }
    out += fmt::format("{:<18} {}\n", (span ? key.substr(0, key.size() - 3) : key) + ":",
                       span ? duration_of(*reply, key) : text_of(*reply, key));
  }
  return console.data(out) ? kExitOk : kExitOutput;
}

}  // namespace

int print_version(Console& console) {
  if (!console.json())
    return console.data(fmt::format("pawl {}\n", kVersion)) ? kExitOk : kExitOutput;
  Json json;
  json.object().key("version").string(kVersion).end();
  return console.data(json) ? kExitOk : kExitOutput;
}

void add_status(CommandLine& line) {
  Verb verb = line.verb("status", "show the state of pawld: version, role, tokens, counts",
                        Talks::kToPawld);
  verb.examples("  pawl status\n  pawl status --json | jq .last_token");
  verb.run([](Console& console) { return status(console); });
}

void add_version(CommandLine& line) {
  Verb verb = line.verb("version", "print the version of this pawl", Talks::kToNobody);
  verb.examples("  pawl version\n  pawl status             the version of the pawld it talks to");
  verb.run([](Console& console) { return print_version(console); });
}

}  // namespace pawl::cli
