// The beginning of a TLS connection, up to start_connection() (connection.h).
//
// A client whose first byte is not TLS gets an answer without TLS that says so: a person with
// curl http://… should not have to guess. The common name of a verified client certificate becomes
// the user of every request.
#pragma once

#include <memory>
#include <string>

#include "http/connection.h"
#include "tls/context.h"

namespace pawl::http {

// Runs the handshake within bounds.handshake; it keeps itself alive. On the server's thread.
void start_handshake(asio::ip::tcp::socket socket, const tls::ServerContext& tls,
                     const ConnectionContext& context, std::string peer, ConnectionSlot slot);

}  // namespace pawl::http
