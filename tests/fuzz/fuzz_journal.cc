// A store whose files were damaged, anyhow: recovery refuses it and names the file, or loads
// exactly what some prefix of the acknowledged batches had left behind, and nothing good stands
// behind that prefix; it never crashes, and never takes anything in that was not written. What it
// accepts it can go on from. Dumping it never fails.
//
// The input is a list of edits to one of two small stores: bytes overwritten, flipped, moved,
// zeroed, files cut or replaced.
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "store/journal/dump.h"
#include "store/journal/format.h"
#include "store/journal/journal.h"
#include "store/testlib/simulated_disk.h"
#include "tests/fuzz/script.h"

namespace pawl::fuzz {
namespace {

namespace journal = store::journal;
using State = std::map<std::string, std::string>;

const std::string kDirectory = "data";

class Collect final : public store::Visitor {
 public:
  Result<void> record(std::string_view key, std::string_view value) override {
    PAWL_ASSERT(state.emplace(key, value).second);
    return {};
  }
  State state;
};

class Answers final : public store::Sink {
 public:
  void durable(BatchId) override { ++acknowledged; }
  void failed(BatchId, const Error&) override {}
  std::uint64_t acknowledged = 0;
};

journal::Settings small() {
  journal::Settings settings;
  settings.segment_bytes = journal::kSegmentBytesMin;
  settings.spare_segments = 1;
  settings.checkpoint_after = 2;
  settings.space_reserve = 0;
  return settings;
}

struct Opened {
  std::unique_ptr<journal::Journal> journal;
  store::Loaded loaded;
  State state;
};

Result<Opened> open(store::SimulatedDisk& disk) {
  SeededRandom random(7);
  auto opened = journal::Journal::open(disk, kDirectory, small(), random);
  if (!opened) return opened.error();
  Collect collect;
  const auto loaded = (*opened)->load(collect);
  if (!loaded) return loaded.error();
  return Opened{std::move(*opened), *loaded, std::move(collect.state)};
}

// Where a batch stands.
struct Place {
  std::string path;
  std::uint64_t offset, bytes, sequence;
};

// A store, what it held after each batch, and the files that it consists of.
struct Original {
  Original(int batches, std::size_t value_bytes, bool closed) {
    auto opened = open(disk);
    PAWL_ASSERT(opened.has_value());
    states.push_back({});
    Answers answers;
    for (int i = 1; i <= batches; ++i) {
      Batch batch;
      const std::string key = "key" + std::to_string(i % 5);
      State next = states.back();
      if (i % 7 == 0) {
        batch.erase(key);
        next.erase(key);
      } else {
        next[key] = std::string(value_bytes, static_cast<char>('a' + i % 26)) + std::to_string(i);
        batch.put(key, next[key]);
      }
      batch.cover(static_cast<std::uint64_t>(i) * 10);
      opened->journal->submit(batch, BatchId{static_cast<std::uint64_t>(i)}, answers);
      states.push_back(std::move(next));
      while (opened->journal->background_step()) {
      }
    }
    PAWL_ASSERT(answers.acknowledged == static_cast<std::uint64_t>(batches));
    if (closed) PAWL_ASSERT(opened->journal->close().has_value());
    opened->journal.reset();
    disk.kill_process();
    const auto names = disk.list(kDirectory);
    PAWL_ASSERT(names.has_value());
    for (const std::string& name : *names) {
      if (name == store::kLockFile) continue;
      files.push_back(journal::path_in(kDirectory, name));
      if (const auto segment = journal::segment_of(name)) find_records(files.back(), *segment);
    }
    PAWL_ASSERT(!records.empty() && records.back().sequence == static_cast<std::uint64_t>(batches));
  }

  void find_records(const std::string& path, std::uint64_t segment) {
    const std::string& bytes = segments[path] = disk.content(path);
    for (std::uint64_t offset = store::kBlock; offset < bytes.size();) {
      const auto record = journal::decode_record(std::string_view(bytes).substr(offset), segment);
      if (!record) return;
      records.push_back({path, offset, record->stored_bytes, record->header.sequence});
      offset += record->stored_bytes;
    }
  }

  store::SimulatedDisk disk;
  std::vector<State> states;
  std::vector<std::string> files;
  std::map<std::string, std::string> segments;  // Their bytes, by path.
  std::vector<Place> records;
};

const std::array<Original, 3>& originals() {
  // One segment; several with a checkpoint; the same after a clean stop.
  static const std::array<Original, 3> made{Original(9, 20, false), Original(40, 6000, false),
                                            Original(40, 6000, true)};
  return made;
}

// One edit of one file. Most of a file is nothing, so offsets are counted in blocks and from their
// beginnings.
void edit(Script& script, const Original& original, store::SimulatedDisk& disk) {
  const std::string& path = original.files[script.below(original.files.size())];
  std::string bytes = disk.content(path);
  const std::size_t blocks = bytes.size() / store::kBlock + 1;
  const std::size_t offset =
      std::min(script.below(blocks) * store::kBlock + script.word() % store::kBlock, bytes.size());
  switch (script.below(7)) {
    case 0: {
      const std::string_view patch = script.bytes(1 + script.below(64));
      bytes.replace(offset, std::min(patch.size(), bytes.size() - offset), patch);
      break;
    }
    case 1:
      if (offset < bytes.size())
        bytes[offset] = static_cast<char>(bytes[offset] ^ (1 << script.below(8)));
      break;
    case 2:
      bytes.resize(offset);
      break;
    case 3: {  // A block, or several, of this file elsewhere in it.
      const std::size_t from = script.below(blocks) * store::kBlock;
      const std::size_t to = script.below(blocks) * store::kBlock;
      if (from >= bytes.size() || to >= bytes.size()) break;
      const std::string moved = bytes.substr(from, store::kBlock * (1 + script.below(4)));
      bytes.replace(to, std::min(moved.size(), bytes.size() - to), moved, 0,
                    std::min(moved.size(), bytes.size() - to));
      break;
    }
    case 4: {
      const std::size_t count =
          std::min(store::kBlock * (1 + script.below(16)), bytes.size() - offset);
      bytes.replace(offset, count, std::string(count, '\0'));
      break;
    }
    case 5:  // Another file's content.
      bytes = disk.content(original.files[script.below(original.files.size())]);
      break;
    default:
      bytes = script.bytes(script.word());
  }
  disk.put_file(path, bytes);
}

void dump(store::SimulatedDisk& disk) {
  const auto words = [](bool, std::string_view key, std::string_view) { return std::string(key); };
  std::size_t lines = 0;
  PAWL_ASSERT(
      journal::dump(disk, kDirectory, words, [&](std::string_view) { ++lines; }).has_value());
  PAWL_ASSERT(lines > 0);
}

// The batches that are still there as they were written.
std::set<std::uint64_t> good_batches(const Original& original, store::SimulatedDisk& disk) {
  std::set<std::uint64_t> good;
  for (const auto& [path, before] : original.segments) {
    const std::string now = disk.content(path);
    const auto intact = [&, &was = before](std::uint64_t offset, std::uint64_t bytes) {
      return now.size() >= was.size() && now.compare(offset, bytes, was, offset, bytes) == 0;
    };
    for (const Place& place : original.records) {
      if (place.path == path && intact(place.offset, place.bytes)) good.insert(place.sequence);
    }
  }
  return good;
}

// It was accepted: it must be as it was at some batch, stay so, and be able to go on.
void live(store::SimulatedDisk& disk, Opened opened, const Original& original,
          const std::set<std::uint64_t>& good) {
  const std::uint64_t sequence = opened.loaded.sequence;
  PAWL_ASSERT(good.upper_bound(sequence) == good.end());
  PAWL_ASSERT(sequence < original.states.size());
  PAWL_ASSERT(opened.state == original.states[sequence]);
  // Even with a lost tail no number is used twice.
  PAWL_ASSERT(opened.loaded.high_water >= 10 * (original.states.size() - 1));
  Answers answers;
  Batch batch;
  batch.put("more", "of it");
  batch.cover(opened.loaded.high_water + 1);
  opened.journal->submit(batch, BatchId{1}, answers);
  PAWL_ASSERT(answers.acknowledged == 1);
  opened.journal.reset();
  SeededRandom random(11);
  disk.restart(random);
  const auto again = open(disk);
  PAWL_ASSERT(again.has_value());
  State due = original.states[sequence];
  due["more"] = "of it";
  PAWL_ASSERT(again->loaded.sequence == sequence + 1 && again->state == due);
}

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl;
  fuzz::Script script({reinterpret_cast<const char*>(data), size});
  const fuzz::Original& original = script.one_of(fuzz::originals());
  store::SimulatedDisk disk(original.disk);
  do {
    fuzz::edit(script, original, disk);
  } while (!script.done());
  fuzz::dump(disk);
  const auto good = fuzz::good_batches(original, disk);
  auto opened = fuzz::open(disk);
  if (opened) {
    fuzz::live(disk, std::move(*opened), original, good);
  } else {
    PAWL_ASSERT(opened.error().detail.find(fuzz::kDirectory) != std::string::npos);
  }
  return 0;
}
