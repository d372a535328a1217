#include "tls/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "base/testlib/temp_directory.h"
#include "tls/testlib/test_certificates.h"

namespace pawl::tls {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class TlsContext : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    return write_file(dir_, name, text);
  }
  // What is wrong with them.
  static std::string problem(const ServerFiles& files) {
    const auto loaded = ServerContext::load(files);
    if (loaded) return "";
    EXPECT_EQ(loaded.error().code, Code::kInvalid);
    return loaded.error().detail;
  }
  static std::string problem(const ClientFiles& files) {
    const auto loaded = ClientContext::load(files);
    return loaded ? "" : loaded.error().detail;
  }

  const TempDirectory temp_;
  const std::string& dir_ = temp_.path();
  const TestCertificate authority_ = make_authority("test authority");
  const TestCertificate server_ =
      make_signed(authority_, {.name = "pawld", .hosts = {"localhost"}});
  const std::string cert_ = file("server.pem", server_.certificate_pem);
  const std::string key_ = file("server.key", server_.key_pem);
  const std::string ca_ = file("ca.pem", authority_.certificate_pem);
};

TEST_F(TlsContext, ValidFilesAreLoaded) {
  const auto loaded = ServerContext::load({cert_, key_, ca_});
  ASSERT_TRUE(loaded) << loaded.error().detail;
  EXPECT_THAT((*loaded)->summary(), StartsWith("pawld, valid until 20"));
  EXPECT_EQ(problem(ClientFiles{ca_, cert_, key_, ""}), "");
  EXPECT_EQ(problem(ClientFiles{}), "");  // The system's own trust.
}

TEST_F(TlsContext, AnUnreadableFileIsNamedWithTheReason) {
  EXPECT_THAT(problem(ServerFiles{"/no/such.pem", key_, ""}),
              StartsWith("/no/such.pem: cannot be read: No such file"));
  EXPECT_THAT(problem(ServerFiles{cert_, "/no/such.key", ""}),
              StartsWith("/no/such.key: cannot be read:"));
  EXPECT_THAT(problem(ServerFiles{cert_, key_, "/no/ca.pem"}),
              StartsWith("/no/ca.pem: cannot be read:"));
  EXPECT_THAT(problem(ServerFiles{dir_, key_, ""}),
              StartsWith(dir_ + ": cannot be read: Is a directory"));
}

TEST_F(TlsContext, AFileWithoutCertificateOrKeyIsNamed) {
  EXPECT_THAT(problem(ServerFiles{key_, key_, ""}),
              EndsWith("server.key: has no certificate in PEM form"));
  EXPECT_THAT(problem(ServerFiles{cert_, cert_, ""}),
              EndsWith("server.pem: has no private key in PEM form"));
  const std::string empty = file("empty", "");
  EXPECT_THAT(problem(ServerFiles{empty, key_, ""}),
              EndsWith("empty: has no certificate in PEM form"));
  std::string text = server_.certificate_pem + authority_.certificate_pem;
  text.replace(text.size() - 60, 4, "!!!!");
  EXPECT_THAT(problem(ServerFiles{file("damaged", text), key_, ""}),
              EndsWith("damaged: has a damaged certificate after pawld"));
}

TEST_F(TlsContext, AnEncryptedKeyIsRefusedWithoutPrompt) {
  const Handle<BIO> out(BIO_new(BIO_s_mem()));
  std::string passphrase = "secret";
  PEM_write_bio_PrivateKey(out.get(), server_.key.get(), EVP_aes_128_cbc(), nullptr, 0, nullptr,
                           passphrase.data());
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  const std::string path = file("locked.key", {text, static_cast<std::size_t>(size)});
  EXPECT_THAT(problem(ServerFiles{cert_, path, ""}), HasSubstr("locked.key: is encrypted"));
}

TEST_F(TlsContext, AKeyOfAnotherCertificateIsRefused) {
  const TestCertificate other = make_signed(authority_, {.name = "other", .hosts = {}});
  const std::string path = file("other.key", other.key_pem);
  EXPECT_EQ(problem(ServerFiles{cert_, path, ""}),
            path + ": does not belong to the certificate in " + cert_);
}

TEST_F(TlsContext, AnExpiredOrFutureCertificateIsRefusedWithTheDate) {
  const TestCertificate old = make_signed(authority_, {"old", {}, -7200, -3600});
  const TestCertificate early = make_signed(authority_, {"early", {}, 3600, 7200});
  EXPECT_THAT(
      problem(ServerFiles{file("old.pem", old.certificate_pem), file("old.key", old.key_pem), ""}),
      HasSubstr("old.pem: the certificate of old expired on 20"));
  EXPECT_THAT(problem(ServerFiles{file("early.pem", early.certificate_pem),
                                  file("early.key", early.key_pem), ""}),
              HasSubstr("early.pem: the certificate of early is not valid before 20"));
}

TEST_F(TlsContext, ACertificateWithoutKeyOrKeyWithoutCertificateIsRefused) {
  EXPECT_THAT(problem(ServerFiles{cert_, "", ""}), HasSubstr("tls.key"));
  EXPECT_THAT(problem(ServerFiles{"", key_, ""}), HasSubstr("tls.cert"));
  EXPECT_THAT(problem(ServerFiles{"", "", ca_}), HasSubstr("tls.cert"));
  EXPECT_THAT(problem(ClientFiles{"", cert_, "", ""}), HasSubstr("a certificate needs its key"));
  EXPECT_THAT(problem(ClientFiles{"", "", key_, ""}), HasSubstr("a key without its certificate"));
}

}  // namespace
}  // namespace pawl::tls
