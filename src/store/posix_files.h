// The real file system. Journal segments are written with O_DIRECT|O_DSYNC. Where the file system
// refuses that (tmpfs, some network and FUSE file systems), with buffered writes and fdatasync,
// which leaves the same bytes.
//
// A few file descriptors are kept in reserve: when the process or the system has none left, one of
// them is given up for the file that is to be opened. So the connections of clients cannot keep the
// store from its files. The reserve is filled again by free_space(), which is called about once a
// second.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "store/file.h"

namespace pawl::store {

class PosixFiles final : public Files {
 public:
  // kNever is for tests: as if the file system refused O_DIRECT at open.
  enum class Direct { kWherePossible, kNever };
  explicit PosixFiles(Direct direct = Direct::kWherePossible);
  ~PosixFiles() override;

  // `report` is called once, by the thread that writes, with the path of the first file that cannot
  // be written with O_DIRECT. Set it before the first file is opened; what it refers to must
  // outlive this object and its files.
  void on_buffered(std::function<void(const std::string& path)> report) {
    on_buffered_ = std::move(report);
  }

  Result<bool> exists(const std::string& path) override;
  Result<void> make_directory(const std::string& directory) override;
  Result<std::vector<std::string>> list(const std::string& directory) override;
  Result<std::unique_ptr<File>> create(const std::string& path) override;
  Result<std::unique_ptr<File>> open_read(const std::string& path) override;
  Result<std::unique_ptr<File>> open_durable(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> rename_directory(const std::string& from, const std::string& to) override;
  Result<void> remove_directory(const std::string& directory) override;
  Result<void> sync_directory(const std::string& directory) override;
  Result<std::uint64_t> free_space(const std::string& directory) override;
  Result<std::uint64_t> free_files(const std::string& directory) override;
  Result<bool> is_within(const std::string& directory, const std::string& ancestor) override;
  Result<bool> share_space(const std::string& directory, const std::string& other) override;
  Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory) override;

 private:
  class Lock;

  void report_buffered(const std::string& path);
  // open(2); gives up a descriptor of the reserve for it if there is no other.
  UniqueFd open_file(const std::string& path, int flags, unsigned mode = 0);
  bool give_up_reserved();
  void fill_reserve();

  const Direct direct_;
  std::mutex mutex_;  // Guards the following two.
  std::vector<UniqueFd> reserve_;
  std::map<std::string, std::shared_ptr<const UniqueFd>> locked_directories_;
  std::function<void(const std::string& path)> on_buffered_;
  std::once_flag reported_;
};

}  // namespace pawl::store
