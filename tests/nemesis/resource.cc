#include "nemesis/resource.h"

#include "base/assert.h"

namespace pawl::nemesis {

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAdmitted:
      return "admitted";
    case Outcome::kReplayed:
      return "replayed";
    case Outcome::kStale:
      return "stale";
    case Outcome::kNothing:
      return "nothing";
    case Outcome::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::unique_ptr<Resource> open_resource(const std::string& where, Resource::Clock now) {
  const auto colon = where.find(':');
  const std::string kind = where.substr(0, colon), rest = where.substr(colon + 1);
  if (kind == "sqlite") return open_sqlite(rest, std::move(now));
  if (kind == "postgres") return open_postgres(rest, std::move(now));
  PAWL_ASSERT(kind == "mariadb");
  return open_mariadb(rest, std::move(now));
}

Answer answer_of(const Error& error) {
  switch (error.code) {
    case Code::kStaleToken:
    case Code::kIssuerBehind:
      return {Outcome::kStale, error.detail};
    case Code::kUnknown:
      return {Outcome::kUnknown, error.detail};
    default:
      return {Outcome::kNothing, error.detail};
  }
}

Answer answer_of(const Result<Decision>& decision) {
  if (!decision) return answer_of(decision.error());
  switch (decision->verdict) {
    case Verdict::kAdmitted:
      return {Outcome::kAdmitted, {}};
    case Verdict::kReplayed:
      return {Outcome::kReplayed, {}};
    default:  // Of check(), or let through by a mode that does not refuse: then the row tells.
      return {decision->let_through ? Outcome::kAdmitted : Outcome::kStale, {}};
  }
}

}  // namespace pawl::nemesis
