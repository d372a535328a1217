// Writes to Redis that a newer holder's token fences out. Install the guard first: `pawl guard
// install redis`.
//
//   pawl::RedisGuard guard(connection);                    // a redisContext* you already have
//   auto done = guard.write(lease, "orders", {"SET", "{orders}:7", "shipped"});
//   if (!done) return report(done.error());                // kStaleToken is final
//
// The check and the command are one atomic call. A command that is sent around it is not checked:
// `pawl guard protect redis` prints the ACL rule that keeps other users from doing so.
//
// Link Pawl::redis. Other languages call the function pawl_write of the installed library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/guard.h"
#include "pawl/lease.h"
#include "pawl/result.h"

struct redisContext;  // hiredis

namespace pawl {

namespace guard {  // Pawl's own
class RedisCalls;
}  // namespace guard

// What a command has answered.
struct RedisReply {
  enum class Type : std::uint8_t { kNil, kStatus, kText, kInteger, kArray };
  Type type = Type::kNil;
  std::string text = {};               // kStatus, kText
  std::int64_t integer = 0;            // kInteger
  std::vector<RedisReply> items = {};  // kArray

  bool operator==(const RedisReply&) const = default;
};

struct RedisWrite {
  Decision decision;
  RedisReply reply;  // of the command; kNil also when it was replayed, for it did not run then
};

struct RedisWriteOptions {
  // The number of this operation under the token: it takes effect once, however often write() is
  // called with it, and an unknown outcome can be settled. Numbers grow: a smaller one than the
  // last is stale. 0: none.
  std::uint64_t operation = 0;
};

// Used by one thread at a time, like the connection, which it does not own and expects outside
// MULTI and without replies that were not read. In a Redis Cluster the connection is to the node
// that has the slot of {GUARD}. As always with hiredis, the program ignores SIGPIPE.
class PAWL_PUBLIC RedisGuard final : public Guard {
 public:
  // `prepare` is called after the guard has connected again (redisReconnect), to settle an unknown
  // outcome: AUTH, SELECT. False: it could not. Without it a new connection is used as it is.
  explicit RedisGuard(redisContext* connection,
                      std::function<bool(redisContext*)> prepare = nullptr);
  ~RedisGuard() override;
  RedisGuard(const RedisGuard&) = delete;
  RedisGuard& operator=(const RedisGuard&) = delete;

  [[nodiscard]] std::string name() const override;
  // Asks the server how it persists, replicates and evicts.
  [[nodiscard]] GuardStrength strength() override;
  // Never waits: Redis runs one call at a time.
  [[nodiscard]] Result<std::uint64_t> advance(std::string_view resource, std::uint64_t token,
                                              std::chrono::milliseconds wait) override;
  [[nodiscard]] Result<Decision> check(std::string_view resource, std::uint64_t token) override;

  // Checks the lease's token and runs the command, in one atomic step. The command may touch keys
  // of this resource only. The value says that the command is in effect: admitted now, replayed
  // (done before, it did not run), or let through by a mode that does not refuse.
  //   kStaleToken    a newer holder has been here. Stop; never retried.
  //   kIssuerBehind  stale, and yet the lease is alive: pawld's counter is behind the guard. An
  //                  operator must raise it.
  //   kLeaseLost     the lease is over, noticed before the call. Nothing happened.
  //   kUnknown       the connection broke and there is no operation number to ask with.
  //   kUnavailable   the server is loading, a replica, or out of memory. Nothing happened.
  //   kDenied        an ACL rule. Nothing happened.
  //   kInvalid       the guard or the command is wrong: the detail has Redis's words.
  [[nodiscard]] Result<RedisWrite> write(const Lease& lease, std::string_view resource,
                                         const std::vector<std::string>& command,
                                         const RedisWriteOptions& options = {});
  // The same for a program that has only a token, such as a command under `pawl run`: no lease is
  // checked then.
  [[nodiscard]] Result<RedisWrite> write(std::uint64_t token, std::string_view resource,
                                         const std::vector<std::string>& command,
                                         const RedisWriteOptions& options = {});

 private:
  // Asked once: whether what is installed there keeps the contract this was written for.
  [[nodiscard]] Result<void> verify_installation();
  bool connect_again();

  redisContext* connection_;
  std::function<bool(redisContext*)> prepare_;
  std::unique_ptr<guard::RedisCalls> calls_;
};

}  // namespace pawl
