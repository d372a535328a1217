#include "store/journal/recovery.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/mutants.h"
#include "store/journal/checkpoint.h"
#include "store/journal/format.h"

namespace pawl::store::journal {
namespace {

// The files in the directory, by name.
struct Contents {
  std::set<std::uint64_t> checkpoints;
  std::set<std::uint64_t> segments;
  std::vector<std::string> unfinished;
};

Result<Contents> list_contents(Files& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  Contents contents;
  for (const std::string& name : *names) {
    if (const auto sequence = checkpoint_of(name)) contents.checkpoints.insert(*sequence);
    if (const auto segment = segment_of(name)) contents.segments.insert(*segment);
    if (is_unfinished(name)) contents.unfinished.push_back(name);
  }
  return contents;
}

// Reads the segments from `first` on: begun ones into the overlay, the others as spares.
class SegmentScan {
 public:
  SegmentScan(Files& files, const std::string& directory, const Identity& identity,
              Recovered& recovered)
      : files_(files),
        directory_(directory),
        identity_(identity),
        recovered_(recovered),
        reader_(files) {}

  Result<void> run(std::uint64_t first, const std::set<std::uint64_t>& present) {
    const std::uint64_t last = present.empty() ? first : std::max(first, *present.rbegin());
    for (std::uint64_t segment = first; segment <= last; ++segment) {
      if (!present.contains(segment)) return Error{Code::kInvalid, path_of(segment) + ": missing"};
      if (auto read = read_one(segment); !read) return read;
    }
    if (!begun_) return damage(path_of(first), 0, "the segment's header is damaged");
    return {};
  }

  [[nodiscard]] std::uint64_t covered() const { return covered_; }

 private:
  Result<void> read_one(std::uint64_t segment) {
    const auto facts = probe_segment(files_, path_of(segment), segment, identity_.segment_bytes);
    if (!facts) return facts.error();
    if (!facts->header) {
      recovered_.spares.emplace_back(segment, facts->bytes);
      return {};
    }
    if (!recovered_.spares.empty()) {
      return damage(
          path_of(recovered_.spares.front().first), 0,
          "the segment's header is damaged: " + segment_name(segment) + " is begun after it");
    }
    return read_begun(segment, *facts->header);
  }

  Result<void> read_begun(std::uint64_t segment, const SegmentHeader& header) {
    if (begun_) recovered_.closed.push_back(ClosedSegment{segment - 1, recovered_.chain});
    if (auto follows =
            check_header(path_of(segment), header, identity_.incarnation, recovered_.chain);
        !follows) {
      if (!begun_) return follows;
      return damage(path_of(segment - 1), recovered_.active.end.offset,
                    "damaged: " + segment_name(segment) + " does not continue it (" +
                        follows.error().detail + ")");
    }
    auto end = reader_.replay(path_of(segment), header, recovered_.chain,
                              [this](const BatchRecord& record) {
                                covered_ = std::max(covered_, record.header.covered);
                                return recovered_.overlay.apply_batch(record.batch);
                              });
    if (!end) return end.error();
    recovered_.active = ActiveSegment{header, std::move(*end)};
    begun_ = true;
    return {};
  }

  [[nodiscard]] std::string path_of(std::uint64_t segment) const {
    return path_in(directory_, segment_name(segment));
  }

  Files& files_;
  const std::string& directory_;
  const Identity& identity_;
  Recovered& recovered_;
  SegmentReader reader_;
  std::uint64_t covered_ = 0;
  bool begun_ = false;
};

// The high-water file is older than the records, or exact after a clean stop. It must never be
// ahead of them.
Result<void> check_high_water(const std::string& directory, const Recovered& recovered,
                              std::uint64_t covered) {
  const std::uint64_t sequence = recovered.chain.next_sequence - 1;
  const HighWater& known = recovered.high_water.value;
  if (sequence < known.sequence) {
    return damage(path_in(directory, segment_name(recovered.active.header.segment)),
                  recovered.active.end.offset,
                  "batches are missing: the last one here is " + std::to_string(sequence) +
                      ", but " + std::to_string(known.sequence) + " was durable");
  }
  if (known.clean && sequence != known.sequence) {
    return damage(path_in(directory, kHighWaterFile), 0, "older than the batches beside it");
  }
  if (covered > known.end) {
    return damage(
        path_in(directory, kHighWaterFile), 0,
        "says " + std::to_string(known.end) + ", but " + std::to_string(covered) + " is in use");
  }
  return {};
}

Result<void> visit_checkpoint(CheckpointReader& reader, const Overlay& overlay, Visitor& visitor) {
  for (;;) {
    const auto piece = reader.next_piece();
    if (!piece) return piece.error();
    if (piece->empty()) return {};
    for (std::string_view rest = *piece; !rest.empty();) {
      const auto entry = take_operation(rest);
      if (!entry) return entry.error();
      reader.count(1);
      if (overlay.find(entry->key) != nullptr) continue;
      if (auto seen = visitor.record(entry->key, entry->value); !seen) return seen.error();
    }
  }
}

}  // namespace

Result<Recovered> recover(Files& files, const std::string& directory, const Identity& identity) {
  Recovered recovered;
  const auto high_water = read_high_water(files, directory);
  if (!high_water) return high_water.error();
  recovered.high_water = *high_water;
  auto contents = list_contents(files, directory);
  if (!contents) return contents.error();

  std::uint64_t first = kFirstSegment;
  std::uint64_t covered = 0;
  if (!contents->checkpoints.empty()) {
    recovered.checkpoint = *contents->checkpoints.rbegin();
    const std::string path = path_in(directory, checkpoint_name(*recovered.checkpoint));
    const auto reader = CheckpointReader::open(files, path);
    if (!reader) return reader.error();
    const CheckpointHeader& header = reader->header();
    if (header.incarnation != identity.incarnation.value ||
        header.sequence != *recovered.checkpoint) {
      return damage(path, 0, "belongs to another store or sequence");
    }
    recovered.chain = ChainPosition{header.sequence + 1, header.chain_crc};
    first = header.next_segment;
    covered = header.covered;
  }

  SegmentScan sweep(files, directory, identity, recovered);
  if (auto swept = sweep.run(first, contents->segments); !swept) return swept.error();
  if (auto fits = check_high_water(directory, recovered, std::max(covered, sweep.covered())); !fits)
    return fits.error();

  for (const std::uint64_t segment : contents->segments) {
    if (segment < first) recovered.obsolete.push_back(segment);
  }
  recovered.leftovers = std::move(contents->unfinished);
  for (const std::uint64_t sequence : contents->checkpoints) {
    if (sequence != *recovered.checkpoint) recovered.leftovers.push_back(checkpoint_name(sequence));
  }
  return recovered;
}

Result<void> visit(Files& files, const std::string& directory, const Recovered& recovered,
                   Visitor& visitor) {
  const auto changes = recovered.overlay.changes();
  if (recovered.checkpoint) {
    auto reader =
        CheckpointReader::open(files, path_in(directory, checkpoint_name(*recovered.checkpoint)));
    if (!reader) return reader.error();
    visitor.expect(reader->header().records + changes.size());
    if (auto visited = visit_checkpoint(*reader, recovered.overlay, visitor); !visited)
      return visited.error();
  } else {
    visitor.expect(changes.size());
  }
  for (const Operation& change : changes) {
    if (!change.put) continue;
    if (auto seen = visitor.record(change.key, change.value); !seen) return seen;
  }
  return {};
}

namespace {

// Writes bytes again that were read, so that they are on the disk. A kill may leave bytes that are
// in the page cache only. So does a sync that failed, and after that another sync succeeds without
// writing them. Only the last record can be in doubt: each one before it was synced before the next
// was begun.
Result<void> write_last_record_again(File& file, const ByteRange& last, AlignedBuffer& buffer) {
  char* bytes = buffer.reserve(last.bytes);
  const auto got = file.read(last.offset, {bytes, last.bytes});
  if (!got) return got.error();
  PAWL_ASSERT(*got == last.bytes);
  return file.write(last.offset, {bytes, last.bytes});
}

// What was recovered must be on the disk before anything is based on it, or the next power cut
// takes away what was acknowledged.
Result<void> sync_active_segment(Files& files, const std::string& directory,
                                 const ActiveSegment& active) {
  auto file = files.open_durable(path_in(directory, segment_name(active.header.segment)));
  if (!file) return file.error();
  AlignedBuffer buffer;
  if (!PAWL_MUTANT(recovered_not_synced)) {
    if (auto synced = (*file)->sync(); !synced) return synced;
    if (auto written = write_last_record_again(**file, active.end.last, buffer); !written)
      return written;
  }
  for (const ByteRange& range : active.end.leftovers) {
    PAWL_ASSERT(range.offset >= active.end.offset && range.bytes % kBlock == 0);
    char* zeros = buffer.reserve(range.bytes);
    std::fill(zeros, zeros + range.bytes, '\0');
    if (auto wiped = (*file)->write(range.offset, {zeros, range.bytes}); !wiped) return wiped;
  }
  return files.sync_directory(directory);
}

// Obsolete segments of the usual size can be recycled; others are removed.
Result<void> recycle_or_remove_obsolete(Files& files, const std::string& directory,
                                        const Identity& identity, const Recovered& recovered,
                                        Inventory& inventory) {
  for (const std::uint64_t segment : recovered.obsolete) {
    const std::string path = path_in(directory, segment_name(segment));
    auto file = files.open_read(path);
    if (!file) return file.error();
    const auto size = (*file)->size();
    if (!size) return size.error();
    if (*size == identity.segment_bytes) {
      inventory.obsolete.push_back(segment);
    } else if (auto removed = files.remove(path); !removed) {
      return removed;
    }
  }
  return {};
}

}  // namespace

Result<Inventory> repair(Files& files, const std::string& directory, const Identity& identity,
                         const Recovered& recovered) {
  if (auto synced = sync_active_segment(files, directory, recovered.active); !synced)
    return synced.error();
  for (const std::string& name : recovered.leftovers) {
    if (auto removed = files.remove(path_in(directory, name)); !removed) return removed.error();
  }
  Inventory inventory;
  inventory.checkpoint = recovered.checkpoint;
  inventory.closed = recovered.closed;
  inventory.next_segment = recovered.active.header.segment + 1;
  for (const auto& [segment, bytes] : recovered.spares) {
    auto file = files.open_durable(path_in(directory, segment_name(segment)));
    if (!file) return file.error();
    PAWL_ASSERT(segment == inventory.next_segment);  // SegmentScan refuses gaps.
    inventory.spares.push_back(Spare{segment, bytes, std::move(*file)});
    inventory.next_segment = segment + 1;
  }
  if (auto done = recycle_or_remove_obsolete(files, directory, identity, recovered, inventory);
      !done)
    return done.error();
  return inventory;
}

}  // namespace pawl::store::journal
