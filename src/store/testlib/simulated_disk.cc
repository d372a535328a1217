#include "store/testlib/simulated_disk.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/mutants.h"

namespace pawl::store {
namespace {

Error power_is_cut() {
  return Error{Code::kUnknown, "the simulated power is cut"};
}
Error process_is_killed() {
  return Error{Code::kUnknown, "the simulated process was killed"};
}
Error no_such_file(const std::string& path) {
  return Error{Code::kUnknown, path + ": open: No such file or directory"};
}

bool all_zeros(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

}  // namespace

// --- Inode ---------------------------------------------------------------------------------------

void SimulatedDisk::Inode::read(std::uint64_t offset, std::span<char> into) const {
  for (std::size_t done = 0; done < into.size();) {
    const std::uint64_t at = offset + done;
    const std::size_t count = std::min<std::size_t>(into.size() - done, kChunk - at % kChunk);
    const std::size_t index = at / kChunk;
    if (index < chunks.size() && chunks[index]) {
      std::memcpy(into.data() + done, chunks[index]->data() + at % kChunk, count);
    } else {
      std::memset(into.data() + done, 0, count);
    }
    done += count;
  }
}

void SimulatedDisk::Inode::set(std::uint64_t offset, std::string_view bytes) {
  size = std::max(size, offset + bytes.size());
  chunks.resize(std::max<std::size_t>(chunks.size(), (size + kChunk - 1) / kChunk));
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(bytes.size(), kChunk - offset % kChunk);
    const std::string_view piece = bytes.substr(0, count);
    std::shared_ptr<Chunk>& chunk = chunks[offset / kChunk];
    if (chunk || !all_zeros(piece)) {
      if (!chunk) {
        chunk = std::make_shared<Chunk>();
        chunk->fill(0);
      } else if (chunk.use_count() > 1) {
        chunk = std::make_shared<Chunk>(*chunk);
      }
      std::memcpy(chunk->data() + offset % kChunk, piece.data(), count);
    }
    offset += count;
    bytes.remove_prefix(count);
  }
}

void SimulatedDisk::Inode::write(std::uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  const std::uint64_t first = offset / kSector;
  const std::uint64_t last = (offset + bytes.size() - 1) / kSector;
  for (std::uint64_t sector = first; sector <= last; ++sector) {
    std::string before(kSector, '\0');
    read(sector * kSector, before);
    unsynced[sector].push_back(std::move(before));
    dropped.erase(sector);
  }
  set(offset, bytes);
}

// Only these bytes; other unsynced bytes of the file stay unsynced.
void SimulatedDisk::Inode::write_durably(std::uint64_t offset, std::string_view bytes) {
  set(offset, bytes);
  const std::uint64_t first = offset / kSector, end = (offset + bytes.size()) / kSector;
  unsynced.erase(unsynced.lower_bound(first), unsynced.lower_bound(end));
  dropped.erase(dropped.lower_bound(first), dropped.lower_bound(end));
  durable_size = std::max(durable_size, offset + bytes.size());
}

void SimulatedDisk::Inode::sync() {
  std::erase_if(unsynced, [this](const auto& entry) { return !dropped.contains(entry.first); });
  durable_size = size;
}

void SimulatedDisk::Inode::drop_unsynced() {
  for (const auto& [sector, versions] : unsynced) dropped.insert(sector);
}

// Each sector keeps what it holds now, or falls back to any earlier content since the last sync.
void SimulatedDisk::Inode::apply_power_cut(Random& random) {
  const std::uint64_t written_size = size;
  std::uint64_t kept_size = random.below(2) == 0 ? written_size : durable_size;
  for (const auto& [sector, versions] : unsynced) {
    const std::uint64_t choice = random.below(versions.size() + 1);
    if (choice < versions.size()) {
      set(sector * kSector, versions[choice]);
    } else {
      kept_size = std::max(kept_size, std::min(written_size, (sector + 1) * kSector));
    }
  }
  size = kept_size;
  // Bytes past the end are gone, and read as zeros should the file grow again.
  const std::string zeros(kSector, '\0');
  for (const auto& [sector, versions] : unsynced) {
    if (sector * kSector >= size) {
      set(sector * kSector, zeros);
      size = kept_size;
    }
  }
  dropped.clear();
  sync();
}

// --- Open files and locks ------------------------------------------------------------------------

class SimulatedDisk::OpenFile final : public File {
 public:
  enum class Kind { kRead, kBuffered, kDurable };
  OpenFile(SimulatedDisk& disk, InodePtr inode, std::string path, Kind kind)
      : disk_(disk),
        inode_(std::move(inode)),
        path_(std::move(path)),
        kind_(kind),
        process_number_(disk.process_number_) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) override {
    if (auto error = disk_.unusable(process_number_)) return *error;
    if (offset >= inode_->size) return std::size_t{0};
    const std::size_t count = std::min<std::uint64_t>(into.size(), inode_->size - offset);
    inode_->read(offset, into.first(count));
    return count;
  }

  Result<void> write(std::uint64_t offset, std::string_view bytes) override {
    PAWL_ASSERT(kind_ != Kind::kRead);
    const bool durable = kind_ == Kind::kDurable;
    PAWL_ASSERT(!durable || (offset % kBlock == 0 && bytes.size() % kBlock == 0));
    PAWL_ASSERT(!durable || reinterpret_cast<std::uintptr_t>(bytes.data()) % kBlock == 0);
    if (auto error = disk_.unusable(process_number_)) return *error;
    const std::uint64_t end = offset + bytes.size();
    const std::uint64_t growth = end > inode_->size ? end - inode_->size : 0;
    if (disk_.capacity_ && disk_.used() + growth > *disk_.capacity_) {
      return Error{Code::kUnavailable, path_ + ": write: No space left on device"};
    }
    const Outcome outcome = disk_.begin_operation();
    if (durable && outcome == Outcome::kSuccess && !PAWL_MUTANT(sync_skipped)) {
      inode_->write_durably(offset, bytes);
      return {};
    }
    inode_->write(offset, bytes);
    if (outcome == Outcome::kFail && disk_.fails_in_cache_) inode_->drop_unsynced();
    if (outcome != Outcome::kSuccess) return disk_.error_of(outcome);
    return {};
  }

  Result<void> sync() override {
    if (auto error = disk_.unusable(process_number_)) return *error;
    if (const Outcome outcome = disk_.begin_operation(); outcome != Outcome::kSuccess) {
      if (outcome == Outcome::kFail && disk_.fails_in_cache_) inode_->drop_unsynced();
      return disk_.error_of(outcome);
    }
    inode_->sync();
    return {};
  }

  Result<std::uint64_t> size() override {
    if (auto error = disk_.unusable(process_number_)) return *error;
    return inode_->size;
  }

 private:
  SimulatedDisk& disk_;
  const InodePtr inode_;
  const std::string path_;
  const Kind kind_;
  const std::uint64_t process_number_;
};

class SimulatedDisk::Lock final : public DirectoryLock {
 public:
  Lock(SimulatedDisk& disk, std::string directory)
      : disk_(disk), directory_(std::move(directory)), process_number_(disk.process_number_) {}
  ~Lock() override {
    if (process_number_ == disk_.process_number_) disk_.locked_.erase(directory_);
  }

 private:
  SimulatedDisk& disk_;
  const std::string directory_;
  const std::uint64_t process_number_;
};

// --- The disk ------------------------------------------------------------------------------------

SimulatedDisk::SimulatedDisk() = default;
SimulatedDisk::~SimulatedDisk() = default;

SimulatedDisk::SimulatedDisk(const SimulatedDisk& other)
    : Files(),
      unsynced_names_(other.unsynced_names_),
      operations_(other.operations_),
      capacity_(other.capacity_),
      free_files_(other.free_files_),
      descriptors_left_(other.descriptors_left_),
      power_(other.power_),
      process_(other.process_) {
  std::map<InodePtr, InodePtr> copies;
  const auto copy = [&copies](const InodePtr& inode) {
    InodePtr& made = copies[inode];
    if (inode && !made) made = std::make_shared<Inode>(*inode);
    return made;
  };
  tree_.directories = other.tree_.directories;
  durable_tree_.directories = other.durable_tree_.directories;
  for (const auto& [name, inode] : other.tree_.files) tree_.files[name] = copy(inode);
  for (const auto& [name, inode] : other.durable_tree_.files)
    durable_tree_.files[name] = copy(inode);
  for (NameChange& change : unsynced_names_) change.inode = copy(change.inode);
}

SimulatedDisk::Outcome SimulatedDisk::begin_operation() {
  ++operations_;
  if (operations_ == cut_at_) {
    power_ = false;
    return Outcome::kPowerCut;
  }
  if (operations_ == kill_at_) {
    process_ = false;
    return Outcome::kKilled;
  }
  return operations_ == fail_at_.first ? Outcome::kFail : Outcome::kSuccess;
}

Error SimulatedDisk::error_of(Outcome outcome) const {
  switch (outcome) {
    case Outcome::kFail:
      return fail_at_.second;
    case Outcome::kKilled:
      return process_is_killed();
    default:
      return power_is_cut();
  }
}

std::optional<Error> SimulatedDisk::unusable(std::uint64_t process_number) const {
  if (!power_) return power_is_cut();
  if (!process_ || process_number != process_number_) return process_is_killed();
  return {};
}

std::optional<Error> SimulatedDisk::cannot_open(const std::string& path) const {
  if (auto error = unusable(process_number_)) return error;
  if (!descriptors_left_) return Error{Code::kUnavailable, path + ": open: Too many open files"};
  return {};
}

std::uint64_t SimulatedDisk::used() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, inode] : tree_.files) bytes += inode->size;
  return bytes;
}

SimulatedDisk::InodePtr SimulatedDisk::find(const std::string& path) const {
  const auto found = tree_.files.find(path);
  return found == tree_.files.end() ? nullptr : found->second;
}

void SimulatedDisk::Tree::apply(const NameChange& change) {
  if (!change.directory) {
    if (!change.removed.empty()) files.erase(change.removed);
    if (!change.added.empty()) files[change.added] = change.inode;
    return;
  }
  directories.erase(change.removed);
  if (!change.added.empty()) directories.insert(change.added);
  const std::string inside = change.removed + "/";
  for (auto at = files.lower_bound(inside); at != files.end() && at->first.starts_with(inside);) {
    if (!change.added.empty())
      files[change.added + "/" + at->first.substr(inside.size())] = at->second;
    at = files.erase(at);
  }
}

void SimulatedDisk::change_name(NameChange change) {
  tree_.apply(change);
  unsynced_names_.push_back(std::move(change));
}

Result<bool> SimulatedDisk::exists(const std::string& path) {
  if (auto error = unusable(process_number_)) return *error;
  return find(path) != nullptr || tree_.directories.contains(path);
}

Result<void> SimulatedDisk::make_directory(const std::string& directory) {
  if (auto error = unusable(process_number_)) return *error;
  tree_.directories.insert(directory);
  durable_tree_.directories.insert(directory);
  return {};
}

Result<std::vector<std::string>> SimulatedDisk::list(const std::string& directory) {
  if (auto error = unusable(process_number_)) return *error;
  std::vector<std::string> names;
  for (const auto& [path, inode] : tree_.files) {
    if (parent_of(path) == directory) names.push_back(path.substr(path.rfind('/') + 1));
  }
  return names;
}

Result<std::unique_ptr<File>> SimulatedDisk::create(const std::string& path) {
  if (auto error = cannot_open(path)) return *error;
  if (free_files_ && *free_files_ == 0 && !find(path))
    return Error{Code::kUnavailable, path + ": create: No space left on device"};
  const Outcome outcome = begin_operation();
  auto inode = std::make_shared<Inode>();
  change_name(NameChange{{}, path, inode, false});
  if (outcome != Outcome::kSuccess) return error_of(outcome);
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(*this, inode, path, OpenFile::Kind::kBuffered));
}

Result<std::unique_ptr<File>> SimulatedDisk::open_read(const std::string& path) {
  if (auto error = cannot_open(path)) return *error;
  const InodePtr inode = find(path);
  if (!inode) return no_such_file(path);
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(*this, inode, path, OpenFile::Kind::kRead));
}

Result<std::unique_ptr<File>> SimulatedDisk::open_durable(const std::string& path) {
  if (auto error = cannot_open(path)) return *error;
  const InodePtr inode = find(path);
  if (!inode) return no_such_file(path);
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(*this, inode, path, OpenFile::Kind::kDurable));
}

Result<std::unique_ptr<File>> SimulatedDisk::open_buffered(const std::string& path) {
  if (auto error = cannot_open(path)) return *error;
  const InodePtr inode = find(path);
  if (!inode) return no_such_file(path);
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(*this, inode, path, OpenFile::Kind::kBuffered));
}

Result<void> SimulatedDisk::rename(const std::string& from, const std::string& to) {
  if (auto error = unusable(process_number_)) return *error;
  const InodePtr inode = find(from);
  if (!inode) return no_such_file(from);
  const Outcome outcome = begin_operation();
  change_name(NameChange{from, to, inode, false});
  if (outcome != Outcome::kSuccess) return error_of(outcome);
  return {};
}

Result<void> SimulatedDisk::remove(const std::string& path) {
  if (auto error = unusable(process_number_)) return *error;
  if (!find(path)) return {};
  const Outcome outcome = begin_operation();
  change_name(NameChange{path, {}, nullptr, false});
  if (outcome != Outcome::kSuccess) return error_of(outcome);
  return {};
}

Result<void> SimulatedDisk::rename_directory(const std::string& from, const std::string& to) {
  if (auto error = unusable(process_number_)) return *error;
  if (!tree_.directories.contains(from)) return no_such_file(from);
  if (tree_.directories.contains(to) || find(to))
    return Error{Code::kInvalid, to + ": exists already"};
  const Outcome outcome = begin_operation();
  change_name(NameChange{from, to, nullptr, true});
  if (outcome != Outcome::kSuccess) return error_of(outcome);
  return {};
}

Result<void> SimulatedDisk::remove_directory(const std::string& directory) {
  if (auto error = unusable(process_number_)) return *error;
  if (!tree_.directories.contains(directory)) return {};
  const auto within = list(directory);
  if (!within->empty()) return Error{Code::kUnknown, directory + ": rmdir: Directory not empty"};
  const Outcome outcome = begin_operation();
  change_name(NameChange{directory, {}, nullptr, true});
  if (outcome != Outcome::kSuccess) return error_of(outcome);
  return {};
}

Result<void> SimulatedDisk::sync_directory(const std::string& directory) {
  if (auto error = unusable(process_number_)) return *error;
  if (const Outcome outcome = begin_operation(); outcome != Outcome::kSuccess)
    return error_of(outcome);
  std::vector<NameChange> others;
  for (NameChange& change : unsynced_names_) {
    const std::string& path = change.added.empty() ? change.removed : change.added;
    if (parent_of(path) == directory) {
      durable_tree_.apply(change);
    } else {
      others.push_back(std::move(change));
    }
  }
  unsynced_names_ = std::move(others);
  return {};
}

Result<std::uint64_t> SimulatedDisk::free_space(const std::string& /*directory*/) {
  if (auto error = unusable(process_number_)) return *error;
  if (!capacity_) return std::uint64_t{1} << 40;
  return *capacity_ - std::min(*capacity_, used());
}

Result<std::uint64_t> SimulatedDisk::free_files(const std::string& /*directory*/) {
  if (auto error = unusable(process_number_)) return *error;
  return free_files_.value_or(UINT64_MAX);
}

Result<bool> SimulatedDisk::is_within(const std::string& directory, const std::string& ancestor) {
  if (auto error = unusable(process_number_)) return *error;
  return directory == ancestor || directory.starts_with(ancestor + "/");
}

Result<bool> SimulatedDisk::share_space(const std::string& /*directory*/,
                                        const std::string& /*other*/) {
  if (auto error = unusable(process_number_)) return *error;
  return true;
}

Result<std::unique_ptr<DirectoryLock>> SimulatedDisk::lock_directory(const std::string& directory) {
  if (auto error = unusable(process_number_)) return *error;
  if (!locked_.insert(directory).second) {
    return Error{Code::kBusy, directory + ": in use by the process with pid 1"};
  }
  return std::unique_ptr<DirectoryLock>(std::make_unique<Lock>(*this, directory));
}

void SimulatedDisk::cut_power() {
  power_ = false;
}

void SimulatedDisk::restart(Random& random) {
  Tree tree = durable_tree_;
  for (const NameChange& change : unsynced_names_) {
    if (random.below(2) == 0) tree.apply(change);
  }
  // In the order of names, not of addresses: the same seed must give the same disk.
  std::set<InodePtr> decided;
  for (const auto& [name, inode] : tree.files) {
    if (decided.insert(inode).second) inode->apply_power_cut(random);
  }
  tree_ = durable_tree_ = std::move(tree);
  unsynced_names_.clear();
  locked_.clear();
  ++process_number_;
  cut_at_ = kill_at_ = 0;
  fail_at_ = {};
  fails_in_cache_ = false;
  power_ = process_ = true;
}

void SimulatedDisk::kill_process() {
  locked_.clear();
  ++process_number_;
  cut_at_ = kill_at_ = 0;
  fail_at_ = {};
  fails_in_cache_ = false;
  process_ = true;
}

void SimulatedDisk::flip(const std::string& path, std::uint64_t offset, unsigned bit) {
  const InodePtr inode = find(path);
  PAWL_ASSERT(inode && offset < inode->size && bit < 8);
  char byte = 0;
  inode->read(offset, {&byte, 1});
  byte = static_cast<char>(byte ^ static_cast<char>(1U << bit));
  inode->set(offset, {&byte, 1});
}

void SimulatedDisk::truncate(const std::string& path, std::uint64_t bytes) {
  const std::string kept = content(path).substr(0, bytes);
  const InodePtr inode = find(path);
  *inode = Inode{};
  inode->set(0, kept);
  inode->sync();
}

std::string SimulatedDisk::content(const std::string& path) {
  const InodePtr inode = find(path);
  PAWL_ASSERT(inode);
  std::string bytes(inode->size, '\0');
  inode->read(0, bytes);
  return bytes;
}

void SimulatedDisk::put_file(const std::string& path, std::string_view bytes) {
  auto inode = std::make_shared<Inode>();
  inode->set(0, bytes);
  inode->sync();
  tree_.files[path] = durable_tree_.files[path] = inode;
}

}  // namespace pawl::store
