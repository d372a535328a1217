// Certificates for tests, made in the process: an authority, and certificates that it signs.
//
//   const TestCertificate authority = make_authority("test authority");
//   const TestCertificate server =
//       make_signed(authority, {.name = "pawld", .hosts = {"localhost", "127.0.0.1"}});
//   const std::string path = write_file(dir, "server.pem", server.certificate_pem);
#pragma once

#include <string>
#include <vector>

#include "tls/handles.h"

namespace pawl::tls {

struct TestCertificate {
  Handle<X509> certificate;
  Handle<EVP_PKEY> key;
  std::string certificate_pem;
  std::string key_pem;
};

struct CertificateSpec {
  std::string name;                     // The common name.
  std::vector<std::string> hosts = {};  // Names and IPv4 addresses.
  // The validity, in seconds from now.
  long from_seconds = -3600;
  long until_seconds = 3600;
};

[[nodiscard]] TestCertificate make_authority(const std::string& name);
[[nodiscard]] TestCertificate make_signed(const TestCertificate& authority,
                                          const CertificateSpec& wanted);

// Writes a file and returns its path.
std::string write_file(const std::string& dir, const std::string& name, const std::string& text);

}  // namespace pawl::tls
