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

// What stands in the directory, by name.
struct Contents {
  std::set<std::uint64_t> checkpoints;
  std::set<std::uint64_t> segments;
  std::vector<std::string> unfinished;
};

Result<Contents> take_stock(Files& files, const std::string& directory) {
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

// Reads the segments from `first` on: the begun ones into the overlay, the others as spares.
class SegmentSweep {
 public:
  SegmentSweep(Files& files, const std::string& directory, const Identity& identity,
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
                    "damaged: " + segment_name(segment) + " does not follow (" +
                        follows.error().detail + ")");
    }
    auto end =
        reader_.replay(path_of(segment), header, recovered_.chain, [this](const Record& record) {
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

// The high-water file is older knowledge than the records, or exact after a clean stop: it must
// never know more.
Result<void> check_high_water(const std::string& directory, const Recovered& recovered,
                              std::uint64_t covered) {
  const std::uint64_t sequence = recovered.chain.next_sequence - 1;
  const HighWater& known = recovered.high_water;
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

Result<std::uint64_t> visit_checkpoint(CheckpointReader& reader, const Overlay& overlay,
                                       Visitor& visitor) {
  for (;;) {
    const auto piece = reader.next_piece();
    if (!piece) return piece.error();
    if (piece->empty()) return std::uint64_t{0};
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
  auto contents = take_stock(files, directory);
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

  SegmentSweep sweep(files, directory, identity, recovered);
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

// A kill (no power cut) may leave bytes that can be read but are not yet on the disk: acting on
// them before they are would acknowledge what the next power cut takes away.
Result<void> settle_active(Files& files, const std::string& directory,
                           const ActiveSegment& active) {
  auto file = files.open_durable(path_in(directory, segment_name(active.header.segment)));
  if (!file) return file.error();
  if (auto synced = PAWL_MUTANT(recovered_not_synced) ? Result<void>{} : (*file)->sync(); !synced)
    return synced;
  AlignedBuffer buffer;
  for (const Range& range : active.end.leftovers) {
    char* zeros = buffer.reserve(range.bytes);
    std::fill(zeros, zeros + range.bytes, '\0');
    if (auto wiped = (*file)->write(range.offset, {zeros, range.bytes}); !wiped) return wiped;
  }
  return files.sync_directory(directory);
}

Result<void> sort_obsolete(Files& files, const std::string& directory, const Identity& identity,
                           const Recovered& recovered, Inventory& inventory) {
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
  if (auto settled = settle_active(files, directory, recovered.active); !settled)
    return settled.error();
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
    inventory.spares.push_back(Spare{segment, bytes, std::move(*file)});
    inventory.next_segment = segment + 1;
  }
  if (auto sorted = sort_obsolete(files, directory, identity, recovered, inventory); !sorted)
    return sorted.error();
  return inventory;
}

namespace {

// Leaves of a former attempt whatever is Pawl's, but for the marker and the lock.
Result<void> clear_away(Files& files, const std::string& directory, std::string_view marker) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!is_ours(name) || name == marker || name == kLockFile) continue;
    if (auto removed = files.remove(path_in(directory, name)); !removed) return removed;
  }
  return {};
}

// The records a store begins with are its first checkpoint. The chain begins there with the
// incarnation, which no other store has.
Result<ChainPosition> write_beginning(Files& files, const std::string& directory,
                                      const Identity& identity, const Beginning& beginning) {
  ChainPosition chain{beginning.sequence + 1, 0};
  if (beginning.records.empty() && beginning.sequence == 0) return chain;
  CheckpointHeader header;
  header.chain_crc = chain.crc = static_cast<std::uint32_t>(identity.incarnation.value);
  header.incarnation = identity.incarnation.value;
  header.sequence = beginning.sequence;
  header.next_segment = kFirstSegment;
  header.covered = beginning.high_water;
  const std::string path = path_in(directory, checkpoint_name(beginning.sequence));
  auto writer = CheckpointWriter::create(files, path + ".tmp", header);
  if (!writer) return writer.error();
  for (const auto& [key, value] : beginning.records) writer->add(key, value);
  if (auto finished = writer->finish(); !finished) return finished.error();
  if (auto named = files.rename(path + ".tmp", path); !named) return named.error();
  if (auto synced = files.sync_directory(directory); !synced) return synced.error();
  return chain;
}

Result<void> write_first_segment(Files& files, const std::string& directory,
                                 const Identity& identity, ChainPosition chain) {
  if (auto written = prewrite_segment(files, directory, kFirstSegment, identity.segment_bytes);
      !written)
    return written;
  auto file = files.open_durable(path_in(directory, segment_name(kFirstSegment)));
  if (!file) return file.error();
  SegmentHeader header;
  header.previous_crc = chain.crc;
  header.incarnation = identity.incarnation.value;
  header.segment = kFirstSegment;
  header.first_sequence = chain.next_sequence;
  header.bytes = identity.segment_bytes;
  AlignedBuffer buffer;
  const auto begun = SegmentWriter::begin(std::move(*file), header, buffer, chain);
  if (!begun) return begun.error();
  return {};
}

}  // namespace

Result<Identity> create_store(Files& files, const std::string& directory, const Identity& identity,
                              const Beginning& beginning) {
  // From here until the rename below, the directory says of itself that it is not a store yet.
  if (auto marked = write_identity(files, directory, beginning.marker, identity); !marked)
    return marked.error();
  if (auto cleared = clear_away(files, directory, beginning.marker); !cleared)
    return cleared.error();
  const auto chain = write_beginning(files, directory, identity, beginning);
  if (!chain) return chain.error();
  if (auto begun = write_first_segment(files, directory, identity, *chain); !begun)
    return begun.error();
  const HighWater high_water{beginning.high_water, beginning.sequence, true};
  if (auto written = write_high_water(files, directory, high_water); !written)
    return written.error();
  const std::string marker = path_in(directory, beginning.marker);
  if (auto named = files.rename(marker, path_in(directory, kIdentityFile)); !named)
    return named.error();
  if (auto synced = files.sync_directory(directory); !synced) return synced.error();
  return identity;
}

}  // namespace pawl::store::journal
