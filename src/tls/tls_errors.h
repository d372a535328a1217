// Error messages for failures of TLS. They name the certificate and what is wrong with it.
#pragma once

#include <string>

#include "tls/handles.h"

namespace pawl::tls {

// The verification callback of every context: records why a certificate was refused.
int note_verification(int accepted, X509_STORE_CTX* check);
// Where note_verification() records it for this connection. `note` outlives the connection, or is
// reset to null.
void set_refusal_note(SSL* ssl, std::string* note);

// OpenSSL's reason for the last failure; clears OpenSSL's error queue.
[[nodiscard]] std::string take_library_error();
// Why the last operation on a connection failed; clears OpenSSL's error queue.
[[nodiscard]] std::string take_stream_error(const SSL* ssl);

}  // namespace pawl::tls
