#include "client/lookup.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/unique_fd.h"
#include "client/detached_thread.h"

namespace pawl::client {
namespace {

bool is_numeric(const std::string& host) {
  in6_addr any{};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

struct Lookup::Attempt {
  const UniqueFd done{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::optional<Result<std::vector<Endpoint>>> outcome;

  void finish(Result<std::vector<Endpoint>> endpoints) {
    {
      const std::lock_guard lock(mutex);
      outcome = std::move(endpoints);
    }
    const std::uint64_t one = 1;
    // Fails only when the counter is full, and then it is readable.
    [[maybe_unused]] const ssize_t written = write(done.get(), &one, sizeof(one));
  }
};

void Lookup::start(const Address& address) {
  PAWL_ASSERT(!busy());
  attempt_ = std::make_shared<Attempt>();
  if (!attempt_->done) return attempt_->finish(Error{Code::kUnavailable, "too many open files"});
  if (is_numeric(address.host)) return attempt_->finish(resolve({address}));
  const auto started =
      start_detached([attempt = attempt_, address] { attempt->finish(resolve({address})); });
  if (!started) attempt_->finish(started.error());
}

int Lookup::fd() const {
  return busy() ? attempt_->done.get() : -1;
}

std::optional<Result<std::vector<Endpoint>>> Lookup::take() {
  if (!busy()) return std::nullopt;
  std::optional<Result<std::vector<Endpoint>>> outcome;
  {
    const std::lock_guard lock(attempt_->mutex);
    outcome = std::move(attempt_->outcome);
  }
  if (outcome) attempt_.reset();
  return outcome;
}

}  // namespace pawl::client
