#include "base/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>

namespace pawl {
namespace {

using namespace std::chrono_literals;

// Its stdout, once it has ended.
std::string output_of(const std::vector<std::string>& argv,
                      std::chrono::seconds clock_offset = {}) {
  auto pipe = make_pipe();
  auto started = Process::start(argv, {.out = pipe->write.get(), .clock_offset = clock_offset});
  pipe->write.reset();
  if (!started) return "not started: " + started.error().detail;
  std::string text;
  char byte = 0;
  while (::read(pipe->read.get(), &byte, 1) == 1) text += byte;
  EXPECT_EQ(started->wait(), 0);
  return text;
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos ? '-' : text[name_end + 2];
}

TEST(Process, MissingProgramIsAnErrorThatSaysWhy) {
  const auto started = Process::start({"/no/such/program"}, {});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kUnavailable);
  EXPECT_EQ(started.error().detail, "could not start /no/such/program: No such file or directory");
}

TEST(Process, HasItsOwnGroupAndNoBlockedSignals) {
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  ASSERT_EQ(sigprocmask(SIG_BLOCK, &interrupt, &before), 0);
  const std::string blocked = output_of({"sh", "-c", "grep SigBlk /proc/self/status"});
  ASSERT_EQ(sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_EQ(blocked, "SigBlk:\t0000000000000000\n");
  EXPECT_NE(output_of({"sh", "-c", "cut -d' ' -f5 /proc/$$/stat"}),
            std::to_string(::getpgrp()) + "\n");
}

TEST(Process, FreezeReturnsOnceStoppedAndResumeContinues) {
  auto pipe = make_pipe();
  auto started = Process::start({"cat"}, {.in = pipe->read.get()});
  ASSERT_TRUE(started);
  started->freeze();
  EXPECT_EQ(state_of(started->pid()), 'T');
  EXPECT_TRUE(started->running());
  started->resume();
  pipe->read.reset();
  pipe->write.reset();  // cat ends with its input.
  EXPECT_EQ(started->wait(), 0);
}

TEST(Process, DestructionKillsTheWholeGroupEvenWhenFrozen) {
  auto pipe = make_pipe();
  {
    auto started =
        Process::start({"sh", "-c", "sleep 1000 & echo ready; wait"}, {.out = pipe->write.get()});
    ASSERT_TRUE(started);
    pipe->write.reset();
    std::array<char, 6> ready{};
    ASSERT_EQ(::read(pipe->read.get(), ready.data(), ready.size()), 6);
    started->freeze();
  }
  // Both had the pipe open; it ends when the last of them does.
  char byte = 0;
  EXPECT_EQ(::read(pipe->read.get(), &byte, 1), 0);
}

TEST(Process, ExitCodeOfAKilledProcessIs128PlusTheSignal) {
  auto pipe = make_pipe();
  auto started = Process::start({"cat"}, {.in = pipe->read.get()});
  ASSERT_TRUE(started);
  started->signal(SIGTERM);
  EXPECT_EQ(started->wait(), 128 + SIGTERM);
  EXPECT_FALSE(started->running());
}

TEST(Process, ClockOffsetShiftsTheBootClock) {
  const char* const script = "import time; print(int(time.clock_gettime(time.CLOCK_BOOTTIME)))";
  const std::string ours = output_of({"/usr/bin/python3", "-c", script});
  const std::string shifted = output_of({"/usr/bin/python3", "-c", script}, 2h);
  if (shifted.starts_with("not started: could not set the clock")) GTEST_SKIP() << shifted;
  EXPECT_GE(std::stoll(shifted), std::stoll(ours) + 7200);
  EXPECT_LT(std::stoll(shifted), std::stoll(ours) + 7200 + 600);
}

}  // namespace
}  // namespace pawl
