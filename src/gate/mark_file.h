// The marks of all resources on disk: one file, to which each change is appended.
//
// The file `marks` in the state directory is text. Its first line names the format; every other
// line is one batch of marks, which became durable together:
//
//   pawl gate marks 1
//   5f1b2c3d open 34 /accounts/7 closed 12 /accounts/8
//
// The first word is the CRC-32C of the rest of the line, in hex. Of several marks for a resource
// the last one counts. Resources are canonical paths, so they have no spaces.
//
// A last line that is not complete (it has no newline, or sectors of it are zero) was being written
// when the power failed, and is dropped: nobody relied on it. Any other line that is wrong is
// damage: the gate refuses to start, because without its marks it might forward an old token.
//
// One process at a time: the directory is locked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gate/fence.h"
#include "pawl/result.h"
#include "store/file.h"

namespace pawl::gate {

using Marks = std::map<std::string, Mark, std::less<>>;
using NamedMark = std::pair<std::string, Mark>;

// What the bytes of the file say. kInvalid names the line that is wrong. Pure.
[[nodiscard]] Result<Marks> parse_marks(std::string_view bytes);

// Belongs to one thread at a time.
class MarkFile {
 public:
  enum class Missing : std::uint8_t { kCreate, kRefuse };
  // Locks and reads the directory, and writes the file anew without what is obsolete.
  //   kBusy     another gate uses it
  //   kInvalid  the file is damaged; or it is missing, with kRefuse
  [[nodiscard]] static Result<std::unique_ptr<MarkFile>> open(store::Files& files,
                                                              const std::string& directory,
                                                              Missing missing);

  [[nodiscard]] const Marks& marks() const { return marks_; }
  // They are durable when it returns. After an error the content of the disk is not known: stop.
  Result<void> append(const std::vector<NamedMark>& batch);
  [[nodiscard]] std::uint64_t syncs() const { return syncs_; }

 private:
  MarkFile(store::Files& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}
  Result<void> rewrite();

  store::Files& files_;
  const std::string directory_;
  std::unique_ptr<store::DirectoryLock> lock_;
  Marks marks_;
  std::unique_ptr<store::File> file_;
  std::uint64_t size_ = 0;
  std::uint64_t rewrite_at_ = 0;  // when it has this size
  std::uint64_t syncs_ = 0;
};

}  // namespace pawl::gate
