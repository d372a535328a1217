// A lock that the asking thread holds already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <system_error>

#include "e2e/libpawl_fixture.h"

namespace pawl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Hard case 16.
TEST_F(LibPawl, ThreadThatWouldWaitForItselfGetsAnError) {
  Client client(pawld.address());
  Lease held = take(client, "a");
  const auto refused = client.acquire_all({"b", "a"}, {.wait = 60s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().detail, HasSubstr("as token " + std::to_string(held.token())));
  const auto busy = client.acquire("a");
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::kBusy);
  EXPECT_THAT(busy.error().detail, HasSubstr("this client holds it, as token"));
  EXPECT_TRUE(held.check());
  ASSERT_TRUE(held.release());
  EXPECT_TRUE(client.acquire("a", {.wait = 60s}));
}

TEST_F(LibPawl, ThreadMayWaitForALeaseItHandedOver) {
  Client client(pawld.address());
  std::promise<void> refused;
  auto other = std::async(std::launch::async, [&, handed = take(client, "a")]() mutable {
    const Lease held = std::move(handed);
    refused.get_future().wait();
    return held.token();  // and gives it back
  });
  EXPECT_EQ(client.acquire("a", {.wait = 60s}).error().code, Code::kInvalid);
  refused.set_value();
  const auto next = client.acquire("a", {.wait = 60s, .wait_for_own = true});
  ASSERT_TRUE(next) << next.error().detail;
  EXPECT_GT(next->token(), other.get());
}

// Hard case 16; design rule: reentry never bumps a token.
TEST_F(LibPawl, RecursiveMutexKeepsItsTokenAtEveryDepth) {
  Client client(pawld.address()), observer(pawld.address());
  RecursiveMutex mutex(client, "a");
  mutex.lock();
  const std::uint64_t token = mutex.lease()->token();
  {
    const std::lock_guard inner(mutex);
    EXPECT_EQ(mutex.lease()->token(), token);
    ASSERT_TRUE(mutex.try_lock());
    EXPECT_EQ(mutex.lease()->token(), token);
    mutex.unlock();
  }
  EXPECT_FALSE(observer.acquire("a"));
  EXPECT_FALSE(std::async(std::launch::async, [&] { return mutex.try_lock(); }).get());
  mutex.unlock();
  EXPECT_TRUE(observer.acquire("a"));
}

TEST_F(LibPawl, LostRecursiveMutexMustBeUnlockedFirst) {
  Client client(pawld.address());
  RecursiveMutex mutex(client, "a", {.ttl = 1s, .wait = 60s, .max_hold = 1s});
  mutex.lock();
  const std::uint64_t token = mutex.lease()->token();
  ASSERT_TRUE(eventually([&] { return !mutex.lease()->check(); }));
  EXPECT_THROW(mutex.lock(), std::system_error);
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  const std::lock_guard anew(mutex);
  EXPECT_GT(mutex.lease()->token(), token);
}

}  // namespace
}  // namespace pawl
