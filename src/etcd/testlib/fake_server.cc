#include "etcd/testlib/fake_server.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "etcd/grpc.h"

namespace pawl::etcd {
namespace {

nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

struct FakeServer::Session {
  struct Stream {
    std::map<std::string, std::string> headers = {};
    FrameReader frames{limits::kEtcdAnswerMax};
    bool answered = false;  // Its headers were sent.
    std::string unsent = {};
    bool ends = false;
    std::vector<std::pair<std::string, std::string>> trailers = {};
  };

  Session() {
    nghttp2_session_callbacks* callbacks = nullptr;
    PAWL_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
    PAWL_ASSERT(nghttp2_session_server_new(&native, callbacks, this) == 0);
    nghttp2_session_callbacks_del(callbacks);
    PAWL_ASSERT(nghttp2_submit_settings(native, NGHTTP2_FLAG_NONE, nullptr, 0) == 0);
  }
  ~Session() { nghttp2_session_del(native); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static Session& of(void* data) { return *static_cast<Session*>(data); }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* data) {
    const std::string key(reinterpret_cast<const char*>(name), name_size);
    of(data).streams[frame->hd.stream_id].headers[key] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* data) {
    Session& session = of(data);
    Stream& stream = session.streams[id];
    std::vector<std::string> messages;
    PAWL_ASSERT(stream.frames.receive({reinterpret_cast<const char*>(bytes), size}, messages));
    for (std::string& message : messages)
      session.calls.push_back({id, stream.headers[":path"], stream.headers, std::move(message)});
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    if (frame->hd.type == NGHTTP2_RST_STREAM) of(data).cancelled.push_back(frame->hd.stream_id);
    return 0;
  }

  static ssize_t read_body(nghttp2_session* native, std::int32_t id, std::uint8_t* into,
                           std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                           void* data) {
    Stream& stream = of(data).streams[id];
    if (stream.unsent.empty() && !stream.ends) return NGHTTP2_ERR_DEFERRED;
    const std::size_t count = std::min(size, stream.unsent.size());
    std::memcpy(into, stream.unsent.data(), count);
    stream.unsent.erase(0, count);
    if (stream.unsent.empty() && stream.ends) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        std::vector<nghttp2_nv> trailers;
        for (const auto& [name, value] : stream.trailers) trailers.push_back(header(name, value));
        PAWL_ASSERT(nghttp2_submit_trailer(native, id, trailers.data(), trailers.size()) == 0);
      }
    }
    return static_cast<ssize_t>(count);
  }

  void respond(std::int32_t id, std::string_view http_status = "200") {
    Stream& stream = streams[id];
    if (std::exchange(stream.answered, true)) {
      nghttp2_session_resume_data(native, id);
      return;
    }
    const nghttp2_nv headers[] = {header(":status", http_status),
                                  header("content-type", "application/grpc")};
    nghttp2_data_provider body{};
    body.read_callback = &read_body;
    // An error: the client has reset the stream meanwhile.
    nghttp2_submit_response(native, id, headers, std::size(headers), &body);
  }

  nghttp2_session* native = nullptr;
  std::map<std::int32_t, Stream> streams;
  std::vector<ReceivedCall> calls;
  std::vector<std::int32_t> cancelled;
};

FakeServer::FakeServer() : session_(std::make_unique<Session>()) {}
FakeServer::~FakeServer() = default;

void FakeServer::receive(std::string_view bytes) {
  const ssize_t taken = nghttp2_session_mem_recv(
      session_->native, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  PAWL_ASSERT(taken == static_cast<ssize_t>(bytes.size()));
}

std::string FakeServer::take_output() {
  std::string output;
  const std::uint8_t* bytes = nullptr;
  while (const ssize_t size = nghttp2_session_mem_send(session_->native, &bytes)) {
    PAWL_ASSERT(size > 0);
    output.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  return output;
}

std::vector<ReceivedCall> FakeServer::take_calls() {
  return std::exchange(session_->calls, {});
}

void FakeServer::answer(std::int32_t stream, std::string_view message, std::string_view code,
                        std::string_view text) {
  Session::Stream& found = session_->streams[stream];
  put_frame(found.unsent, message);
  found.ends = true;
  found.trailers = {{"grpc-status", std::string(code)}, {"grpc-message", std::string(text)}};
  session_->respond(stream);
}

void FakeServer::refuse(std::int32_t stream, std::string_view code, std::string_view text) {
  const nghttp2_nv headers[] = {header(":status", "200"),
                                header("content-type", "application/grpc"),
                                header("grpc-status", code), header("grpc-message", text)};
  nghttp2_submit_response(session_->native, stream, headers, std::size(headers), nullptr);
}

void FakeServer::send(std::int32_t stream, std::string_view message) {
  put_frame(session_->streams[stream].unsent, message);
  session_->respond(stream);
}

void FakeServer::answer_raw(std::int32_t stream, std::string_view bytes,
                            std::string_view http_status) {
  session_->streams[stream].unsent.append(bytes);
  session_->streams[stream].ends = true;
  session_->respond(stream, http_status);
}

void FakeServer::reset(std::int32_t stream) {
  nghttp2_submit_rst_stream(session_->native, NGHTTP2_FLAG_NONE, stream, NGHTTP2_INTERNAL_ERROR);
}

void FakeServer::go_away() {
  nghttp2_submit_goaway(session_->native, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_->native), NGHTTP2_NO_ERROR,
                        nullptr, 0);
}

const std::vector<std::int32_t>& FakeServer::cancelled() const {
  return session_->cancelled;
}

}  // namespace pawl::etcd
