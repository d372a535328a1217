// The keys of what Pawl keeps in a bucket. Pure.
//
//   KEY                              the fenced object
//   .pawl/installation               that the bucket was prepared, and how it wants ETags
//   .pawl/guards/KEY                 the counters and the log of changes of a guard
//   .pawl/data/KEY/SEQUENCE-NONCE    content that is too large for the fenced object
//   .pawl/probe/NONCE                what the probe writes, and removes
//
// In these KEY is percent-encoded, '/' too, so that no key's objects are among those of another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/administration.h"
#include "pawl/result.h"

namespace pawl::guard {

inline constexpr const char* kS3Installation = ".pawl/installation";
inline constexpr const char* kS3Guards = ".pawl/guards/";
inline constexpr const char* kS3Scratch = "pawl_conformance_";

// kInvalid says which rule the key of a guarded object breaks.
[[nodiscard]] Result<void> check_s3_key(std::string_view key);
// The key that a guard is made for.
[[nodiscard]] Result<std::string> to_s3_key(const Protection& wanted);

[[nodiscard]] std::string record_key(std::string_view key);
// What record_key() made; nothing: it was not.
[[nodiscard]] std::optional<std::string> key_of_record(std::string_view record);
[[nodiscard]] std::string data_prefix(std::string_view key);
[[nodiscard]] std::string data_key(std::string_view key, std::uint64_t sequence,
                                   std::string_view nonce);
// Of a data object; nothing: it is not the key of one.
[[nodiscard]] std::optional<std::uint64_t> sequence_of(std::string_view data_key);
[[nodiscard]] std::string probe_key(std::string_view nonce);

// Of the data objects of a guard, those that nothing refers to and nothing will. An object is named
// after the replacement that was to refer to it: once the fenced object has that sequence number,
// that replacement has either been made or can never be.
[[nodiscard]] std::vector<std::string> find_garbage(const std::vector<std::string>& data_keys,
                                                    std::uint64_t sequence,
                                                    std::string_view referred);

}  // namespace pawl::guard
