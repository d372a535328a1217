// pawl guard put, get, gc: the content of a guarded resource, where it is written as a whole, and
// what writers that were refused have left behind.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/text.h"
#include "cli/exit_codes.h"
#include "cli/guard_target.h"
#include "cli/guard_verbs.h"
#include "guard_contract/parse.h"

namespace pawl::cli {
namespace {

struct PutOptions {
  GuardTarget target;
  std::string resource;
  std::string file;  // empty or -: stdin
  std::string token;
  std::uint64_t operation = 0;
};

// Nothing: a write without a token.
Result<std::uint64_t> token_for(const PutOptions& options) {
  std::string text = options.token;
  if (const char* held = std::getenv("PAWL_TOKEN"); text.empty() && held != nullptr) text = held;
  if (text.empty())
    return Error{Code::kInvalid, "no token: run this under `pawl run`, or give --token"};
  if (const auto token = guard::parse_token(text)) return *token;
  return Error{Code::kInvalid, fmt::format("\"{}\" is not a token", printable(text))};
}

Result<std::string> read_content(const std::string& path) {
  if (path.empty() || path == "-") return std::string{std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::kInvalid, fmt::format("{} cannot be read", printable(path))};
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

int put(Console& console, const PutOptions& options) {
  const auto token = token_for(options);
  if (!token) return console.fail(token.error());
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  const auto content = read_content(options.file);
  if (!content) return console.fail(content.error());
  const auto done = (*opened)->put(options.resource, *token, options.operation, *content);
  if (!done) return console.fail(done.error());
  const std::string_view verdict = to_text(done->verdict);
  if (console.json()) {
    Json json;
    json.object().key("resource").string(options.resource).key("verdict").string(verdict);
    json.key("token")
        .number(static_cast<std::int64_t>(*token))
        .key("let_through")
        .boolean(done->let_through)
        .end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  return console.data(fmt::format("{}: {}{}\n", printable(options.resource), verdict,
                                  done->let_through ? ", and let through by its mode" : ""))
             ? kExitOk
             : kExitOutput;
}

struct GetOptions {
  GuardTarget target;
  std::string resource;
};

int get(Console& console, const GetOptions& options) {
  auto opened = options.target.open();
  if (!opened) return console.fail(opened.error());
  const auto content = (*opened)->get(options.resource);
  if (!content) return console.fail(content.error());
  if (console.json()) {
    Json json;
    json.object().key("resource").string(options.resource);
    json.key("exists").boolean(content->has_value());
    json.key("content").string(to_valid_utf8(content->value_or(""))).end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  if (!*content) {
    console.note(fmt::format("{} has no content", printable(options.resource)));
    return kExitNothingDone;
  }
  return console.data(**content) ? kExitOk : kExitOutput;
}

struct CollectOptions {
  GuardTarget target;
  ChangeOptions change;
  std::string guard;
};

int collect(Console& console, const CollectOptions& options) {
  auto opened = options.target.open(options.change);
  if (!opened) return console.fail(opened.error());
  const auto found = (*opened)->collect(options.guard, options.change.rehearse());
  if (!found) return console.fail(found.error());
  if (console.json()) {
    Json json;
    json.object().key("done").boolean(!options.change.dry_run);
    json.key("objects").array();
    for (const std::string& object : *found) json.string(object);
    json.end().end();
    return console.data(json) ? kExitOk : kExitOutput;
  }
  std::string out;
  for (const std::string& object : *found)
    out += fmt::format("{} {}\n", options.change.dry_run ? "would remove" : "removed",
                       printable(object));
  if (found->empty()) console.note("nothing is left behind");
  return console.data(out) ? kExitOk : kExitOutput;
}

}  // namespace

void add_guard_put(CommandLine& line) {
  auto options = std::make_shared<PutOptions>();
  Verb verb = line.verb("guard", "put", "write the content of a guarded object under a token",
                        Talks::kToNobody);
  options->target.declare(verb);
  verb.required("RESOURCE", options->resource, "the object");
  verb.optional("FILE", options->file, "its new content (default: stdin)");
  verb.text("--token", "TOKEN", options->token, "the token (default: PAWL_TOKEN)");
  verb.number("--operation", options->operation,
              "the number of this operation: it takes effect once");
  verb.examples(
      "  pawl run report --guard s3:report.csv -- sh -c 'make-report | pawl guard put s3 "
      "report.csv'\n"
      "Exit code 121: the token is stale; nothing was written.");
  verb.run([options](Console& console) { return put(console, *options); });
}

void add_guard_get(CommandLine& line) {
  auto options = std::make_shared<GetOptions>();
  Verb verb = line.verb("guard", "get", "print the content of a guarded object", Talks::kToNobody);
  options->target.declare(verb);
  verb.required("RESOURCE", options->resource, "the object");
  verb.examples("  pawl guard get s3 report.csv > report.csv\nExit code 1: it has no content.");
  verb.run([options](Console& console) { return get(console, *options); });
}

void add_guard_gc(CommandLine& line) {
  auto options = std::make_shared<CollectOptions>();
  Verb verb =
      line.verb("guard", "gc", "remove what writers that were refused or cut off have left behind",
                Talks::kToNobody);
  options->target.declare(verb);
  verb.optional("GUARD", options->guard, "its name (default: every guard)");
  options->change.declare_dry_run(verb);
  verb.examples(
      "  pawl guard gc s3 --dry-run\nNothing that a write can still refer to is removed.");
  verb.run([options](Console& console) { return collect(console, *options); });
}

}  // namespace pawl::cli
