#include "aws/credentials.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace pawl::aws {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<Credentials> find_credentials(std::string file, std::string profile) {
  if (file.empty()) {
    Credentials found{from_environment("AWS_ACCESS_KEY_ID"),
                      from_environment("AWS_SECRET_ACCESS_KEY"),
                      from_environment("AWS_SESSION_TOKEN")};
    if (!found.access_key.empty()) return found;
    file = from_environment("AWS_SHARED_CREDENTIALS_FILE");
  }
  const bool named = !file.empty();
  if (!named) file = from_environment("HOME") + "/.aws/credentials";
  if (profile.empty()) profile = from_environment("AWS_PROFILE");
  std::ifstream stream(file);
  if (!stream && named) return Error{Code::kInvalid, "no credentials can be read from " + file};
  if (!stream) return Credentials{};
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return read_credentials(text, profile.empty() ? "default" : profile);
}

Result<Credentials> read_credentials(std::string_view file, std::string_view profile) {
  Credentials keys;
  bool here = false;
  bool found = false;
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = trim(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.starts_with('[')) {
      here = line == "[" + std::string(profile) + "]";
      found = found || here;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!here || equals == line.npos) continue;
    const std::string_view key = trim(line.substr(0, equals));
    const std::string_view value = trim(line.substr(equals + 1));
    if (key == "aws_access_key_id") keys.access_key = value;
    if (key == "aws_secret_access_key") keys.secret_key = value;
    if (key == "aws_session_token") keys.session_token = value;
  }
  if (found) return keys;
  return Error{Code::kInvalid,
               "the credentials file has no profile [" + std::string(profile) + "]"};
}

}  // namespace pawl::aws
