#include "client/blocking_connection.h"

#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"

namespace pawl::client {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kFinishTime = 1s;

}  // namespace

BlockingConnection::BlockingConnection(std::vector<Address> addresses, Random& random,
                                       ConnectionOptions options)
    : addresses_(std::move(addresses)), options_(std::move(options)), random_(random) {
  PAWL_ASSERT(!addresses_.empty());
}

BlockingConnection::~BlockingConnection() {
  if (!pawld_) return;
  const Instant end = boot_now() + kFinishTime;
  while (!pawld_->machine().idle() && pawld_->is_open() && boot_now() < end) {
    pawld_->wait_and_process(end);
  }
}

Instant BlockingConnection::limit(Instant give_up, Millis wait) const {
  return give_up == kNever ? boot_now() + wait + options_.call_timeout : give_up;
}

Result<GrantedLease> BlockingConnection::acquire(AcquireCall call) {
  call.give_up = limit(call.give_up, call.wait);
  position_ = 0;
  return this->call<GrantedLease>(
      [&](Machine& machine) { return machine.acquire(std::move(call), boot_now()); });
}

Result<RenewResult> BlockingConnection::renew(RenewCall call) {
  call.give_up = limit(call.give_up, 0ms);
  return this->call<RenewResult>([&](Machine& machine) { return machine.renew(call, boot_now()); });
}

Result<ReleaseResult> BlockingConnection::release(ReleaseCall call) {
  call.give_up = limit(call.give_up, 0ms);
  return this->call<ReleaseResult>(
      [&](Machine& machine) { return machine.release(call, boot_now()); });
}

Result<wire::Value> BlockingConnection::command(CommandCall call) {
  call.give_up = limit(call.give_up, 0ms);
  return this->call<wire::Value>(
      [&](Machine& machine) { return machine.command(std::move(call), boot_now()); });
}

Result<void> BlockingConnection::resolve_once() {
  if (pawld_) return {};
  auto endpoints = resolve(addresses_);
  if (!endpoints) return endpoints.error();
  pawld_.emplace(*std::move(endpoints), random_, options_.machine, options_.connect_timeout);
  return {};
}

template <class T>
Result<T> BlockingConnection::call(const std::function<CallId(Machine&)>& start) {
  if (const auto resolved = resolve_once(); !resolved) return resolved.error();
  const CallId call = start(pawld_->machine());
  pawld_->flush();
  for (;;) {
    for (Completion& done : pawld_->machine().take_completions()) {
      if (done.call == call) return std::get<Result<T>>(std::move(done.outcome));
    }
    pawld_->wait_and_process();
    report(call);
  }
}

void BlockingConnection::report(CallId call) {
  const Machine& machine = pawld_->machine();
  if (const auto position = machine.position(call); position && *position != position_) {
    position_ = *position;
    if (options_.on_queued) options_.on_queued(position_);
  }
  if (machine.last_error() == error_) return;
  error_ = machine.last_error();
  if (!error_.empty() && !machine.idle() && options_.on_connection_error)
    options_.on_connection_error(error_);
}

}  // namespace pawl::client
