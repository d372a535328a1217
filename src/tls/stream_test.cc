#include "tls/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/testlib/temp_directory.h"
#include "tls/testlib/test_certificates.h"

namespace pawl::tls {
namespace {

using State = Stream::State;
using testing::HasSubstr;

// What a socket between the two would take.
struct Wire {
  std::string bytes;
  std::size_t room = SIZE_MAX;

  auto sender() {
    return [this](std::string_view more) {
      const std::size_t count = std::min(room, more.size());
      bytes.append(more.substr(0, count));
      if (room != SIZE_MAX) room -= count;
      return count;
    };
  }
};

std::string read_all(Stream& stream) {
  std::string text;
  char buffer[1000];
  while (const std::size_t count = stream.read(buffer)) text.append(buffer, count);
  return text;
}

class TlsStream : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    return write_file(dir_, name, text);
  }

  // A server with this certificate; of clients it believes `client_ca`.
  std::shared_ptr<const ServerContext> server_with(const TestCertificate& made,
                                                   const std::string& client_ca = "") {
    const auto loaded = ServerContext::load(
        {file("s.pem", made.certificate_pem), file("s.key", made.key_pem), client_ca});
    EXPECT_TRUE(loaded) << loaded.error().detail;
    return *loaded;
  }
  std::shared_ptr<const ClientContext> client_with(const ClientFiles& files) {
    const auto loaded = ClientContext::load(files);
    EXPECT_TRUE(loaded) << loaded.error().detail;
    return *loaded;
  }
  void connect(const ServerContext& server, const ClientContext& client,
               const std::string& host = "localhost") {
    server_.emplace(server);
    client_.emplace(client, host);
    talk();
  }
  // Transfers all output of both ends, a few bytes at a time.
  void talk() {
    for (int i = 0; i < 1000; ++i) {
      client_->flush(to_server_.sender());
      server_->flush(to_client_.sender());
      if (to_server_.bytes.empty() && to_client_.bytes.empty()) return;
      deliver(to_server_, *server_);
      deliver(to_client_, *client_);
    }
    FAIL() << "they never fall silent";
  }
  static void deliver(Wire& wire, Stream& to) {
    constexpr std::size_t kAtOnce = 97;  // Splits records and their headers.
    to.receive(wire.bytes.substr(0, kAtOnce));
    wire.bytes.erase(0, kAtOnce);
  }
  // Why a client refuses this server.
  std::string refusal(const TestCertificate& server, const std::string& host = "localhost") {
    connect(*server_with(server), *client_with({.ca = ca_}), host);
    EXPECT_EQ(client_->state(), State::kFailed);
    EXPECT_EQ(server_->state(), State::kFailed);
    EXPECT_TRUE(client_->failed_by_configuration());
    return client_->error();
  }

  const TempDirectory temp_;
  const std::string& dir_ = temp_.path();
  const TestCertificate authority_ = make_authority("test authority");
  const std::string ca_ = file("ca.pem", authority_.certificate_pem);
  const TestCertificate pawld_ =
      make_signed(authority_, {.name = "pawld", .hosts = {"localhost", "127.0.0.1"}});
  const TestCertificate batch_ = make_signed(authority_, {.name = "batch", .hosts = {}});
  Wire to_server_, to_client_;
  std::optional<Stream> server_, client_;
};

TEST_F(TlsStream, PlaintextArrivesAtTheOtherEnd) {
  connect(*server_with(pawld_), *client_with({.ca = ca_}));
  ASSERT_EQ(client_->state(), State::kOpen) << client_->error();
  ASSERT_EQ(server_->state(), State::kOpen) << server_->error();
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(client_->send("PING\r\n", to_server_.sender()), 6U);
  EXPECT_EQ(server_->send(long_text, to_client_.sender()), long_text.size());
  server_->receive(std::exchange(to_server_.bytes, {}));
  client_->receive(std::exchange(to_client_.bytes, {}));
  EXPECT_EQ(read_all(*server_), "PING\r\n");
  EXPECT_EQ(read_all(*client_), long_text);
}

TEST_F(TlsStream, BothEndsAgreeOnTheProtocolThatTheClientNames) {
  const auto server = server_with(pawld_);
  const auto take_first = [](SSL*, const unsigned char** out, unsigned char* size,
                             const unsigned char* offered, unsigned, void*) {
    *out = offered + 1;
    *size = offered[0];
    return SSL_TLSEXT_ERR_OK;
  };
  SSL_CTX_set_alpn_select_cb(server->native(), take_first, nullptr);
  server_.emplace(*server);
  client_.emplace(*client_with({.ca = ca_}), "localhost", "h2");
  talk();
  ASSERT_EQ(client_->state(), State::kOpen) << client_->error();
  EXPECT_EQ(client_->alpn(), "h2");
  EXPECT_EQ(server_->alpn(), "h2");
}

TEST_F(TlsStream, AServerWithoutProtocolsAgreesOnNone) {
  server_.emplace(*server_with(pawld_));
  client_.emplace(*client_with({.ca = ca_}), "localhost", "h2");
  talk();
  ASSERT_EQ(client_->state(), State::kOpen) << client_->error();
  EXPECT_EQ(client_->alpn(), "");
}

TEST_F(TlsStream, NothingIsSentInPlainText) {
  connect(*server_with(pawld_), *client_with({.ca = ca_}));
  EXPECT_EQ(client_->send("a-secret-lease", to_server_.sender()), 14U);
  EXPECT_EQ(to_server_.bytes.find("a-secret"), std::string::npos);
}

TEST_F(TlsStream, BytesNotSentByASlowSocketAreSentOnceLater) {
  connect(*server_with(pawld_), *client_with({.ca = ca_}));
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += static_cast<char>('a' + i % 23);
  std::string unsent = text, received;
  while (!unsent.empty()) {
    to_server_.room = 1'000;
    unsent.erase(0, client_->send(unsent, to_server_.sender()));
    // All that was taken has left: the sum of both is never less than the text.
    server_->receive(std::exchange(to_server_.bytes, {}));
    received += read_all(*server_);
    ASSERT_GE(received.size() + unsent.size(), text.size());
  }
  EXPECT_EQ(received, text);
}

TEST_F(TlsStream, NothingIsSentBeforeTheHandshakeIsOver) {
  server_.emplace(*server_with(pawld_));
  client_.emplace(*client_with({.ca = ca_}), "localhost");
  EXPECT_EQ(client_->send("HELLO 3\r\n", to_server_.sender()), 0U);
  EXPECT_EQ(client_->state(), State::kHandshake);
  talk();
  EXPECT_EQ(client_->send("HELLO 3\r\n", to_server_.sender()), 9U);
}

TEST_F(TlsStream, CloseNotifyEndsTheInputButNotTheOutput) {
  connect(*server_with(pawld_), *client_with({.ca = ca_}));
  EXPECT_EQ(client_->send("PING\r\n", to_server_.sender()), 6U);
  client_->close();
  talk();
  EXPECT_EQ(read_all(*server_), "PING\r\n");
  EXPECT_EQ(server_->state(), State::kEnded);
  EXPECT_EQ(server_->send("+PONG\r\n", to_client_.sender()), 7U);
  client_->receive(std::exchange(to_client_.bytes, {}));
  EXPECT_EQ(read_all(*client_), "+PONG\r\n");
}

TEST_F(TlsStream, AnEndWithoutCloseNotifyIsAnEnd) {
  connect(*server_with(pawld_), *client_with({.ca = ca_}));
  server_->receive_end();
  EXPECT_EQ(server_->state(), State::kEnded);
  EXPECT_EQ(server_->error(), "");
}

TEST_F(TlsStream, AnEndDuringTheHandshakeIsAFailure) {
  server_.emplace(*server_with(pawld_));
  server_->receive_end();
  EXPECT_EQ(server_->state(), State::kFailed);
  EXPECT_THAT(server_->error(), HasSubstr("closed during the TLS handshake"));
  EXPECT_FALSE(server_->failed_by_configuration());
}

TEST_F(TlsStream, AClientWithoutTlsIsRecognised) {
  server_.emplace(*server_with(pawld_));
  server_->receive("*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(server_->state(), State::kFailed);
  EXPECT_TRUE(server_->peer_is_plain());
  EXPECT_EQ(server_->error(), "the client does not speak TLS; it sent \"*1\"");
}

TEST_F(TlsStream, AServerWithoutTlsIsRecognised) {
  client_.emplace(*client_with({.ca = ca_}), "localhost");
  client_->receive("-ERR what?\r\n");
  EXPECT_TRUE(client_->peer_is_plain());
  EXPECT_EQ(client_->error(), "the server does not speak TLS; it sent \"-ERR what?\"");
}

TEST_F(TlsStream, GarbageFailsTheStreamAndSendsAnAlert) {
  connect(*server_with(pawld_), *client_with({.ca = ca_}));
  ASSERT_EQ(server_->state(), State::kOpen);
  server_->receive("\x17\x03\x03" + std::string("\0\x20", 2) + std::string(32, 'x'));
  EXPECT_EQ(read_all(*server_), "");
  EXPECT_EQ(server_->state(), State::kFailed);
  EXPECT_NE(server_->error(), "");
  EXPECT_TRUE(server_->has_output());  // The alert.
  server_->receive("more");
  EXPECT_EQ(server_->send("too late", to_client_.sender()), 0U);
}

TEST_F(TlsStream, ADamagedOrTruncatedHelloNeverOpensTheConnection) {
  client_.emplace(*client_with({.ca = ca_}), "localhost");
  client_->flush(to_server_.sender());
  const std::string hello = to_server_.bytes;
  const auto context = server_with(pawld_);
  for (std::size_t i = 0; i < hello.size(); ++i) {
    Stream cut(*context), damaged(*context);
    cut.receive(hello.substr(0, i));
    cut.receive_end();
    EXPECT_EQ(cut.state(), State::kFailed);
    std::string bad = hello;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    damaged.receive(bad);
    EXPECT_NE(damaged.state(), State::kOpen);
  }
}

TEST_F(TlsStream, AnUnknownAuthorityIsNamed) {
  const TestCertificate stranger = make_authority("stranger");
  EXPECT_EQ(refusal(make_signed(stranger, {.name = "pawld", .hosts = {"localhost"}})),
            "the certificate of pawld is signed by an unknown authority: CN=stranger");
  EXPECT_EQ(server_->error(), "the client refused our certificate: unknown CA");
}

TEST_F(TlsStream, ACertificateOfAnotherHostIsRefusedWithItsNames) {
  EXPECT_EQ(refusal(pawld_, "db7"),
            "the certificate of pawld is for localhost, 127.0.0.1, not for db7");
  EXPECT_EQ(refusal(pawld_, "127.0.0.2"),
            "the certificate of pawld is for localhost, 127.0.0.1, not for 127.0.0.2");
}

TEST_F(TlsStream, TheCertificateIsCheckedAgainstTheGivenName) {
  connect(*server_with(pawld_), *client_with({.ca = ca_, .server_name = "localhost"}), "10.9.8.7");
  EXPECT_EQ(client_->state(), State::kOpen) << client_->error();
  connect(*server_with(pawld_), *client_with({.ca = ca_}), "127.0.0.1");
  EXPECT_EQ(client_->state(), State::kOpen) << client_->error();
}

TEST_F(TlsStream, AClientCertificateGivesThePeerName) {
  const auto client =
      client_with({ca_, file("b.pem", batch_.certificate_pem), file("b.key", batch_.key_pem), ""});
  connect(*server_with(pawld_, ca_), *client);
  ASSERT_EQ(server_->state(), State::kOpen) << server_->error();
  EXPECT_EQ(server_->peer_name(), "batch");
  connect(*server_with(pawld_), *client);  // Nobody asked for it.
  ASSERT_EQ(server_->state(), State::kOpen);
  EXPECT_EQ(server_->peer_name(), "");
}

TEST_F(TlsStream, AClientWithoutACertificateHasNoPeerName) {
  connect(*server_with(pawld_, ca_), *client_with({.ca = ca_}));
  ASSERT_EQ(server_->state(), State::kOpen) << server_->error();
  EXPECT_EQ(server_->peer_name(), "");
}

TEST_F(TlsStream, AClientCertificateOfAnUnknownAuthorityIsRefused) {
  const TestCertificate stranger = make_authority("stranger");
  const TestCertificate intruder = make_signed(stranger, {.name = "admin", .hosts = {}});
  connect(*server_with(pawld_, ca_), *client_with({ca_, file("i.pem", intruder.certificate_pem),
                                                   file("i.key", intruder.key_pem), ""}));
  EXPECT_EQ(server_->state(), State::kFailed);
  EXPECT_EQ(server_->error(),
            "the certificate of admin is signed by an unknown authority: CN=stranger");
  EXPECT_EQ(read_all(*client_), "");  // In TLS 1.3 the client notices it only when it reads.
  EXPECT_EQ(client_->state(), State::kFailed);
  EXPECT_EQ(client_->error(), "the server refused our certificate: unknown CA");
}

TEST_F(TlsStream, ConnectionsOutliveTheirContext) {
  auto server = server_with(pawld_);
  auto client = client_with({.ca = ca_});
  connect(*server, *client);
  server.reset();
  client.reset();
  EXPECT_EQ(client_->send("PING", to_server_.sender()), 4U);
  server_->receive(std::exchange(to_server_.bytes, {}));
  EXPECT_EQ(read_all(*server_), "PING");
}

}  // namespace
}  // namespace pawl::tls
