// docs/reference/http.md, rendered from the table of routes, so that it cannot drift.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "api/openapi.h"
#include "base/limits.h"

namespace pawl::api {
namespace {

namespace json = boost::json;

constexpr std::string_view kIntroduction = R"(# HTTP

<!-- Written by pawl_http_page from the table of routes; edit src/server/verbs (routes of verbs) or src/api/service_routes.cc, then run `pawl_http_page FILE`. -->

pawld speaks HTTP/1.1 with JSON (port 7296, loopback by default; `--http ADDR`, `--http off`).
It runs on a thread of its own, and each request is a client of the same service that Redis clients talk to: the same names, limits, roles and guarantees ([the protocol](protocol.md)).
The routes are also an OpenAPI 3.1 document: `GET /v1/openapi.json`.

- A body is one JSON object, with `Content-Type: application/json`; renew and release take none.
  A member that pawld does not know, or that is given twice, is an error that names it.
- Members that end in `_ms` are durations in milliseconds.
  `granted`, `ended` and `at` are times: Unix milliseconds, by the wall clock of pawld.
- Every name is a lock.
  One that was never held is `free`, and so is one that pawld has forgotten.
- Lock names in paths are percent-encoded: `reports%2Fnightly`.
  Slashes may stand as they are, except where that would read as another route (the lock `a/history` is `a%2Fhistory`).
- `Idempotency-Key` makes an acquire safe to retry: the same key answers the same lease while it lives.
  It is a secret like the lease: at least 128 random bits.
  A wait ends when its connection does.
- A lease travels in the header `Pawl-Lease`, never in a URL.
  Tokens are JSON numbers up to 9007199254740991.
- Where pawld has users, send `Authorization: Bearer USER:SECRET`; a client certificate does as well ([users](auth.md)).
  Where it has a certificate it speaks HTTPS only: a plain request is answered with 400 `tls_required`.
- Of several pawld that share a store one is active.
  The others answer 307, with the same route of the active one as `Location` (`Pawl-Active` has its address for Redis clients), or 503 with `Retry-After` while they know of none; `/healthz`, `/readyz`, `/metrics` and `/v1/status` are about the pawld that is asked.
  A client that follows by itself sends method, body, `Pawl-Lease` and `Idempotency-Key` again, but most leave `Authorization` out for another host: then send the request there yourself ([several nodes](../how-to/several-nodes.md)).
- Web pages are kept out: `Host` must be a loopback name or one of `http.hosts` in the configuration (except for `/healthz` and `/readyz`, which probes ask by address), and `Origin`, when a browser sends it, must be pawld itself.
  Nothing answers a preflight.

Over HTTP there is no MRENEW (renew each lease), CANCEL (close the connection that waits), ASYNC, RAISE, BACKUP or HANDOVER: use [the protocol](protocol.md), or `pawl raise`, `pawl backup` and `pawl handover`.

## Words

| word | means | elsewhere |
|---|---|---|
| `how` | how a lease ended: `released`, `expired`, `broken`, `max_hold`; of a lease that pawld does not know (any more): `unknown` | the label `reason` of `pawl_lease_ended_total` |
| `reason` | the text that an operator gave with a break, or with RAISE; or somebody who asked for a lock | REASON |
| `label` | what pawld knows about the guards of a lock's resource. It cannot see them, so this is *unknown: no guard has reported* | *protection* in `pawl show` |
| `limit` in acquire | how many may hold the lock at a time | LIMIT |
| `?limit=` in a list | the size of a page | COUNT |
| `max_hold_ms` | the longest tenure; 0: no cap | MAXHOLD |
| `wait_ms` | how long to wait in line, up to 60000 | WAIT, up to 3600000 |
| `Idempotency-Key` | names a request, so that it can be sent again | REQUEST |

)";

struct Code {
  std::string_view status, code, meaning;
};
constexpr Code kCodes[]{
    {"307 503", "standby",
     "This pawld stands by, and nothing happened. 307: `Location` is the same route of the active "
     "one. 503: none is known; retryable."},
    {"400", "invalid too_long malformed idempotency_key lease_required no_users tls_required",
     "The request is wrong; `detail` says what was expected."},
    {"401", "noauth wrongpass", "Credentials are needed, or were wrong."},
    {"403", "noperm", "This user may not do that."},
    {"403", "foreign_host foreign_origin", "The rules that keep web pages out."},
    {"404", "unknown_route not_held", "No such route; that token does not hold the lock."},
    {"405", "wrong_method", "`Allow` names the methods."},
    {"408", "too_slow", "The request did not arrive in time."},
    {"409", "held",
     "Not obtained; `lock`, `owner`, `token`, `expires_in_ms` and `Retry-After` describe the "
     "holder. Retryable."},
    {"409", "conflict",
     "The key was used with other locks, shared, limit or ttl_ms; or a newer request took over the "
     "wait."},
    {"410", "lost", "The lease is over, and `how` says how it ended. Stop touching the resource."},
    {"413 415 431", "body_too_large media_type header_too_large", "Not taken."},
    {"503", "busy loading full", "Nothing happened; retryable."},
    {"503", "uncertain", "It may have happened; ask again with the same key."},
    {"503", "restoring",
     "After a restore no lock is granted before `Retry-After`; of acquire without `wait_ms`, and "
     "of /readyz. "
     "Retryable."},
    {"503", "exhausted", "The tokens are used up."},
    {"500", "internal", "A bug of pawld; report it."},
};

std::vector<std::string_view> codes_of(const Code& row) {
  std::vector<std::string_view> codes;
  for (std::string_view rest = row.code; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    codes.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return codes;
}

std::string capital(std::string_view text) {
  return fmt::format("{}{}", static_cast<char>(text.front() - 32), text.substr(1));
}

std::string_view word(ParameterIn in) {
  return in == ParameterIn::kPath ? "path" : in == ParameterIn::kQuery ? "query" : "header";
}

// What a "$ref" stands for, or the schema itself.
const json::object& referred(const json::object& schema, const json::object& shapes) {
  const auto* reference = schema.if_contains("$ref");
  if (reference == nullptr) return schema;
  const std::string_view path = reference->as_string();
  return shapes.at(path.substr(path.rfind('/') + 1)).as_object();
}

// "100 to 86400000", "1 to 128 bytes"; and the default, if there is one.
std::string allowed(const json::object& schema) {
  struct Range {
    std::string_view min, max, unit;
  };
  constexpr Range kRanges[]{{"minimum", "maximum", ""},
                            {"minLength", "maxLength", " bytes"},
                            {"minItems", "maxItems", " different locks"},
                            {"minProperties", "maxProperties", " pairs"}};
  std::string text;
  for (const Range& range : kRanges) {
    if (!schema.contains(range.max)) continue;
    const auto* min = schema.if_contains(range.min);
    text = fmt::format("{} to {}{}", min != nullptr ? json::serialize(*min) : "0",
                       json::serialize(schema.at(range.max)), range.unit);
  }
  if (const auto* by_default = schema.if_contains("default"))
    text += fmt::format("{}default {}", text.empty() ? "" : "; ", json::serialize(*by_default));
  return text;
}

void append_body(std::string& out, const json::object& shapes, std::string_view name) {
  const json::object& shape = shapes.at(name).as_object();
  out += "\n| member | type | allowed | meaning |\n|---|---|---|---|\n";
  for (const auto& member : shape.at("properties").as_object()) {
    const json::object& described = member.value().as_object();
    const auto* meaning = described.if_contains("description");
    const json::object& shown = referred(described, shapes);
    out += fmt::format("| `{}` | {} | {} | {} |\n", std::string_view(member.key()),
                       std::string_view(shown.at("type").as_string()), allowed(shown),
                       meaning != nullptr ? std::string_view(meaning->as_string()) : "");
  }
  const auto* required = shape.if_contains("required");
  if (required == nullptr) {
    out += "\nNone of them is required.\n";
    return;
  }
  out += "\nRequired: ";
  const char* comma = "";
  for (const json::value& member : required->as_array()) {
    out += fmt::format("{}`{}`", comma, std::string_view(member.as_string()));
    comma = ", ";
  }
  out += ".\n";
}

void append_route(std::string& out, const Route& route, const json::object& shapes) {
  out += fmt::format("### {} {}\n\n{}.\n\n", route.method, route.path, capital(route.summary));
  for (const HttpParameter& parameter : route.parameters) {
    out += fmt::format("- `{}` ({}{}): {}\n", parameter.name, word(parameter.in),
                       parameter.required ? ", required" : "", parameter.summary);
  }
  for (const HttpAnswer& answer : route.answers)
    out += fmt::format("- **{}** {}\n", answer.status, answer.summary);
  out += fmt::format("- Role: {}\n", wire::to_text(route.access));
  if (!route.body.empty()) append_body(out, shapes, route.body);
  out += fmt::format("\n```console\n$ curl {}\n```\n\n", route.example);
}

void append_limits(std::string& out) {
  const auto row = [&out](std::string_view what, std::string_view limit) {
    out += fmt::format("| {} | {} |\n", what, limit);
  };
  out += "\n## Limits\n\nThose of the protocol, and:\n\n| what | limit |\n|---|---|\n";
  row("`wait_ms`",
      fmt::format("0 to {}, where WAIT takes {}; ask again, with the same key, to wait longer",
                  limits::kHttpWaitMax.count(), limits::kWaitMax.count()));
  row("header", fmt::format("{} bytes", limits::kHttpHeaderMax));
  row("body", fmt::format("{} bytes", limits::kHttpBodyMax));
  row("connections", fmt::format("{}; then the one that has been silent longest is closed",
                                 limits::kHttpConnectionsMax));
  row("connections, if none is silent",
      fmt::format("{} more, on which only renewals and releases are served, and the rest is 503 "
                  "`busy`",
                  limits::kHttpConnectionsReserved));
  row("unanswered requests of connections without a valid user",
      fmt::format("{} bytes together; a silent one, chosen at random, is closed to make room",
                  limits::kHttpNewcomerBytesMax));
  row("connections without a request of a valid user",
      fmt::format("{} more; a silent one, chosen at random, is closed to make room. Each has {} s "
                  "for such a "
                  "request",
                  limits::kHttpNewcomersMax, limits::kAuthenticateTime.count() / 1000));
  row("a request's arrival",
      fmt::format("{} ms from its first byte to its last", limits::kHttpRequestMax.count()));
  row("between two requests", fmt::format("{} ms", limits::kHttpIdleMax.count()));
  row("reading an answer", fmt::format("{} ms; a stream's reader that stops is closed after that",
                                       limits::kHttpWriteMax.count()));
  row("a quiet stream", fmt::format("a comment every {} ms", limits::kHttpQuietMax.count()));
}

}  // namespace

std::vector<std::string_view> problem_codes() {
  std::vector<std::string_view> all;
  for (const Code& row : kCodes) {
    for (const std::string_view code : codes_of(row)) all.push_back(code);
  }
  return all;
}

std::string http_page(const RouteTable& table) {
  std::string out(kIntroduction);
  const json::value shapes = schemas();
  out += "## Routes\n\n";
  for (const Route& route : table.all()) append_route(out, route, shapes.as_object());
  out +=
      "## Problems\n\nErrors are `application/problem+json` with `type`, `title`, `status`, "
      "`detail`, and "
      "two members of ours: `code`, which is "
      "stable, and\n`retryable`, which says whether the same request may succeed later.\n\n| "
      "status | code | "
      "meaning |\n|---|---|---|\n";
  for (const Code& code : kCodes)
    out += fmt::format("| {} | `{}` | {} |\n", code.status, fmt::join(codes_of(code), "` `"),
                       code.meaning);
  append_limits(out);
  return out;
}

}  // namespace pawl::api
