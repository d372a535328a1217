#include "cli/process_tree.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

namespace pawl::cli {
namespace {

// A chain of processes, each the child of the one before. All end when this object does.
class Chain {
 public:
  explicit Chain(int length) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    first_ = fork();
    if (first_ == 0) grow(length - 1, ends[1]);
    close(ends[1]);
    char ready = 0;
    EXPECT_EQ(read(ends[0], &ready, 1), 1);
    close(ends[0]);
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain() {
    for (const TreeProcess& process : descendants(first_)) (void)send_signal(process, SIGKILL);
    kill(first_, SIGKILL);
    waitpid(first_, nullptr, 0);
  }

 private:
  [[noreturn]] static void grow(int more, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (more > 0 && fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      --more;
    }
    if (more == 0) (void)!write(ready, "", 1);
    close(ready);
    for (;;) pause();
  }

  pid_t first_ = 0;
};

TEST(ProcessTreeTest, ParentsAreListedBeforeTheirChildren) {
  constexpr int kLength = 12;
  const Chain chain(kLength);
  const std::vector<TreeProcess> list = descendants(getpid());
  ASSERT_EQ(list.size(), kLength);
  pid_t parent = getpid();
  for (const TreeProcess& process : list) {
    EXPECT_EQ(process.parent, parent);
    parent = process.pid;
  }
}

}  // namespace
}  // namespace pawl::cli
