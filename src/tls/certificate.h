// What a certificate says, for people and for the rule that its common name is a user.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tls/handles.h"

namespace pawl::tls {

// The common name of its subject; empty when it has none, or one that is not plain text of one
// line.
[[nodiscard]] std::string common_name(const X509& certificate);
// What to call it: its common name, else its whole subject.
[[nodiscard]] std::string title_of(const X509& certificate);
[[nodiscard]] std::string issuer_of(const X509& certificate);
// The hosts it is for, as "db1, db2, 10.0.0.7"; "no host" when there is none.
[[nodiscard]] std::string hosts_of(const X509& certificate);
// How a server with this certificate can be called that listens on `host`: by that, or by the first
// of its names.
[[nodiscard]] std::string host_for_clients(const X509& certificate, const std::string& host);
// "2027-01-31 12:00:00 UTC"
[[nodiscard]] std::string to_text(const ASN1_TIME& time);
// Seconds since 1970, in UTC; nothing when it cannot be read.
[[nodiscard]] std::optional<std::int64_t> to_unix(const ASN1_TIME& time);
// "expired on …" or "is not valid before …"; nothing when it is valid now.
[[nodiscard]] std::optional<std::string> out_of_date(const X509& certificate);

}  // namespace pawl::tls
