#include "cli/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

namespace pawl::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Handler = void (*)(int);

Handler handler_of(int signal) {
  struct sigaction now {};
  EXPECT_EQ(sigaction(signal, nullptr, &now), 0);
  return now.sa_handler;
}

bool blocked(int signal) {
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

// Puts everything back, whatever a test has changed.
class SignalsTest : public testing::Test {
 protected:
  SignalsTest() { sigprocmask(SIG_BLOCK, nullptr, &mask_); }
  ~SignalsTest() override {
    for (const int signal : {SIGHUP, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_{};
};

TEST_F(SignalsTest, TerminatingSignalIsReadInstead) {
  Signals signals;
  ASSERT_TRUE(signals.ready());
  EXPECT_THAT(signals.take(), IsEmpty());
  raise(SIGTERM);
  pollfd fd{signals.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 0), 1);
  EXPECT_THAT(signals.take(), ElementsAre(SIGTERM));
  EXPECT_THAT(signals.take(), IsEmpty());
}

// Whether the process needs it for itself: a fault of its own, a closed pipe, or nobody can have
// it.
bool stays_with_the_process(int signal) {
  for (const int own : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS,
                        SIGPIPE, SIGXFSZ}) {
    if (signal == own) return true;
  }
  return signal > SIGSYS && signal < SIGRTMIN;  // The C library's.
}

TEST_F(SignalsTest, EveryForwardableSignalIsBlocked) {
  Signals signals;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (stays_with_the_process(signal)) continue;
    ASSERT_TRUE(blocked(signal)) << signal;
    raise(signal);
    EXPECT_THAT(signals.take(), ElementsAre(signal));
  }
}

TEST_F(SignalsTest, IgnoredSignalsStayIgnored) {
  ::signal(SIGHUP, SIG_IGN);  // As nohup does.
  Signals signals;
  raise(SIGHUP);
  EXPECT_THAT(signals.take(), IsEmpty());
}

TEST_F(SignalsTest, IgnoredSigchldKeepsTheExitCode) {
  ::signal(SIGCHLD, SIG_IGN);
  Signals signals;
  EXPECT_EQ(handler_of(SIGCHLD), SIG_DFL);
  raise(SIGCHLD);
  EXPECT_THAT(signals.take(), ElementsAre(SIGCHLD));
}

TEST_F(SignalsTest, CommandInheritsTheOriginalSignals) {
  ::signal(SIGCHLD, SIG_IGN);
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, nullptr);

  Signals signals;
  EXPECT_EQ(handler_of(SIGPIPE), SIG_IGN);
  EXPECT_TRUE(blocked(SIGTERM));

  signals.restore();
  EXPECT_EQ(handler_of(SIGPIPE), SIG_DFL);
  EXPECT_EQ(handler_of(SIGCHLD), SIG_IGN);
  EXPECT_FALSE(blocked(SIGTERM));
  EXPECT_TRUE(blocked(SIGUSR1));  // By the parent process of pawl.
}

TEST_F(SignalsTest, DestructorRestoresTheSignals) {
  { const Signals signals; }
  EXPECT_FALSE(blocked(SIGTERM));
  EXPECT_EQ(handler_of(SIGPIPE), SIG_DFL);
}

TEST_F(SignalsTest, QueuedSignalsAreAllRead) {
  Signals signals;
  raise(SIGRTMIN);
  raise(SIGRTMIN);
  EXPECT_THAT(signals.take(), ElementsAre(SIGRTMIN, SIGRTMIN));
}

TEST_F(SignalsTest, RelayedSignalIsRecognized) {
  Signals signals;
  sigval value{};
  value.sival_int = kRelayedSignal;
  ASSERT_EQ(sigqueue(getpid(), SIGTERM, value), 0);
  raise(SIGUSR1);
  for (const ReceivedSignal& signal : signals.receive()) {
    const bool relayed = signal.origin == ReceivedSignal::Origin::kRelay;
    EXPECT_EQ(relayed, signal.number == SIGTERM) << signal.number;
  }
}

TEST(SignalKinds, TerminatingAndStoppingSignalsAreDistinguished) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGRTMIN}) {
    EXPECT_TRUE(ends_a_process(signal)) << signal;
    EXPECT_FALSE(stops_a_process(signal)) << signal;
  }
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU}) {
    EXPECT_TRUE(stops_a_process(signal)) << signal;
    EXPECT_FALSE(ends_a_process(signal)) << signal;
  }
  for (const int signal : {SIGCONT, SIGWINCH, SIGURG, SIGCHLD}) {
    EXPECT_FALSE(ends_a_process(signal)) << signal;
    EXPECT_FALSE(stops_a_process(signal)) << signal;
  }
}

}  // namespace
}  // namespace pawl::cli
