// pawld --check-config: options.cc has read the files as this user; here they are read as the user
// of the service, if that is another one.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "pawld/commands.h"
#include "pawld/exit_codes.h"

namespace pawl::pawld {
namespace {

struct SystemUser {
  uid_t id = 0;
  gid_t group = 0;
  std::string name;
};

SystemUser system_user(uid_t id, gid_t group) {
  const passwd* known = ::getpwuid(id);
  if (known == nullptr) return {id, group, fmt::format("uid {}", id)};
  return {id, known->pw_gid, known->pw_name};
}

std::vector<std::string> files_of(const Options& options) {
  const Config& config = options.config;
  std::vector<std::string> files;
  for (const std::string& file :
       {options.config_file, config.auth_file, config.tls.cert, config.tls.key,
        config.tls.client_ca, config.etcd.password_file, config.etcd.files.ca,
        config.etcd.files.cert, config.etcd.files.key}) {
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

// In a child process: becomes `user`, prints each file that it cannot read, and exits with 1 if
// there is one.
[[noreturn]] void try_files_as(const SystemUser& user, const std::vector<std::string>& files,
                               const std::string& data) {
  const bool became = ::initgroups(user.name.c_str(), user.group) == 0 &&
                      ::setgid(user.group) == 0 && ::setuid(user.id) == 0;
  if (!became) ::_exit(0);  // Not permitted: nothing was found out.
  int unreadable = 0;
  for (const std::string& file : files) {
    const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened >= 0) continue;
    ++unreadable;
    fmt::print(stderr, "pawld: {}: cannot be read by {}, who owns {}: {}\n", file, user.name, data,
               std::strerror(errno));
  }
  std::fflush(stderr);
  ::_exit(unreadable == 0 ? 0 : 1);
}

bool can_read_all(const SystemUser& user, const std::vector<std::string>& files,
                  const std::string& data) {
  const pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) try_files_as(user, files, data);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int check_config(const Options& options) {
  const std::string& data = options.config.data;
  const SystemUser self = system_user(::geteuid(), ::getegid());
  struct stat facts {};
  const bool exists =
      options.config.store == StoreKind::kJournal && ::stat(data.c_str(), &facts) == 0;
  if (exists && facts.st_uid != self.id) {
    const SystemUser owner = system_user(facts.st_uid, facts.st_gid);
    if (self.id == 0 && !can_read_all(owner, files_of(options), data)) {
      fmt::print(
          stderr,
          "pawld: as {} the service would not start. Make the files readable to its group (chgrp, "
          "chmod 640)\n",
          owner.name);
      return kExitConfig;
    }
    if (self.id == 0) {
      fmt::print(
          "the configuration is right; files were tried as root and as {}, the owner of {}\n",
          owner.name, data);
      return kExitOk;
    }
    fmt::print(
        stderr,
        "pawld: warning: {} belongs to {}, but this check ran as {}. If pawld runs as {}, check as "
        "that user: runuser -u {} -- pawld --check-config …\n",
        data, owner.name, self.name, owner.name, owner.name);
  }
  fmt::print("the configuration is right; files were tried as user {}\n", self.name);
  return kExitOk;
}

}  // namespace pawl::pawld
