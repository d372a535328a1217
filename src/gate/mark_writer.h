// Writes marks on a thread of its own, so that a slow sync never stops the proxy. Marks that are
// submitted while one batch is being synced form the next one.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "gate/mark_file.h"

namespace pawl::gate {

// Used by the proxy's thread.
class MarkWriter {
 public:
  explicit MarkWriter(MarkFile& file);
  ~MarkWriter();
  MarkWriter(const MarkWriter&) = delete;
  MarkWriter& operator=(const MarkWriter&) = delete;

  void submit(std::string name, Mark mark);
  // Readable when take() has something.
  [[nodiscard]] int fd() const { return event_.get(); }
  // The resources whose marks have become durable since the last call. An error: the content of the
  // disk is not known; stop at once.
  [[nodiscard]] Result<std::vector<std::string>> take();
  // Marks that were submitted and not taken.
  [[nodiscard]] std::size_t pending() const { return pending_; }

 private:
  void run();

  MarkFile& file_;
  const UniqueFd event_;
  std::size_t pending_ = 0;  // Used by the proxy's thread only.

  std::mutex mutex_;  // Guards the following.
  std::condition_variable wake_;
  bool stop_ = false;
  std::vector<NamedMark> submitted_;
  std::vector<std::string> written_;
  Result<void> state_;

  std::thread thread_;
};

}  // namespace pawl::gate
