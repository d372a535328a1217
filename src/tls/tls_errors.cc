#include "tls/tls_errors.h"

#include <openssl/err.h>

#include "tls/certificate.h"

namespace pawl::tls {
namespace {

std::string wanted_host(X509_STORE_CTX* check) {
  X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(check);
  if (const char* host = X509_VERIFY_PARAM_get0_host(wanted, 0)) return host;
  char* address = X509_VERIFY_PARAM_get1_ip_asc(wanted);
  std::string text = address == nullptr ? "that address" : address;
  OPENSSL_free(address);
  return text;
}

std::string refusal(int problem, const X509& certificate, X509_STORE_CTX* check) {
  const std::string whose = "the certificate of " + title_of(certificate) + " ";
  switch (problem) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return whose + out_of_date(certificate).value_or("was out of date a moment ago");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return whose + "is for " + hosts_of(certificate) + ", not for " + wanted_host(check);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return whose + "is signed by an unknown authority: " + issuer_of(certificate);
    default:
      return whose + "was refused: " + X509_verify_cert_error_string(problem);
  }
}

// The alerts of RFC 8446 with which the peer refuses our certificate, or asks for one.
constexpr int kBadCertificate = 42, kCertificateUnknown = 46, kUnknownAuthority = 48,
              kCertificateRequired = 116;

bool is_about_certificate(int alert) {
  return (alert >= kBadCertificate && alert <= kCertificateUnknown) || alert == kUnknownAuthority;
}

std::string alert_text(const SSL* ssl, int alert) {
  const std::string word = SSL_alert_desc_string_long(alert);
  const std::string other = SSL_is_server(ssl) == 1 ? "the client" : "the server";
  if (alert == kCertificateRequired) return other + " requires a certificate, and none was given";
  if (is_about_certificate(alert)) return other + " refused our certificate: " + word;
  return other + " ended the connection: " + word;
}

// The slot for the note at each connection. Not SSL_set_app_data(): Asio uses that, and frees what
// it finds there.
int note_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

void set_refusal_note(SSL* ssl, std::string* note) {
  SSL_set_ex_data(ssl, note_index(), note);
}

int note_verification(int accepted, X509_STORE_CTX* check) {
  if (accepted == 1) return 1;
  const auto* ssl = static_cast<const SSL*>(
      X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* note = static_cast<std::string*>(SSL_get_ex_data(ssl, note_index()));
  const X509* certificate = X509_STORE_CTX_get_current_cert(check);
  const int problem = X509_STORE_CTX_get_error(check);
  if (note != nullptr) {
    *note = certificate == nullptr ? X509_verify_cert_error_string(problem)
                                   : refusal(problem, *certificate, check);
  }
  return 0;
}

std::string take_library_error() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

std::string take_stream_error(const SSL* ssl) {
  const unsigned long error = ERR_peek_error();
  const int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && alert >= 0 && alert < 256) {
    ERR_clear_error();
    return alert_text(ssl, alert);
  }
  const int reason = ERR_GET_REASON(error);
  if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_VERSION_TOO_LOW) {
    ERR_clear_error();
    return "the peer supports nothing newer than TLS 1.1; at least 1.2 is required";
  }
  return take_library_error();
}

}  // namespace pawl::tls
