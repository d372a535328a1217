#include "pawl/mutex.h"

#include <system_error>
#include <utility>

#include "client/repeated_acquire.h"

namespace pawl {
namespace {

[[noreturn]] void refuse(const Error& error) {
  const auto code =
      error.code == Code::kDenied ? std::errc::permission_denied : std::errc::invalid_argument;
  throw std::system_error(std::make_error_code(code), error.detail);
}

}  // namespace

Mutex::Mutex(Client& client, std::string name, AcquireOptions options)
    : client_(client), name_(std::move(name)), options_(std::move(options)) {
  // So that it waits in the queue of the lock.
  if (options_.wait == std::chrono::milliseconds(0)) options_.wait = std::chrono::minutes(1);
}

void Mutex::lock() {
  auto lease = client::acquire_repeatedly(client_, name_, options_);
  if (!lease) refuse(lease.error());
  lease_.emplace(*std::move(lease));
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

RecursiveMutex::RecursiveMutex(Client& client, std::string name, AcquireOptions options)
    : outermost_(client, std::move(name), std::move(options)) {}

void RecursiveMutex::lock() {
  std::unique_lock inside(inside_);
  if (depth_ == 0) {
    outermost_.lock();
  } else if (const auto held = lease()->check(); !held) {
    throw std::system_error(std::make_error_code(std::errc::owner_dead), held.error().detail);
  }
  ++depth_;
  inside.release();
}

bool RecursiveMutex::try_lock() {
  std::unique_lock inside(inside_, std::try_to_lock);
  if (!inside) return false;
  if (depth_ == 0 ? !outermost_.try_lock() : !lease()->check()) return false;
  ++depth_;
  inside.release();
  return true;
}

void RecursiveMutex::unlock() {
  const std::unique_lock inside(inside_, std::adopt_lock);
  if (--depth_ == 0) outermost_.unlock();
}

}  // namespace pawl
