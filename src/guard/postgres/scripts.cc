#include "guard/postgres/scripts.h"

#include "base/assert.h"
#include "guard/postgres/install.h"
#include "guard/postgres/uninstall.h"

namespace pawl::guard {

std::string_view postgres_install_file() {
  return kPostgresInstallFile;
}

std::string_view postgres_uninstall_file() {
  return kPostgresUninstallFile;
}

std::string transaction_body(std::string_view file) {
  constexpr std::string_view kBegin = "\nBEGIN;\n";
  constexpr std::string_view kCommit = "\nCOMMIT;\n";
  const std::size_t begin = file.find(kBegin);
  const std::size_t commit = file.rfind(kCommit);
  PAWL_ASSERT(begin != file.npos && commit != file.npos && begin < commit);
  return std::string(file.substr(begin + kBegin.size(), commit - begin - kBegin.size()));
}

}  // namespace pawl::guard
