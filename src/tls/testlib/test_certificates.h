// Certificates for tests, made in the process: an authority, and what it signs. Files go where the
// test says.
//
//   const Made authority = make_authority("test authority");
//   const Made server = make_signed(authority, {.name = "pawld", .hosts = {"localhost", "127.0.0.1"}});
//   const std::string path = write_file(dir, "server.pem", server.certificate_pem);
#pragma once

#include <string>
#include <vector>

#include "tls/handles.h"

namespace pawl::tls {

struct Made {
  Handle<X509> certificate;
  Handle<EVP_PKEY> key;
  std::string certificate_pem;
  std::string key_pem;
};

struct Wanted {
  std::string name;                     // the common name
  std::vector<std::string> hosts = {};  // names and IPv4 addresses
  long from_seconds = -3600;            // from now
  long until_seconds = 3600;
};

[[nodiscard]] Made make_authority(const std::string& name);
[[nodiscard]] Made make_signed(const Made& authority, const Wanted& wanted);

// The path.
std::string write_file(const std::string& dir, const std::string& name, const std::string& text);

}  // namespace pawl::tls
