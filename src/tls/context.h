// Our certificate and key, and the authorities that we trust: read from PEM files once and shared
// by all connections. A context never changes. To rotate a certificate, load a new context and use
// it for new connections; existing ones keep the old context alive.
//
//   auto context = tls::ServerContext::load({.cert = "pawld.pem", .key = "pawld.key"});
//   if (!context) return refuse(context.error());  // kInvalid: the file, and what is wrong with it
//   tls::Stream stream(**context);
//
// TLS 1.2 and newer, with forward secrecy and authenticated encryption only. Sessions are not
// resumed: connections live long, and a resumed session would skip the check of the certificate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pawl/result.h"
#include "tls/handles.h"

namespace pawl::tls {

struct ServerFiles {
  // The server's certificate, followed by those between it and the root.
  std::string cert = {};
  // The key of the first certificate; not encrypted.
  std::string key = {};
  // The CA that signs client certificates. Empty: clients are not asked for one.
  std::string client_ca = {};

  // Whether TLS is configured at all.
  [[nodiscard]] bool configured() const {
    return !cert.empty() || !key.empty() || !client_ca.empty();
  }
};

class ServerContext {
 public:
  // Reads the files. kInvalid: names the file and what is wrong with it.
  [[nodiscard]] static Result<std::shared_ptr<const ServerContext>> load(const ServerFiles& files);

  // For libraries that create the connection themselves; call SSL_CTX_up_ref() to keep it.
  [[nodiscard]] SSL_CTX* native() const { return handle_.get(); }
  // "pawl.example, valid until 2027-01-31 12:00:00 UTC", for the log.
  [[nodiscard]] const std::string& summary() const { return summary_; }
  // When the certificate expires, in seconds since 1970.
  [[nodiscard]] std::int64_t expires() const { return expires_; }
  // The name or address by which clients can verify a server that listens on `host`; `host` itself
  // if the certificate has none.
  [[nodiscard]] std::string host_for_clients(const std::string& host) const;

 private:
  ServerContext() = default;
  Handle<SSL_CTX> handle_;
  std::string summary_;
  std::int64_t expires_ = 0;
};

struct ClientFiles {
  // The CA that signs the server's certificate. Empty: the authorities that the system trusts.
  std::string ca = {};
  // Our certificate and key, for servers that ask for one; both or neither.
  std::string cert = {};
  std::string key = {};
  // The name that the server's certificate must have. Empty: the host that is connected to.
  std::string server_name = {};
};

class ClientContext {
 public:
  // Reads the files. kInvalid: names the file and what is wrong with it.
  [[nodiscard]] static Result<std::shared_ptr<const ClientContext>> load(const ClientFiles& files);

  [[nodiscard]] SSL_CTX* native() const { return handle_.get(); }
  // The name that the certificate of a server must have if the server is reached as `host`.
  [[nodiscard]] const std::string& name_of(const std::string& host) const {
    return server_name_.empty() ? host : server_name_;
  }

 private:
  ClientContext() = default;
  Handle<SSL_CTX> handle_;
  std::string server_name_;
};

}  // namespace pawl::tls
