#include "tls/stream.h"

#include <openssl/err.h>

#include <utility>

#include "base/assert.h"
#include "tls/certificate.h"
#include "tls/tls_errors.h"

namespace pawl::tls {
namespace {

constexpr char kHandshakeRecord = 0x16;
constexpr char kAlertRecord = 0x15;
constexpr std::size_t kQuoteMax = 60;
// Kept between uses; ten thousand connections must not each keep more.
constexpr std::size_t kKeep = 32 * 1024;

std::string quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes.substr(0, bytes.find_first_of("\r\n")).substr(0, kQuoteMax)) {
    text += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
  }
  return text + "\"";
}

}  // namespace

Stream::Stream(SSL_CTX* context) : ssl_(SSL_new(context)) {
  PAWL_ASSERT(ssl_ != nullptr);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  PAWL_ASSERT(in != nullptr && out != nullptr);
  BIO_set_mem_eof_return(in, -1);  // Empty means "not yet", never "the end".
  BIO_set_mem_eof_return(out, -1);
  SSL_set_bio(ssl_.get(), in, out);
  set_refusal_note(ssl_.get(), &refusal_);
}

Stream::Stream(const ServerContext& context) : Stream(context.native()) {
  SSL_set_accept_state(ssl_.get());
}

Stream::Stream(const ClientContext& context, const std::string& host, const std::string& alpn)
    : Stream(context.native()) {
  const std::string& name = context.name_of(host);
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) != 1) {
    // SSL_set_tlsext_host_name() without its C cast: tells the server which certificate to use.
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    PAWL_ASSERT(X509_VERIFY_PARAM_set1_host(wanted, name.data(), name.size()) == 1);
  }
  if (!alpn.empty()) {
    PAWL_ASSERT(alpn.size() < 256);
    const std::string list = static_cast<char>(alpn.size()) + alpn;
    PAWL_ASSERT(SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(list.data()),
                                    static_cast<unsigned>(list.size())) == 0);
  }
  SSL_set_connect_state(ssl_.get());
  continue_handshake();
}

Stream::~Stream() = default;

std::string Stream::peer_name() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  const bool verified = certificate != nullptr && SSL_get_verify_result(ssl_.get()) == X509_V_OK;
  return verified ? common_name(*certificate) : std::string();
}

std::string_view Stream::alpn() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

// --- From the peer -------------------------------------------------------------------------------

void Stream::receive(std::string_view ciphertext) {
  if (ciphertext.empty() || state_ == State::kFailed) return;
  if (!std::exchange(received_, true)) check_first_byte(ciphertext);
  if (state_ == State::kFailed) return;
  std::size_t written = 0;
  const int fed =
      BIO_write_ex(SSL_get_rbio(ssl_.get()), ciphertext.data(), ciphertext.size(), &written);
  PAWL_ASSERT(fed == 1 && written == ciphertext.size());
  if (state_ == State::kHandshake) continue_handshake();
}

void Stream::check_first_byte(std::string_view bytes) {
  const bool server = SSL_is_server(ssl_.get()) == 1;
  if (bytes.front() == kHandshakeRecord || (!server && bytes.front() == kAlertRecord)) return;
  peer_is_plain_ = true;
  fail(std::string(server ? "the client" : "the server") + " does not speak TLS; it sent " +
       quoted(bytes));
}

void Stream::receive_end() {
  closed_in_handshake_ = state_ == State::kHandshake;
  if (closed_in_handshake_) fail("the connection was closed during the TLS handshake");
  if (state_ == State::kOpen) state_ = State::kEnded;
}

void Stream::continue_handshake() {
  ERR_clear_error();
  if (succeeded(SSL_do_handshake(ssl_.get()))) state_ = State::kOpen;
  take_output();
}

std::size_t Stream::read(std::span<char> into) {
  if (state_ != State::kOpen) return 0;
  ERR_clear_error();
  std::size_t count = 0;
  const bool got = succeeded(SSL_read_ex(ssl_.get(), into.data(), into.size(), &count));
  take_output();
  return got ? count : 0;
}

// A call that fails may only have to wait for more input.
bool Stream::succeeded(int result) {
  if (result == 1) return true;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      break;
    case SSL_ERROR_ZERO_RETURN:
      state_ = State::kEnded;
      break;
    default:
      fail(refusal_.empty() ? take_stream_error(ssl_.get()) : refusal_);
  }
  return false;
}

void Stream::fail(std::string why) {
  state_ = State::kFailed;
  error_ = std::move(why);
}

// --- To the peer ---------------------------------------------------------------------------------

std::size_t Stream::encrypt(std::string_view plaintext) {
  PAWL_ASSERT(!plaintext.empty() && plaintext.size() <= kRecordMax && output().empty());
  ERR_clear_error();
  std::size_t count = 0;
  // The output is in memory, so this never blocks.
  if (!succeeded(SSL_write_ex(ssl_.get(), plaintext.data(), plaintext.size(), &count))) count = 0;
  take_output();
  return count;
}

void Stream::close() {
  if (state_ == State::kHandshake || state_ == State::kFailed) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  take_output();
}

void Stream::take_output() {
  BIO* out = SSL_get_wbio(ssl_.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  if (size <= 0) return;
  output_.append(bytes, static_cast<std::size_t>(size));
  (void)BIO_reset(out);
}

void Stream::drop_output() {
  PAWL_ASSERT(sent_ == output_.size());
  output_.clear();
  sent_ = 0;
  if (output_.capacity() > kKeep) output_.shrink_to_fit();
}

}  // namespace pawl::tls
