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

std::uint32_t hash_of(std::string_view key) {
  std::uint64_t h = key.size();
  while (key.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, key.data(), 8);
    h = mix(h ^ word);
    key.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!key.empty()) std::memcpy(&rest, key.data(), key.size());
  return static_cast<std::uint32_t>(mix(mix(h ^ rest)));
}

}  // namespace

Overlay::Overlay() : slots_(kSlotsAtFirst) {}

Result<void> Overlay::apply_batch(std::string_view batch) {
  while (!batch.empty()) {
    const auto operation = take_operation(batch);
    if (!operation) return operation.error();
    apply(*operation);
  }
  return {};
}

void Overlay::apply(const Operation& operation) {
  PAWL_ASSERT(!sorted_);
  const std::uint32_t hash = hash_of(operation.key);
  Slot& slot = slots_[slot_of(operation.key, hash)];
  const std::string_view value = keep(operation.value);
  if (slot.change != 0) {
    Operation& change = changes_[slot.change - 1];
    change.put = operation.put;
    change.value = value;
    return;
  }
  PAWL_ASSERT(changes_.size() < UINT32_MAX / 2);
  changes_.push_back(Operation{operation.put, keep(operation.key), value});
  slot = Slot{static_cast<std::uint32_t>(changes_.size()), hash};
  if (changes_.size() * 2 > slots_.size()) grow();
}

const Operation* Overlay::find(std::string_view key) const {
  PAWL_ASSERT(!sorted_);
  const Slot& slot = slots_[slot_of(key, hash_of(key))];
  return slot.change == 0 ? nullptr : &changes_[slot.change - 1];
}

void Overlay::sort() {
  std::sort(changes_.begin(), changes_.end(),
            [](const Operation& a, const Operation& b) { return a.key < b.key; });
  slots_.assign(kSlotsAtFirst, Slot{});  // They hold indexes from before the sort.
  sorted_ = true;
}

std::size_t Overlay::slot_of(std::string_view key, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].change != 0 &&
         (slots_[at].hash != hash || changes_[slots_[at].change - 1].key != key)) {
    at = (at + 1) & mask;
  }
  return at;
}

void Overlay::grow() {
  std::vector<Slot> old(slots_.size() * 4);
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  PAWL_ASSERT((slots_.size() & mask) == 0 && changes_.size() * 2 <= slots_.size());
  for (const Slot& slot : old) {
    if (slot.change == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].change != 0) at = (at + 1) & mask;
    slots_[at] = slot;
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
