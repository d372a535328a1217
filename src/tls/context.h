// Who we are and whom we trust: certificates and keys from PEM files, read once and shared by every
// connection that is made under them. They never change: to rotate a certificate, load a new
// context and make new connections with it; those that exist keep the old one alive.
//
//   auto context = tls::ServerContext::load({.cert = "pawld.pem", .key = "pawld.key"});
//   if (!context) return refuse(context.error());      // kInvalid: which file, and what is wrong with it
//   tls::Stream stream(**context);
//
// TLS 1.2 and newer, with forward secrecy and authenticated encryption only. No session is resumed:
// connections live long, and whoever resumes one would skip the check of its certificate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pawl/result.h"
#include "tls/handles.h"

namespace pawl::tls {

struct ServerFiles {
  std::string cert = {};  // its own certificate first, then those between it and the root
  std::string key = {};   // of the first certificate; not encrypted
  std::string client_ca =
      {};  // CA that signs client certificates. Empty: clients are not asked for one.

  // TLS is wanted at all.
  [[nodiscard]] bool named() const { return !cert.empty() || !key.empty() || !client_ca.empty(); }
};

class ServerContext {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const ServerContext>> load(const ServerFiles& files);

  // For libraries that make connections of their own; SSL_CTX_up_ref() it to keep it.
  [[nodiscard]] SSL_CTX* native() const { return handle_.get(); }
  // "pawl.example, valid until 2027-01-31 12:00:00 UTC", for the log.
  [[nodiscard]] const std::string& summary() const { return summary_; }
  // When its certificate expires, in seconds since 1970.
  [[nodiscard]] std::int64_t expires() const { return expires_; }
  // The name or address by which clients can verify a server that listens on `host`; `host` itself
  // if there is none.
  [[nodiscard]] std::string host_for_clients(const std::string& host) const;

 private:
  ServerContext() = default;
  Handle<SSL_CTX> handle_;
  std::string summary_;
  std::int64_t expires_ = 0;
};

struct ClientFiles {
  std::string ca = {};    // Whom to believe who the server is. Empty: those that the system trusts.
  std::string cert = {};  // Ours, for servers that ask for one; both or neither.
  std::string key = {};
  // What the server's certificate must be for. Empty: the host that is connected to.
  std::string server_name = {};
};

class ClientContext {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const ClientContext>> load(const ClientFiles& files);

  [[nodiscard]] SSL_CTX* native() const { return handle_.get(); }
  // What the certificate must be for, of a server that is reached as `host`.
  [[nodiscard]] const std::string& name_of(const std::string& host) const {
    return server_name_.empty() ? host : server_name_;
  }

 private:
  ClientContext() = default;
  Handle<SSL_CTX> handle_;
  std::string server_name_;
};

}  // namespace pawl::tls
