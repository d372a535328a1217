// Reads the fields of a certificate: for messages, and for the rule that its common name is a user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tls/handles.h"

namespace pawl::tls {

// The common name of the subject; empty if it has none, or one that is not plain text of one line.
[[nodiscard]] std::string common_name(const X509& certificate);
// A name for messages: the common name, else the whole subject.
[[nodiscard]] std::string title_of(const X509& certificate);
// The issuer, as in "CN=authority".
[[nodiscard]] std::string issuer_of(const X509& certificate);
// The hosts that it is for, as "db1, db2, 10.0.0.7"; "no host" if there is none.
[[nodiscard]] std::string hosts_of(const X509& certificate);
// A name by which clients can verify a server with this certificate that listens on `host`: `host`
// itself, or else the first name of the certificate.
[[nodiscard]] std::string host_for_clients(const X509& certificate, const std::string& host);
// "2027-01-31 12:00:00 UTC"
[[nodiscard]] std::string to_text(const ASN1_TIME& time);
// Seconds since 1970, in UTC; nothing if the time is malformed.
[[nodiscard]] std::optional<std::int64_t> to_unix(const ASN1_TIME& time);
// "expired on …" or "is not valid before …"; nothing if it is valid now.
[[nodiscard]] std::optional<std::string> out_of_date(const X509& certificate);

}  // namespace pawl::tls
