// The files that a backup reads, held open. A file that is removed meanwhile can still be read
// through an open handle, so a backup, however long it takes, keeps nobody from making checkpoints
// and removing what they cover. (A file must not be recycled meanwhile: that changes its bytes.)
//
//   PinnedFiles pinned(files);
//   pinned.pin(path)…;          // now, by the thread that knows that the files exist
//   BackupJob job(pinned, …);   // open_read(path) gives the file that was pinned
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "store/file.h"

namespace pawl::store::journal {

class PinnedFiles final : public Files {
 public:
  explicit PinnedFiles(Files& files) : files_(files) {}

  Result<void> pin(const std::string& path) {
    auto file = files_.open_read(path);
    if (!file) return file.error();
    pinned_[path] = std::shared_ptr<File>(std::move(*file));
    return {};
  }

  Result<std::unique_ptr<File>> open_read(const std::string& path) override {
    const auto found = pinned_.find(path);
    if (found == pinned_.end()) return files_.open_read(path);
    return std::unique_ptr<File>(std::make_unique<Shared>(found->second));
  }

  // --- All else goes to the files themselves -----------------------------------------------------
  Result<bool> exists(const std::string& path) override { return files_.exists(path); }
  Result<void> make_directory(const std::string& directory) override {
    return files_.make_directory(directory);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return files_.list(directory);
  }
  Result<std::unique_ptr<File>> create(const std::string& path) override {
    return files_.create(path);
  }
  Result<std::unique_ptr<File>> open_durable(const std::string& path) override {
    return files_.open_durable(path);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  Result<void> remove(const std::string& path) override { return files_.remove(path); }
  Result<void> rename_directory(const std::string& from, const std::string& to) override {
    return files_.rename_directory(from, to);
  }
  Result<void> remove_directory(const std::string& directory) override {
    return files_.remove_directory(directory);
  }
  Result<void> sync_directory(const std::string& directory) override {
    return files_.sync_directory(directory);
  }
  Result<std::uint64_t> free_space(const std::string& directory) override {
    return files_.free_space(directory);
  }
  Result<std::uint64_t> free_files(const std::string& directory) override {
    return files_.free_files(directory);
  }
  Result<bool> is_within(const std::string& directory, const std::string& ancestor) override {
    return files_.is_within(directory, ancestor);
  }
  Result<bool> share_space(const std::string& directory, const std::string& other) override {
    return files_.share_space(directory, other);
  }
  Result<std::unique_ptr<DirectoryLock>> lock_directory(const std::string& directory) override {
    return files_.lock_directory(directory);
  }

 private:
  // A pinned file may be opened more than once, by one thread.
  class Shared final : public File {
   public:
    explicit Shared(std::shared_ptr<File> file) : file_(std::move(file)) {}
    Result<std::size_t> read(std::uint64_t offset, std::span<char> into) override {
      return file_->read(offset, into);
    }
    Result<void> write(std::uint64_t offset, std::string_view bytes) override {
      return file_->write(offset, bytes);
    }
    Result<void> sync() override { return file_->sync(); }
    Result<std::uint64_t> size() override { return file_->size(); }

   private:
    const std::shared_ptr<File> file_;
  };

  Files& files_;
  std::map<std::string, std::shared_ptr<File>> pinned_;
};

}  // namespace pawl::store::journal
