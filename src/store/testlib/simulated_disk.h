// A disk in memory that can lose power. It remembers what was synced; a power cut loses, keeps,
// tears and reorders the rest, as a seed decides:
//
//   - Unsynced writes survive or not sector by sector (512 bytes), in any combination.
//   - Unsynced creations, renames and removals of names survive or not one by one.
//   - A durable write (open_durable) and a finished sync survive. One that is in progress at the
//     cut counts as unsynced.
//
//   SimulatedDisk disk;
//   disk.cut_power_at(17);  // the 17th operation from now fails, and every later one
//   disk.restart(random);   // decides what survives; then the disk works again
//
// Operations that change or sync something are counted; reads are not. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "store/file.h"

namespace pawl::store {

class SimulatedDisk final : public Files {
 public:
  // Copies share bytes until one of them changes them. A copy has no locks, and no open file refers
  // to it.
  SimulatedDisk();
  SimulatedDisk(const SimulatedDisk& other);
  SimulatedDisk& operator=(const SimulatedDisk&) = delete;
  ~SimulatedDisk() override;

  // --- Files -------------------------------------------------------------------------------------
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

  // For file systems built on top of it: an existing file whose writes are not durable until it is
  // synced.
  Result<std::unique_ptr<File>> open_buffered(const std::string& path);

  // --- Faults ------------------------------------------------------------------------------------
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  // The power is cut during the `count`th operation from now (1 = the next).
  void cut_power_at(std::uint64_t count) { cut_at_ = operations_ + count; }
  void cut_power();
  [[nodiscard]] bool has_power() const { return power_; }
  // The `count`th operation from now fails with `error`; its effect is partial, as after a power
  // cut.
  void fail_at(std::uint64_t count, Error error) {
    fail_at_ = {operations_ + count, std::move(error)};
  }
  // The `count`th operation from now, a write or a sync, fails with `error` as a sync through the
  // page cache does: the bytes can be read, but are not on the disk, and count as written. Only
  // writing them again makes them durable; another sync does not.
  void fail_sync_at(std::uint64_t count, Error error) {
    fail_at(count, std::move(error));
    fails_in_cache_ = true;
  }
  // From now on no file can be created.
  void set_free_files(std::optional<std::uint64_t> files) { free_files_ = files; }
  // From now on no file can be opened or created: as without file descriptors. Open files work.
  void set_descriptors_left(bool left) { descriptors_left_ = left; }
  // Restores the power (after cutting it, if it was on): decides what survived, and ends all locks
  // and open files.
  void restart(Random& random);
  // Kills the process, not the machine: all writes can be read, but what was not synced still is
  // not. Pending faults are cancelled. Calls from now on are those of the next process.
  void kill_process();
  // The process is killed during the `count`th operation from now: its effect can be read and is
  // not synced, and nothing works until kill_process() or restart().
  void kill_process_at(std::uint64_t count) { kill_at_ = operations_ + count; }
  [[nodiscard]] bool has_process() const { return process_; }
  // The capacity of the disk; writes beyond it fail for lack of space.
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  [[nodiscard]] std::uint64_t used() const;
  void flip(const std::string& path, std::uint64_t offset, unsigned bit);
  void truncate(const std::string& path, std::uint64_t bytes);

  // The content of a file as it can be read now.
  [[nodiscard]] std::string content(const std::string& path);
  // Creates or replaces a file, durable at once.
  void put_file(const std::string& path, std::string_view bytes);

 private:
  static constexpr std::size_t kSector = 512;
  static constexpr std::size_t kChunk = 64 * 1024;
  using Chunk = std::array<char, kChunk>;

  struct Inode {
    std::vector<std::shared_ptr<Chunk>> chunks;  // Null: zeros. Copied before a change when shared.
    std::uint64_t size = 0;
    std::uint64_t durable_size = 0;
    // For each sector changed since the last sync, what it held before each change, oldest first.
    std::map<std::uint64_t, std::vector<std::string>> unsynced;
    // Those of them whose writing back failed: a sync does not write them again.
    std::set<std::uint64_t> dropped;

    void read(std::uint64_t offset, std::span<char> into) const;
    void write(std::uint64_t offset, std::string_view bytes);  // Unsynced.
    void write_durably(std::uint64_t offset, std::string_view bytes);
    void set(std::uint64_t offset, std::string_view bytes);  // No history.
    void sync();
    void drop_unsynced();  // A sync that failed in the page cache.
    void apply_power_cut(Random& random);
  };
  using InodePtr = std::shared_ptr<Inode>;
  using Names = std::map<std::string, InodePtr>;
  struct NameChange {
    std::string removed;  // Empty: none.
    std::string added;    // Empty: none.
    InodePtr inode;
    bool directory = false;  // The names are of directories, and their content moves along.
  };
  // All names of files and of directories.
  struct Tree {
    Names files;
    std::set<std::string> directories;
    void apply(const NameChange& change);
  };
  class OpenFile;
  class Lock;

  enum class Outcome { kSuccess, kPowerCut, kKilled, kFail };
  // Counts an operation and returns what happens to it.
  Outcome begin_operation();
  [[nodiscard]] Error error_of(Outcome outcome) const;
  // The error of every call, if there is no power, or if the caller is of an earlier process.
  [[nodiscard]] std::optional<Error> unusable(std::uint64_t process_number) const;
  // The error of a call that needs a file descriptor.
  [[nodiscard]] std::optional<Error> cannot_open(const std::string& path) const;
  void change_name(NameChange change);
  InodePtr find(const std::string& path) const;

  Tree tree_;
  Tree durable_tree_;
  std::vector<NameChange> unsynced_names_;
  std::set<std::string> locked_;
  // Grows with each restart or kill; files and locks of an earlier process are unusable.
  std::uint64_t process_number_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t cut_at_ = 0;
  std::uint64_t kill_at_ = 0;
  std::pair<std::uint64_t, Error> fail_at_;
  bool fails_in_cache_ = false;
  std::optional<std::uint64_t> capacity_;
  std::optional<std::uint64_t> free_files_;
  bool descriptors_left_ = true;
  bool power_ = true;
  bool process_ = true;
};

}  // namespace pawl::store
