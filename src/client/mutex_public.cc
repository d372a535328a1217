#include "pawl/mutex.h"

#include <system_error>
#include <utility>

namespace pawl {
namespace {

// Whether asking again may help.
bool may_pass(Code code) {
  return code == Code::kBusy || code == Code::kUnavailable || code == Code::kUnknown;
}

[[noreturn]] void refuse(const Error& error) {
  const auto code = error.code == Code::kDenied ? std::errc::permission_denied : std::errc::invalid_argument;
  throw std::system_error(std::make_error_code(code), error.detail);
}

}  // namespace

Mutex::Mutex(Client& client, std::string name, AcquireOptions options)
    : client_(client), name_(std::move(name)), options_(std::move(options)) {
  // Not in a tight loop.
  if (options_.wait == std::chrono::milliseconds(0)) options_.wait = std::chrono::minutes(1);
}

void Mutex::lock() {
  for (;;) {
    auto lease = client_.acquire(name_, options_);
    if (lease) return void(lease_.emplace(*std::move(lease)));
    if (!may_pass(lease.error().code)) refuse(lease.error());
  }
}

bool Mutex::try_lock() {
  AcquireOptions at_once = options_;
  at_once.wait = std::chrono::milliseconds(0);
  auto lease = client_.acquire(name_, at_once);
  if (!lease) return false;
  lease_.emplace(*std::move(lease));
  return true;
}

void Mutex::unlock() {
  lease_.reset();
}

}  // namespace pawl
