#include "guard/s3/record.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "guard/s3/envelope.h"

namespace pawl::guard {
namespace {

constexpr std::size_t kAuditMax = 100;

struct RecordField {
  std::string_view name;
  std::uint64_t S3Record::*value;
};
constexpr std::array kRecordFields{
    RecordField{"since", &S3Record::since},
    RecordField{"replayed", &S3Record::replayed},
    RecordField{"stale", &S3Record::stale},
    RecordField{"missing", &S3Record::missing},
    RecordField{"ahead", &S3Record::ahead},
    RecordField{"malformed", &S3Record::malformed},
    RecordField{"would_refuse", &S3Record::would_refuse},
    RecordField{"missing_before", &S3Record::missing_before},
    RecordField{"would_refuse_before", &S3Record::would_refuse_before},
    RecordField{"fence", &S3Record::fence},
    RecordField{"sequence", &S3Record::sequence},
};

}  // namespace

std::string to_bytes(const S3Record& record) {
  std::string text = "pawl-guard 1\n";
  for (const RecordField& field : kRecordFields)
    text += fmt::format("{} {}\n", field.name, record.*field.value);
  for (std::size_t i = 0; i < record.audit.size() && i < kAuditMax; ++i)
    text += fmt::format("audit {}\n", record.audit[i]);
  return text;
}

S3Record parse_record(std::string_view bytes) {
  S3Record record;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    const std::size_t space = line.find(' ');
    if (space == line.npos) continue;
    const std::string_view name = line.substr(0, space);
    const std::string_view value = line.substr(space + 1);
    if (name == "audit" && record.audit.size() < kAuditMax) record.audit.emplace_back(value);
    for (const RecordField& field : kRecordFields) {
      if (field.name == name) record.*field.value = parse_count(value).value_or(0);
    }
  }
  return record;
}

}  // namespace pawl::guard
