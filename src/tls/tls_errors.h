// Why something with TLS failed, in words that name the certificate and what to do about it.
#pragma once

#include <string>

#include "tls/handles.h"

namespace pawl::tls {

// The verification callback of every context: notes why a certificate was refused.
int note_verification(int accepted, X509_STORE_CTX* check);
// Where note_verification() notes it for this connection; it outlives the connection.
void set_refusal_note(SSL* ssl, std::string* note);

// What OpenSSL has to say about the last failure; takes it off its list.
[[nodiscard]] std::string take_library_error();
// Why the last operation on a connection failed, in the view of a client or a server.
[[nodiscard]] std::string take_stream_error(const SSL* ssl);

}  // namespace pawl::tls
