#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "tls/certificate.h"
#include "tls/tls_errors.h"

namespace pawl::tls {
namespace {

using Certificates = std::vector<Handle<X509>>;

// Far more than any chain; the system's own list of authorities is read by OpenSSL.
constexpr std::size_t kPemMax = 1 << 20;

Error wrong(const std::string& file, std::string_view why) {
  return {Code::kInvalid, file + ": " + std::string(why)};
}

// Without NO_ATEXIT OpenSSL would free its state at exit, while other threads may still use it.
void start_openssl() {
  static std::once_flag once;
  std::call_once(once, [] { OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr); });
}

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) return wrong(path, std::string("cannot be read: ") + std::strerror(errno));
  std::string text(kPemMax + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0)
    return wrong(path, std::string("cannot be read: ") + std::strerror(errno));
  if (text.size() > kPemMax) return wrong(path, "is larger than 1 MiB, the limit for PEM files");
  return text;
}

Handle<BIO> reader_of(const std::string& text) {
  return Handle<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

Result<Certificates> read_certificates(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  const Handle<BIO> in = reader_of(*text);
  Certificates found;
  ERR_clear_error();
  while (Handle<X509> one{PEM_read_bio_X509(in.get(), nullptr, &no_passphrase, nullptr)}) {
    found.push_back(std::move(one));
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (found.empty()) return wrong(path, "has no certificate in PEM form");
  if (!at_end) return wrong(path, "has a damaged certificate after " + title_of(*found.back()));
  return found;
}

Result<Handle<EVP_PKEY>> read_key(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return text.error();
  const Handle<BIO> in = reader_of(*text);
  Handle<EVP_PKEY> key(PEM_read_bio_PrivateKey(in.get(), nullptr, &no_passphrase, nullptr));
  ERR_clear_error();
  if (key) return key;
  const bool encrypted = text->find("ENCRYPTED") != std::string::npos;
  return wrong(
      path,
      encrypted
          ? "is encrypted, and pawld cannot ask for a passphrase; decrypt it with `openssl pkey`, "
            "and protect the file by its permissions"
          : "has no private key in PEM form");
}

Handle<SSL_CTX> new_context(const SSL_METHOD* method) {
  start_openssl();
  Handle<SSL_CTX> context(SSL_CTX_new(method));
  PAWL_ASSERT(context != nullptr);
  SSL_CTX* raw = context.get();
  PAWL_ASSERT(SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1);
  PAWL_ASSERT(SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);  // of TLS 1.2
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  // There may be ten thousand idle connections: keep buffers only while they hold something.
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

// Both `cert` and `key` are named.
Result<Handle<X509>> use_identity(SSL_CTX* context, const std::string& cert,
                                  const std::string& key) {
  PAWL_ASSERT(!cert.empty() && !key.empty());
  auto chain = read_certificates(cert);
  if (!chain) return chain.error();
  const auto secret = read_key(key);
  if (!secret) return secret.error();
  X509* own = chain->front().get();
  if (const auto why = out_of_date(*own))
    return wrong(cert, "the certificate of " + title_of(*own) + " " + *why);
  ERR_clear_error();
  if (X509_check_private_key(own, secret->get()) != 1) {
    ERR_clear_error();
    return wrong(key, "does not belong to the certificate in " + cert);
  }
  if (SSL_CTX_use_certificate(context, own) != 1) return wrong(cert, take_library_error());
  if (SSL_CTX_use_PrivateKey(context, secret->get()) != 1) return wrong(key, take_library_error());
  for (std::size_t i = 1; i < chain->size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, (*chain)[i].get()) != 1)
      return wrong(cert, take_library_error());
  }
  return std::move(chain->front());
}

Result<void> trust(SSL_CTX* context, const std::string& path) {
  const auto authorities = read_certificates(path);
  if (!authorities) return authorities.error();
  for (const Handle<X509>& one : *authorities) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get()) != 1)
      return wrong(path, take_library_error());
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const ServerContext>> ServerContext::load(const ServerFiles& files) {
  if (files.cert.empty() || files.key.empty()) {
    return Error{Code::kInvalid, files.cert.empty()
                                     ? "TLS needs a certificate besides the key; set tls.cert"
                                     : "TLS needs the key of the certificate; set tls.key"};
  }
  std::shared_ptr<ServerContext> loaded(new ServerContext);
  loaded->handle_ = new_context(TLS_server_method());
  SSL_CTX* raw = loaded->handle_.get();
  const auto own = use_identity(raw, files.cert, files.key);
  if (!own) return own.error();
  loaded->summary_ = title_of(**own) + ", valid until " + to_text(*X509_get0_notAfter(own->get()));
  loaded->expires_ = to_unix(*X509_get0_notAfter(own->get())).value_or(0);
  if (!files.client_ca.empty()) {
    if (const auto trusted = trust(raw, files.client_ca); !trusted) return trusted.error();
    // A client without a certificate may still authenticate with a password.
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, &note_verification);
  }
  return std::shared_ptr<const ServerContext>(std::move(loaded));
}

std::string ServerContext::host_for_clients(const std::string& host) const {
  return tls::host_for_clients(*SSL_CTX_get0_certificate(handle_.get()), host);
}

Result<std::shared_ptr<const ClientContext>> ClientContext::load(const ClientFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return Error{Code::kInvalid, files.cert.empty()
                                     ? files.key + ": a key without its certificate cannot be used"
                                     : files.cert + ": a certificate needs its key"};
  }
  std::shared_ptr<ClientContext> loaded(new ClientContext);
  loaded->server_name_ = files.server_name;
  loaded->handle_ = new_context(TLS_client_method());
  SSL_CTX* raw = loaded->handle_.get();
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, &note_verification);
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(raw);
  } else if (const auto trusted = trust(raw, files.ca); !trusted) {
    return trusted.error();
  }
  if (!files.cert.empty()) {
    if (const auto own = use_identity(raw, files.cert, files.key); !own) return own.error();
  }
  return std::shared_ptr<const ClientContext>(std::move(loaded));
}

}  // namespace pawl::tls
