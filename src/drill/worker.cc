#include "drill/worker.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "client/boot_clock.h"
#include "drill/target.h"
#include "drill/ways.h"
#include "drill/worker_messages.h"
#include "pawl/client.h"

namespace pawl::drill {
namespace {

using std::chrono::milliseconds;

std::int64_t now() {
  return client::boot_now().time_since_epoch().count();
}

// Sends reports to the drill. Any thread.
class Reporter {
 public:
  explicit Reporter(int fd) : fd_(fd) {}

  void send(json::object message) {
    if (!message.contains("at")) message["at"] = now();
    const std::string line = json::serialize(message) + "\n";
    const std::lock_guard hold(mutex_);
    std::size_t sent = 0;
    while (sent < line.size()) {
      const ssize_t wrote = ::write(fd_, line.data() + sent, line.size() - sent);
      if (wrote < 0 && errno != EINTR) return;  // The drill has ended; stdin ends as well.
      if (wrote > 0) sent += static_cast<std::size_t>(wrote);
    }
  }

 private:
  const int fd_;
  std::mutex mutex_;
};

class Worker {
 public:
  explicit Worker(int out) : reporter_(std::make_shared<Reporter>(out)) {}

  void execute(const json::object& command) {
    const std::string word = text(command, "do");
    if (word == "prepare") return prepare(command);
    if (client_ == nullptr) return reporter_->send({{"is", "failed"}, {"detail", "not prepared"}});
    if (word == "acquire") return acquire(command);
    if (word == "release") return release();
    if (word == "advance") return advance(command);
    if (word == "write") return write(command);
    if (word == "try_ways") return try_ways(command);
    reporter_->send({{"is", "failed"}, {"detail", "unknown command \"" + word + "\""}});
  }

 private:
  void prepare(const json::object& command) {
    name_ = text(command, "name");
    target_ = target_from(command.at("target").as_object());
    auto writer = open_writer(target_);
    if (!writer) return reporter_->send({{"is", "failed"}, {"detail", writer.error().detail}});
    writer_ = *std::move(writer);
    ClientOptions options{.name = "pawl-drill-" + name_,
                          .auth = {text(command, "user"), text(command, "secret")}};
    options.tls = tls_from(command.at("tls").as_object());
    client_ = std::make_unique<Client>(text(command, "addresses"), std::move(options));
    reporter_->send({{"is", "ready"}});
  }

  void acquire(const json::object& command) {
    AcquireOptions options{.ttl = milliseconds(number(command, "ttl_ms")),
                           .wait = milliseconds(number(command, "wait_ms"))};
    options.wait_for_own = true;
    options.owner = std::string(kWorkerOwner) + name_;
    // Set by the grant below, before on_change is called: both run on the client's callback thread.
    auto token = std::make_shared<std::uint64_t>(0);
    options.on_change = [reporter = reporter_, token](LeaseState state, const std::string& reason) {
      reporter->send(
          {{"is", "lease"}, {"token", *token}, {"state", to_text(state)}, {"reason", reason}});
    };
    client_->acquire_async({text(command, "lock")}, std::move(options),
                           [this, token](Result<Lease> got) {
                             if (!got)
                               return reporter_->send({{"is", "not_granted"},
                                                       {"code", static_cast<int>(got.error().code)},
                                                       {"detail", got.error().detail}});
                             *token = got->token();
                             const std::int64_t at = now();
                             {
                               const std::lock_guard hold(mutex_);
                               lease_ = *std::move(got);
                             }
                             reporter_->send({{"is", "granted"}, {"token", *token}, {"at", at}});
                           });
  }

  void release() {
    std::optional<Lease> lease;
    {
      const std::lock_guard hold(mutex_);
      lease.swap(lease_);
    }
    const std::int64_t at = now();
    if (lease) static_cast<void>(lease->release());
    reporter_->send({{"is", "released"}, {"at", at}});
  }

  void advance(const json::object& command) {
    const auto outcome =
        writer_->advance(number(command, "token"), milliseconds(number(command, "wait_ms")));
    reporter_->send(
        {{"is", "advanced"}, {"answer", to_text(outcome.answer)}, {"detail", outcome.detail}});
  }

  void write(const json::object& command) {
    const json::value id = command.at("id");
    const std::int64_t sent = now();
    if (command.at("check_lease").as_bool()) {
      if (const auto held = check_lease(); !held)
        return reporter_->send(
            {{"is", "withheld"}, {"id", id}, {"sent", sent}, {"detail", held.error().detail}});
    }
    const auto outcome = writer_->write(number(command, "token"), text(command, "value"));
    reporter_->send({{"is", "written"},
                     {"id", id},
                     {"sent", sent},
                     {"answered", now()},
                     {"answer", to_text(outcome.answer)},
                     {"let_through", outcome.let_through},
                     {"detail", outcome.detail},
                     {"rows", outcome.rows ? json::value(*outcome.rows) : json::value(nullptr)}});
  }

  void try_ways(const json::object& command) {
    const auto tried = drill::try_ways(target_, number(command, "token"));
    if (!tried) return reporter_->send({{"is", "failed"}, {"detail", tried.error().detail}});
    json::array ways;
    for (const TriedWay& each : *tried) ways.push_back(to_json(each));
    reporter_->send({{"is", "tried"}, {"ways", std::move(ways)}});
  }

  Result<void> check_lease() {
    const std::lock_guard hold(mutex_);
    if (!lease_) return Error{Code::kLeaseLost, "no lease is held"};
    return lease_->check();
  }

  const std::shared_ptr<Reporter> reporter_;
  std::string name_;
  Target target_;
  std::unique_ptr<Writer> writer_;  // used by the thread that executes commands
  std::mutex mutex_;                // guards lease_, which the client's callback thread sets
  std::optional<Lease> lease_;
  std::unique_ptr<Client> client_;  // Destroyed first: its callbacks use the rest.
};

}  // namespace

int run_worker(int in, int out) {
  Worker worker(out);
  LineReader lines;
  for (;;) {
    const auto more = lines.read(in);
    while (const auto line = lines.next()) {
      const auto command = parse(*line);
      if (!command) return 64;
      worker.execute(*command);
    }
    if (!more) return 0;
  }
}

}  // namespace pawl::drill
