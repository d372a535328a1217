#include "tls/testlib/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>

#include <algorithm>
#include <fstream>

#include "base/assert.h"

namespace pawl::tls {
namespace {

std::string text_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return {text, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  PAWL_ASSERT(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Handle<X509> begin(const CertificateSpec& wanted, EVP_PKEY* key) {
  static long serial = 0;
  Handle<X509> certificate(X509_new());
  X509* raw = certificate.get();
  X509_set_version(raw, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(raw), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(raw), wanted.from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(raw), wanted.until_seconds);
  X509_set_pubkey(raw, key);
  const auto* name = reinterpret_cast<const unsigned char*>(wanted.name.c_str());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_UTF8, name, -1, -1, 0);
  return certificate;
}

TestCertificate finish(Handle<X509> certificate, Handle<EVP_PKEY> key, EVP_PKEY* signer) {
  PAWL_ASSERT(X509_sign(certificate.get(), signer, EVP_sha256()) > 0);
  const Handle<BIO> certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate.get());
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {std::move(certificate), std::move(key), text_of(certificate_text.get()),
          text_of(key_text.get())};
}

std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    const bool address = host.find_first_not_of("0123456789.") == std::string::npos;
    names += (names.empty() ? "" : ",") + std::string(address ? "IP:" : "DNS:") + host;
  }
  return names;
}

}  // namespace

TestCertificate make_authority(const std::string& name) {
  Handle<EVP_PKEY> key(EVP_EC_gen("P-256"));
  Handle<X509> certificate = begin({.name = name, .hosts = {}}, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
  add_extension(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  EVP_PKEY* signer = key.get();
  return finish(std::move(certificate), std::move(key), signer);
}

TestCertificate make_signed(const TestCertificate& authority, const CertificateSpec& wanted) {
  Handle<EVP_PKEY> key(EVP_EC_gen("P-256"));
  Handle<X509> certificate = begin(wanted, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(authority.certificate.get()));
  if (!wanted.hosts.empty()) {
    add_extension(certificate.get(), authority.certificate.get(), NID_subject_alt_name,
                  alternative_names(wanted.hosts));
  }
  return finish(std::move(certificate), std::move(key), authority.key.get());
}

std::string write_file(const std::string& dir, const std::string& name, const std::string& text) {
  const std::string path = dir + "/" + name;
  std::ofstream out(path, std::ios::trunc);
  out << text;
  out.close();
  PAWL_ASSERT(out.good());
  return path;
}

}  // namespace pawl::tls
