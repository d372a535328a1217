#pragma once

#include <cstddef>

namespace pawl::limits {

// --- Object stores -------------------------------------------------------------------------------

// Of the headers of an answer, and of an answer that is not the content of an object.
inline constexpr std::size_t kStoreHeaderMax = 64 * 1024;
inline constexpr std::size_t kStoreAnswerMax = 4 * 1024 * 1024;
// Of the content of a guarded object, which is in memory when it is written and read.
inline constexpr std::size_t kFencedContentMax = 64 * 1024 * 1024;
// Content up to this size is kept in the fenced object itself, larger content in one of its own.
inline constexpr std::size_t kFencedInlineMax = 8 * 1024;
// The lines in front of that content.
inline constexpr std::size_t kFencedHeaderMax = 16 * 1024;
// The last writes of a fenced object that it names, so that lost answers can be settled.
inline constexpr std::size_t kFencedNoncesMax = 32;
// Of a key in a bucket; what Pawl adds to it must fit into the 1,024 bytes of S3.
inline constexpr std::size_t kFencedKeyMax = 200;
// Guards in one bucket, and data objects of one guard, that are listed.
inline constexpr std::size_t kFencedListMax = 100'000;

}  // namespace pawl::limits
