#include "store/journal/machine_file.h"

#include "base/bytes.h"
#include "store/journal/format.h"
#include "store/journal/small_file.h"

namespace pawl::store::journal {
namespace {
constexpr std::string_view kMachineMagic = "PAWLMACH";
}  // namespace

Result<std::optional<std::string>> read_machine(Files& files, const std::string& directory) {
  const auto there = files.exists(path_in(directory, kMachineFile));
  if (!there) return there.error();
  if (!*there) return std::optional<std::string>();
  const auto body = read_small_file(files, directory, kMachineFile, kMachineMagic);
  if (!body) return body.error();
  ByteReader in(*body);
  std::string machine(in.text());
  if (!in.done()) return damage(path_in(directory, kMachineFile), 0, "makes no sense");
  return std::optional(std::move(machine));
}

Result<void> write_machine(Files& files, const std::string& directory, const std::string& machine) {
  std::string body;
  put_text(body, machine);
  return write_small_file(files, directory, kMachineFile, kMachineMagic, body);
}

}  // namespace pawl::store::journal
