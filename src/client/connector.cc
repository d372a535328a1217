#include "client/connector.h"

#include <poll.h>

#include <mutex>
#include <string>
#include <utility>

#include "base/assert.h"
#include "client/boot_clock.h"
#include "client/detached_thread.h"
#include "wire/command_writer.h"

namespace pawl::client {
namespace {

// Sends a command and reads the answer, one line, which may be an error (before AUTH).
Result<std::string> ask(Socket& socket, std::string command, Millis timeout) {
  const Instant until = boot_now() + timeout;
  std::string received, why;
  while (!received.ends_with("\r\n")) {
    if (boot_now() >= until) return Error{Code::kUnavailable, "no answer"};
    if (!socket.send(command)) return Error{Code::kUnavailable, "the connection was closed"};
    pollfd ready = socket.interest(!command.empty());
    ::poll(&ready, 1, poll_timeout(until - boot_now()));
    if (!socket.receive(received, why)) return Error{Code::kUnavailable, why};
  }
  return received;
}

// Any command that a standby refuses would do. This one changes nothing, and its answer is a line.
constexpr std::string_view kNoRequest = "no-request-has-this-id-0";

Result<void> check_answer(Socket& socket, Connector::AnsweredBy by, Millis timeout) {
  std::string command;
  by == Connector::AnsweredBy::kActive ? wire::append_cancel(command, std::string(kNoRequest))
                                       : wire::append_command(command, {"PING"});
  const auto line = ask(socket, std::move(command), timeout);
  if (!line) return line.error();
  const bool put_off = line->starts_with("-READONLY") || line->starts_with("-LOADING");
  if (by == Connector::AnsweredBy::kActive && put_off)
    return Error{Code::kUnavailable, "it is not the active one"};
  return {};
}

Result<std::unique_ptr<Socket>> connect_to(const Address& address, Millis timeout,
                                           Connector::AnsweredBy by) {
  const auto endpoints = resolve({address});
  if (!endpoints) return endpoints.error();
  auto socket = std::make_unique<Socket>();
  Error why;
  for (const Endpoint& endpoint : *endpoints) {
    Result<void> connected = socket->connect(endpoint, timeout);
    if (connected && by != Connector::AnsweredBy::kKernel)
      connected = check_answer(*socket, by, timeout);
    if (connected) return socket;
    // Of several errors a TLS mismatch is the most useful one.
    if (why.detail.empty() || connected.error().code == Code::kInvalid) why = connected.error();
  }
  return why;
}

}  // namespace

struct Connector::Attempt {
  std::mutex mutex;
  std::unique_ptr<Result<std::unique_ptr<Socket>>> outcome;
};

void Connector::start(const Address& address, Millis timeout, AnsweredBy by) {
  PAWL_ASSERT(!busy());
  attempt_ = std::make_shared<Attempt>();
  const auto started = start_detached([attempt = attempt_, wake = wake_, address, timeout, by] {
    auto outcome =
        std::make_unique<Result<std::unique_ptr<Socket>>>(connect_to(address, timeout, by));
    {
      const std::lock_guard lock(attempt->mutex);
      attempt->outcome = std::move(outcome);
    }
    wake();
  });
  if (started) return;
  attempt_->outcome = std::make_unique<Result<std::unique_ptr<Socket>>>(started.error());
  wake_();
}

std::unique_ptr<Result<std::unique_ptr<Socket>>> Connector::take() {
  if (!attempt_) return nullptr;
  std::unique_ptr<Result<std::unique_ptr<Socket>>> outcome;
  {
    const std::lock_guard lock(attempt_->mutex);
    outcome = std::move(attempt_->outcome);
  }
  if (outcome) attempt_.reset();
  return outcome;
}

}  // namespace pawl::client
