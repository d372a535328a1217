#include "pawld/machine_mark.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <fstream>

#include "base/assert.h"

namespace pawl::pawld {
namespace {

std::string digest(std::string_view salt, std::string_view id) {
  const std::string text = fmt::format("pawl machine {} {}", salt, id);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data());
  std::string hex;
  for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace

std::optional<std::string> machine_id(const std::string& path) {
  std::ifstream file(path);
  std::string id;
  if (!std::getline(file, id) || id.empty() || id == "uninitialized") return std::nullopt;
  return id;
}

std::string make_mark(std::string_view id, Random& random) {
  const std::string salt = fmt::format("{:016x}", random.next());
  std::string mark = salt + ":" + digest(salt, id);
  PAWL_ASSERT(mark_matches(mark, id));
  return mark;
}

bool mark_matches(std::string_view mark, std::string_view id) {
  const std::size_t colon = mark.find(':');
  return colon != std::string_view::npos &&
         mark.substr(colon + 1) == digest(mark.substr(0, colon), id);
}

Result<MachineCheck> check_machine(store::journal::Journal& journal, const std::string& id_path,
                                   Adopt adopt, Random& random) {
  const auto id = machine_id(id_path);
  if (!id) return MachineCheck::kSameMachine;
  const auto mark = journal.machine_mark();
  if (!mark) return mark.error();
  const bool same = *mark && mark_matches(**mark, *id);
  if (same) return MachineCheck::kSameMachine;
  const bool other_machine = mark->has_value();
  if (other_machine && adopt == Adopt::kNo)
    return Error{Code::kDenied, "this data was last used on another machine"};
  if (auto written = journal.set_machine_mark(make_mark(*id, random)); !written)
    return written.error();
  return other_machine ? MachineCheck::kAdopted : MachineCheck::kSameMachine;
}

}  // namespace pawl::pawld
