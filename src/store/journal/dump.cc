#include "store/journal/dump.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "store/journal/checkpoint.h"
#include "store/journal/format.h"
#include "store/journal/high_water.h"
#include "store/journal/small_files.h"
#include "store/store.h"

namespace pawl::store::journal {
namespace {

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

class Dump {
 public:
  Dump(Files& files, const std::string& directory, const FormatOperation& format,
       const std::function<void(std::string_view)>& line)
      : files_(files), directory_(directory), format_(format), line_(line) {}

  Result<void> run() {
    auto names = files_.list(directory_);
    if (!names) return names.error();
    std::set<std::uint64_t> checkpoints;
    std::set<std::uint64_t> segments;
    for (const std::string& name : *names) {
      if (const auto sequence = checkpoint_of(name)) checkpoints.insert(*sequence);
      if (const auto segment = segment_of(name)) segments.insert(*segment);
      if (is_unfinished(name) || name == kCreatingFile) line_(name + ": unfinished");
      if (!is_pawl_file(name)) line_(name + ": not Pawl's");
    }
    identity();
    high_water();
    for (const std::uint64_t sequence : checkpoints) checkpoint(sequence);
    for (const std::uint64_t id : segments) segment(id);
    return {};
  }

 private:
  void identity() {
    const auto found = read_identity(files_, directory_);
    if (!found) return line_(found.error().detail);
    line_(std::string(kIdentityFile) + ": format " + number(kFormatVersion) + ", incarnation " +
          to_hex(found->incarnation) + ", segments of " + number(found->segment_bytes) + " bytes");
  }

  void high_water() {
    const auto found = read_high_water(files_, directory_);
    if (!found) return line_(found.error().detail);
    const HighWater& value = found->value;
    line_(std::string(kHighWaterFile) + ": " + number(value.end) +
          (value.clean ? ", exact" : ", reserved") + ", at batch " + number(value.sequence) +
          (value.clean ? ", closed cleanly" : "") +
          (found->slot ? ", slot " + number(*found->slot) + ", write " + number(found->number)
                       : ", format 1"));
  }

  void operations(std::string_view batch) {
    while (!batch.empty()) {
      const auto operation = take_operation(batch);
      if (!operation) return line_("    " + operation.error().detail);
      line_(std::string("    ") + (operation->put ? "put   " : "erase ") +
            format_(operation->put, operation->key, operation->value));
    }
  }

  void checkpoint(std::uint64_t sequence) {
    auto reader = CheckpointReader::open(files_, path_in(directory_, checkpoint_name(sequence)));
    if (!reader) return line_(reader.error().detail);
    const CheckpointHeader& header = reader->header();
    line_(checkpoint_name(sequence) + ": after batch " + number(header.sequence) + ", " +
          number(header.records) + " records, " + number(header.bytes) + " bytes; segments from " +
          number(header.next_segment) + " on follow");
    for (;;) {
      const auto piece = reader->next_piece();
      if (!piece) return line_(piece.error().detail);
      if (piece->empty()) return;
      for (std::string_view rest = *piece; !rest.empty();) {
        if (!take_operation(rest)) break;
        reader->count(1);
      }
      operations(*piece);
    }
  }

  void segment(std::uint64_t id) {
    const std::string name = segment_name(id);
    const auto bytes = read_file(files_, path_in(directory_, name));
    if (!bytes) return line_(bytes.error().detail);
    if (const auto header = decode_segment_header(*bytes, id)) {
      line_(name + ": " + number(bytes->size()) + " of " + number(header->bytes) +
            " bytes, incarnation " + to_hex(Incarnation{header->incarnation}) + ", from batch " +
            number(header->first_sequence));
    } else {
      line_(name + ": " + number(bytes->size()) + " bytes, not begun (no valid header)");
    }
    records(*bytes, id);
  }

  void records(std::string_view bytes, std::uint64_t id) {
    for (std::uint64_t offset = kBlock; offset < bytes.size();) {
      const std::string_view rest = bytes.substr(offset);
      if (const auto record = decode_record(rest, id)) {
        line_("  offset " + number(offset) + ": batch " + number(record->header.sequence) + ", " +
              number(record->header.length) + " bytes, covers " + number(record->header.covered) +
              ", crc ok");
        operations(record->batch);
        offset += record->stored_bytes;
        continue;
      }
      if (looks_like_record(rest, id))
        line_("  offset " + number(offset) + ": a record with a wrong crc");
      offset += kBlock;
    }
  }

  Files& files_;
  const std::string& directory_;
  const FormatOperation& format_;
  const std::function<void(std::string_view)>& line_;
};

}  // namespace

Result<void> dump(Files& files, const std::string& directory, const FormatOperation& format,
                  const std::function<void(std::string_view)>& line) {
  return Dump(files, directory, format, line).run();
}

}  // namespace pawl::store::journal
