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
#include "drill/messages.h"
#include "drill/target.h"
#include "pawl/client.h"

namespace pawl::drill {
namespace {

using std::chrono::milliseconds;

std::int64_t now() {
  return client::boot_now().time_since_epoch().count();
}

// Tells the drill. Any thread.
class Mouth {
 public:
  explicit Mouth(int fd) : fd_(fd) {}

  void say(json::object message) {
    if (!message.contains("at")) message["at"] = now();
    const std::string line = json::serialize(message) + "\n";
    const std::lock_guard hold(mutex_);
    std::size_t sent = 0;
    while (sent < line.size()) {
      const ssize_t wrote = ::write(fd_, line.data() + sent, line.size() - sent);
      if (wrote < 0 && errno != EINTR) return;  // Nobody listens any more; stdin ends as well.
      if (wrote > 0) sent += static_cast<std::size_t>(wrote);
    }
  }

 private:
  const int fd_;
  std::mutex mutex_;
};

class Worker {
 public:
  explicit Worker(int out) : mouth_(std::make_shared<Mouth>(out)) {}

  void take(const json::object& order) {
    const std::string word = text(order, "do");
    if (word == "prepare") return prepare(order);
    if (client_ == nullptr) return mouth_->say({{"is", "failed"}, {"detail", "not prepared"}});
    if (word == "acquire") return acquire(order);
    if (word == "release") return release();
    if (word == "advance") return advance(order);
    if (word == "write") return write(order);
    mouth_->say({{"is", "failed"}, {"detail", "there is no order \"" + word + "\""}});
  }

 private:
  void prepare(const json::object& order) {
    name_ = text(order, "name");
    auto writer = open_writer(target_from(order.at("target").as_object()));
    if (!writer) return mouth_->say({{"is", "failed"}, {"detail", writer.error().detail}});
    writer_ = *std::move(writer);
    ClientOptions options{.name = "pawl-drill-" + name_,
                          .auth = {text(order, "user"), text(order, "secret")}};
    options.tls = tls_from(order.at("tls").as_object());
    client_ = std::make_unique<Client>(text(order, "addresses"), std::move(options));
    mouth_->say({{"is", "ready"}});
  }

  void acquire(const json::object& order) {
    AcquireOptions options{.ttl = milliseconds(number(order, "ttl_ms")),
                           .wait = milliseconds(number(order, "wait_ms"))};
    options.wait_for_own = true;
    options.owner = std::string(kWorkerOwner) + name_;
    // The token is not known before the grant, which is told on the same thread: so it is, before
    // it is used.
    auto token = std::make_shared<std::uint64_t>(0);
    options.on_change = [mouth = mouth_, token](LeaseState state, const std::string& reason) {
      mouth->say(
          {{"is", "lease"}, {"token", *token}, {"state", to_text(state)}, {"reason", reason}});
    };
    client_->acquire_async({text(order, "lock")}, std::move(options),
                           [this, token](Result<Lease> got) {
                             if (!got)
                               return mouth_->say({{"is", "not_granted"},
                                                   {"code", static_cast<int>(got.error().code)},
                                                   {"detail", got.error().detail}});
                             *token = got->token();
                             const std::int64_t at = now();
                             {
                               const std::lock_guard hold(mutex_);
                               lease_ = *std::move(got);
                             }
                             mouth_->say({{"is", "granted"}, {"token", *token}, {"at", at}});
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
    mouth_->say({{"is", "released"}, {"at", at}});
  }

  void advance(const json::object& order) {
    const auto outcome =
        writer_->advance(number(order, "token"), milliseconds(number(order, "wait_ms")));
    mouth_->say(
        {{"is", "advanced"}, {"answer", to_text(outcome.answer)}, {"detail", outcome.detail}});
  }

  void write(const json::object& order) {
    const json::value id = order.at("id");
    const std::int64_t sent = now();
    if (order.at("asks").as_bool()) {
      if (const auto still = ask(); !still)
        return mouth_->say(
            {{"is", "withheld"}, {"id", id}, {"sent", sent}, {"detail", still.error().detail}});
    }
    const auto outcome = writer_->write(number(order, "token"), text(order, "value"));
    mouth_->say({{"is", "written"},
                 {"id", id},
                 {"sent", sent},
                 {"answered", now()},
                 {"answer", to_text(outcome.answer)},
                 {"let_through", outcome.let_through},
                 {"detail", outcome.detail}});
  }

  Result<void> ask() {
    const std::lock_guard hold(mutex_);
    if (!lease_) return Error{Code::kLeaseLost, "nothing is held"};
    return lease_->check();
  }

  const std::shared_ptr<Mouth> mouth_;
  std::string name_;
  std::unique_ptr<Writer> writer_;  // used by the thread that takes orders
  std::mutex mutex_;                // guards lease_, which the client's callback thread sets
  std::optional<Lease> lease_;
  std::unique_ptr<Client> client_;  // Goes first: its callbacks use the rest.
};

}  // namespace

int work(int in, int out) {
  Worker worker(out);
  Lines lines;
  for (;;) {
    const auto more = lines.read(in);
    while (const auto line = lines.next()) {
      const auto order = parse(*line);
      if (!order) return 64;
      worker.take(*order);
    }
    if (!more) return 0;
  }
}

}  // namespace pawl::drill
