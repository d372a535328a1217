#include "cli/acquire_options.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/limits.h"

namespace pawl::cli {
namespace {

std::string user() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr && entry->pw_name != nullptr ? entry->pw_name : std::to_string(geteuid());
}

std::string host() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace

std::string default_owner(int pid) {
  const std::string suffix = fmt::format(":{}", pid);
  std::string label = user() + "@" + host();
  label.resize(std::min(label.size(), limits::kOwnerMax - suffix.size()));
  return label + suffix;
}

void AcquireOptions::declare(Verb& verb) {
  verb.required("LOCK", lock, "its name");
  verb.texts("--and", "LOCK", more,
             "another lock under the same lease and token; repeatable, at most 16 locks");
  verb.flag("--shared", shared, "share the lock with other --shared holders");
  verb.number("--limit", limit, "share the lock among at most N holders");
  declare_lease(verb);
  verb.texts("--meta", "KEY=VALUE", meta, "shown to others with the lease; repeatable");
  verb.not_both("--shared", "--limit");
  verb.not_both("--and", "--shared");
  verb.not_both("--and", "--limit");
}

void AcquireOptions::declare_lease(Verb& verb) {
  verb.duration("-t,--ttl", terms.ttl, "how long the lease lives without renewal (default 15s)");
  verb.duration("-w,--wait", wait, "wait at most this long (default: until the lock is acquired)");
  verb.flag("-n,--no-wait", no_wait, "do not wait");
  verb.text("--owner", "TEXT", owner, "a label for people (default user@host:pid)");
  verb.duration("--max-hold", terms.max_hold,
                "end the lease after this time, even if it is renewed");
  verb.number("-E", not_acquired,
              "exit code for \"not acquired\" (default 75); other codes stay as they are");
  verb.not_both("--wait", "--no-wait");
}

std::optional<Millis> AcquireOptions::patience() const {
  if (no_wait) return Millis(0);
  if (wait == kPatient) return std::nullopt;
  return wait;
}

Result<client::AcquireCall> to_call(const AcquireOptions& options,
                                    const std::string& default_owner) {
  client::AcquireCall call;
  call.terms = options.terms;
  call.locks.push_back(options.lock);
  call.locks.insert(call.locks.end(), options.more.begin(), options.more.end());
  if (options.shared) call.terms.mode = Mode::kShared;
  if (options.limit != AcquireOptions::kExclusive) {
    if (options.limit < 1 || options.limit > limits::kHoldersMax) {
      return Error{Code::kInvalid, fmt::format("--limit: 1 to {}", limits::kHoldersMax)};
    }
    call.terms.mode = Mode::kLimit;
    call.terms.limit = static_cast<std::uint32_t>(options.limit);
  }
  if (options.not_acquired > 255) return Error{Code::kInvalid, "-E: an exit code is 0 to 255"};
  call.owner = options.owner.empty() ? default_owner : options.owner;
  for (const std::string& pair : options.meta) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos)
      return Error{Code::kInvalid, fmt::format("--meta {}: write key=value", pair)};
    call.meta.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return call;
}

}  // namespace pawl::cli
