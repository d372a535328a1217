#include "store/journal/overlay.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace pawl::store::journal {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kSlotsAtFirst = 1024;

std::uint64_t mix(std::uint64_t a) {
  a *= 0x9e3779b97f4a7c15;
  return a ^ (a >> 32);
}

std::uint64_t hash(std::string_view key) {
  std::uint64_t h = key.size();
  while (key.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, key.data(), 8);
    h = mix(h ^ word);
    key.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!key.empty()) std::memcpy(&rest, key.data(), key.size());
  return mix(mix(h ^ rest));
}

}  // namespace

Overlay::Overlay() : slots_(kSlotsAtFirst, 0) {}

Result<void> Overlay::apply_batch(std::string_view batch) {
  while (!batch.empty()) {
    const auto operation = take_operation(batch);
    if (!operation) return operation.error();
    apply(*operation);
  }
  return {};
}

void Overlay::apply(const Operation& operation) {
  const std::size_t slot = slot_of(operation.key);
  const std::string_view value = keep(operation.value);
  if (slots_[slot] != 0) {
    Operation& change = changes_[slots_[slot] - 1];
    change.put = operation.put;
    change.value = value;
    return;
  }
  PAWL_ASSERT(changes_.size() < UINT32_MAX - 1);
  changes_.push_back(Operation{operation.put, keep(operation.key), value});
  slots_[slot] = static_cast<std::uint32_t>(changes_.size());
  if (changes_.size() * 2 > slots_.size()) grow();
}

const Operation* Overlay::find(std::string_view key) const {
  const std::uint32_t found = slots_[slot_of(key)];
  return found == 0 ? nullptr : &changes_[found - 1];
}

void Overlay::sort() {
  std::sort(changes_.begin(), changes_.end(),
            [](const Operation& a, const Operation& b) { return a.key < b.key; });
  slots_.assign(kSlotsAtFirst, 0);
}

std::size_t Overlay::slot_of(std::string_view key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash(key) & mask;
  while (slots_[slot] != 0 && changes_[slots_[slot] - 1].key != key) slot = (slot + 1) & mask;
  return slot;
}

void Overlay::grow() {
  slots_.assign(slots_.size() * 4, 0);
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    slots_[slot_of(changes_[i].key)] = static_cast<std::uint32_t>(i + 1);
  }
}

std::string_view Overlay::keep(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > chunk_left_) {
    const std::size_t size = std::max(kChunk, text.size());
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    chunk_next_ = chunks_.back().get();
    chunk_left_ = size;
  }
  std::memcpy(chunk_next_, text.data(), text.size());
  const std::string_view kept(chunk_next_, text.size());
  chunk_next_ += text.size();
  chunk_left_ -= text.size();
  return kept;
}

}  // namespace pawl::store::journal
