#include "guard/s3/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "aws/sigv4.h"
#include "base/limits.h"
#include "guard/s3/envelope.h"
#include "guard_contract/resource_name.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kOwn = ".pawl/";
constexpr std::size_t kSequenceDigits = 16;

Error bad_key(std::string detail) {
  return {Code::kInvalid, std::move(detail)};
}

}  // namespace

Result<void> check_s3_key(std::string_view key) {
  if (const auto name = parse_resource(key); !name) return name.error();
  if (key.find(':') != key.npos)
    return bad_key("a guarded object in S3 has one fence: its key is without ':'");
  if (key.empty() || key.size() > limits::kFencedKeyMax)
    return bad_key(
        fmt::format("the key of a guarded object has 1 to {} bytes", limits::kFencedKeyMax));
  if (key.starts_with(kOwn)) return bad_key("keys that begin with .pawl/ are the guard's own");
  if (key.find('*') != key.npos)
    return bad_key("a guard in S3 is for one object: a key without '*'");
  return {};
}

Result<std::string> to_s3_key(const Protection& wanted) {
  if (!wanted.key.empty() || !wanted.by.empty())
    return bad_key("--key and --by are for tables: a guard in S3 is for one object");
  if (!wanted.guard.empty() && wanted.guard != wanted.table)
    return bad_key("in S3 a guard is named like its object: leave --guard out");
  if (const auto good = check_s3_key(wanted.table); !good) return good.error();
  return wanted.table;
}

std::string record_key(std::string_view key) {
  return kS3Guards + aws::encode(key);
}

std::optional<std::string> key_of_record(std::string_view record) {
  const std::string_view prefix = kS3Guards;
  if (!record.starts_with(prefix)) return std::nullopt;
  const std::string_view text = record.substr(prefix.size());
  std::string key;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      key += text[at];
      continue;
    }
    unsigned byte = 0;
    if (at + 2 >= text.size()) return std::nullopt;
    const char* digits = text.data() + at + 1;
    if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) return std::nullopt;
    key += static_cast<char>(byte);
    at += 2;
  }
  return key;
}

std::string data_prefix(std::string_view key) {
  return fmt::format(".pawl/data/{}/", aws::encode(key));
}

std::string data_key(std::string_view key, std::uint64_t sequence, std::string_view nonce) {
  return fmt::format("{}{:016}-{}", data_prefix(key), sequence, nonce);
}

std::optional<std::uint64_t> sequence_of(std::string_view data_key) {
  const std::size_t slash = data_key.rfind('/');
  const std::string_view name = data_key.substr(slash == data_key.npos ? 0 : slash + 1);
  if (name.size() <= kSequenceDigits || name[kSequenceDigits] != '-') return std::nullopt;
  std::string_view digits = name.substr(0, kSequenceDigits);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return parse_count(digits);
}

std::string probe_key(std::string_view nonce) {
  return fmt::format(".pawl/probe/{}", nonce);
}

std::vector<std::string> find_garbage(const std::vector<std::string>& data_keys,
                                      std::uint64_t sequence, std::string_view referred) {
  std::vector<std::string> garbage;
  for (const std::string& key : data_keys) {
    const auto made_for = sequence_of(key);
    if (made_for && *made_for <= sequence && key != referred) garbage.push_back(key);
  }
  return garbage;
}

}  // namespace pawl::guard
