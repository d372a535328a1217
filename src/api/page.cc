// docs/reference/http.md, rendered from the table of routes, so that it cannot drift.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include "api/openapi.h"
#include "base/limits.h"

namespace pawl::api {
namespace {

namespace json = boost::json;

constexpr std::string_view kIntroduction = R"(# HTTP

<!-- Written by pawl_http_page from the table of routes; edit src/api/*_routes.cc, then run `pawl_http_page FILE`. -->

pawld speaks HTTP/1.1 with JSON (port 7296, loopback by default; `--http ADDR`, `--http off`). It runs on a thread of its own, and each
request is a client of the same service that Redis clients talk to: the same names, limits, roles and guarantees
([the protocol](protocol.md)). The routes are also an OpenAPI 3.1 document: `GET /v1/openapi.json`.

- Every POST needs `Content-Type: application/json`. A member that pawld does not know is an error that names it.
- Lock names in paths are percent-encoded: `reports%2Fnightly`. Slashes may stand as they are, except where that would read as another route
  (the lock `a/history` is `a%2Fhistory`).
- `Idempotency-Key` makes an acquire safe to retry: the same key answers the same lease while it lives. It is a secret like the lease: at least
  128 random bits. A wait ends when its connection does.
- A lease travels in the header `Pawl-Lease`, never in a URL. Tokens are JSON numbers up to 9007199254740991.
- Where pawld has users, send `Authorization: Bearer USER:SECRET`; a client certificate does as well ([users](auth.md)). Where it has a certificate it speaks
  HTTPS only: a plain request is answered with 400 `tls_required`.
- Web pages are kept out: `Host` must be a loopback name or one of `http.hosts` in the configuration, and `Origin`, when a browser sends it, must be
  pawld itself. Nothing answers a preflight.

)";

struct Code {
  std::string_view status, code, meaning;
};
constexpr Code kCodes[]{
    {"400", "`invalid` `too_long` `malformed` `idempotency_key` `lease_required` `tls_required`",
     "The request is wrong; `detail` says what was expected."},
    {"401", "`noauth` `wrongpass`", "Credentials are needed, or were wrong."},
    {"403", "`noperm`", "This user may not do that."},
    {"403", "`foreign_host` `foreign_origin`", "The rules that keep web pages out."},
    {"404", "`unknown_route` `unknown_lock` `not_held`",
     "No such route; nothing is known of that lock; that token does not hold it."},
    {"405", "`wrong_method`", "`Allow` names the methods."},
    {"408", "`too_slow`", "The request did not arrive in time."},
    {"409", "`held`",
     "Not obtained; `lock`, `owner`, `token`, `expires_in_ms` and `Retry-After` say who is in the way. "
     "Retryable."},
    {"409", "`conflict`",
     "The key was used with other locks, mode, limit or TTL; or a newer request took over the wait."},
    {"410", "`lost`", "The lease is over; stop touching the resource."},
    {"413 415 431", "`body_too_large` `media_type` `header_too_large`", "Not taken."},
    {"503", "`busy` `loading` `standby` `full`",
     "Nothing happened; retryable. Of a standby `Pawl-Active` names the active one."},
    {"503", "`uncertain`", "It may have happened; ask again with the same key."},
    {"503", "`exhausted`", "The tokens are used up."},
};

std::string capital(std::string_view text) {
  return fmt::format("{}{}", static_cast<char>(text.front() - 32), text.substr(1));
}

std::string_view word(Place place) {
  return place == Place::kPath ? "path" : place == Place::kQuery ? "query" : "header";
}

void append_body(std::string& out, const json::object& shapes, std::string_view name) {
  const json::object& shape = shapes.at(name).as_object();
  out += "\n| member | type | meaning |\n|---|---|---|\n";
  for (const auto& member : shape.at("properties").as_object()) {
    const json::object& described = member.value().as_object();
    const bool token = described.contains("$ref");
    const auto* meaning = described.if_contains("description");
    out += fmt::format("| `{}` | {} | {} |\n", std::string_view(member.key()),
                       token ? "token" : std::string_view(described.at("type").as_string()),
                       meaning != nullptr ? std::string_view(meaning->as_string()) : "");
  }
  out += "\nRequired: ";
  const char* comma = "";
  for (const json::value& required : shape.at("required").as_array()) {
    out += fmt::format("{}`{}`", comma, std::string_view(required.as_string()));
    comma = ", ";
  }
  out += ".\n";
}

void append_route(std::string& out, const Route& route, const json::object& shapes) {
  out += fmt::format("### {} {}\n\n{}.\n\n", route.method, route.path, capital(route.summary));
  for (const Parameter& parameter : route.parameters) {
    out += fmt::format("- `{}` ({}{}): {}\n", parameter.name, word(parameter.place),
                       parameter.required ? ", required" : "", parameter.summary);
  }
  for (const Answer& answer : route.answers)
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
      fmt::format("0 to {}; ask again, with the same key, to wait longer", limits::kHttpWaitMax.count()));
  row("header", fmt::format("{} bytes", limits::kHttpHeaderMax));
  row("body", fmt::format("{} bytes", limits::kHttpBodyMax));
  row("connections", fmt::format("{}, then 503 `busy`", limits::kHttpConnectionsMax));
  row("a request's arrival",
      fmt::format("{} ms from its first byte to its last", limits::kHttpRequestMax.count()));
  row("between two requests", fmt::format("{} ms", limits::kHttpIdleMax.count()));
  row("reading an answer",
      fmt::format("{} ms; a stream's reader that stops is closed after that", limits::kHttpWriteMax.count()));
  row("a quiet stream", fmt::format("a comment every {} ms", limits::kHttpQuietMax.count()));
}

}  // namespace

std::string http_page(const RouteTable& table) {
  std::string out(kIntroduction);
  const json::value shapes = json::parse(std::string(schemas()));
  out += "## Routes\n\n";
  for (const Route& route : table.all()) append_route(out, route, shapes.as_object());
  out +=
      "## Problems\n\nErrors are `application/problem+json` with `type`, `title`, `status`, `detail`, and "
      "two members of ours: `code`, which is "
      "stable, and\n`retryable`, which says whether the same request may succeed later.\n\n| status | code | "
      "meaning |\n|---|---|---|\n";
  for (const Code& code : kCodes)
    out += fmt::format("| {} | {} | {} |\n", code.status, code.code, code.meaning);
  append_limits(out);
  return out;
}

}  // namespace pawl::api
