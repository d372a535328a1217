#include "etcd/http2_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/assert.h"

namespace pawl::etcd {
namespace {

// Large enough that a page of a log comes without waiting for window updates.
constexpr std::uint32_t kStreamWindow = 16 * 1024 * 1024;
constexpr std::int32_t kConnectionWindow = 64 * 1024 * 1024;

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv header(std::string_view name, std::string_view value) {
  // nghttp2 copies both, and takes pointers to mutable bytes for the case that it should not.
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

struct Http2Connection::Session {
  struct Stream {
    explicit Stream(std::size_t answer_max) : frames(answer_max) {}
    std::string unsent;  // Of the request.
    std::size_t sent = 0;
    bool stays_open = false;
    FrameReader frames;
    std::string http_status;
    std::optional<std::uint32_t> code;
    std::string text;
    std::string fault;  // Why we have reset it.
    bool cancelled = false;
  };

  explicit Session(Options wanted);
  ~Session() { nghttp2_session_del(native); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Stream* find(std::int32_t id) {
    const auto found = streams.find(id);
    return found == streams.end() ? nullptr : &found->second;
  }
  void reset(std::int32_t id, Stream& stream, std::string why);
  void end_our_half(const nghttp2_frame* frame);
  void finish(std::int32_t id, GrpcStatus status);
  void fail(std::string why);

  static Session& of(void* data) { return *static_cast<Session*>(data); }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* data);
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* data);
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data);
  static int on_stream_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* data);
  static ssize_t read_request(nghttp2_session*, std::int32_t id, std::uint8_t* into,
                              std::size_t size, std::uint32_t* flags, nghttp2_data_source*,
                              void* data);

  const Options options;
  nghttp2_session* native = nullptr;
  std::map<std::int32_t, Stream> streams;
  std::vector<CallEvent> events;
  bool established = false;
  bool going_away = false;
  bool ended = false;
  std::string error;
};

Http2Connection::Session::Session(Options wanted) : options(std::move(wanted)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  PAWL_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &on_stream_close);
  PAWL_ASSERT(nghttp2_session_client_new(&native, callbacks, this) == 0);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 16 * 1024},
  };
  PAWL_ASSERT(nghttp2_submit_settings(native, NGHTTP2_FLAG_NONE, settings, std::size(settings)) ==
              0);
  PAWL_ASSERT(
      nghttp2_session_set_local_window_size(native, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0);
}

// --- Callbacks of libnghttp2 ---------------------------------------------------------------------

int Http2Connection::Session::on_header(nghttp2_session*, const nghttp2_frame* frame,
                                        const std::uint8_t* name, std::size_t name_size,
                                        const std::uint8_t* value, std::size_t value_size,
                                        std::uint8_t, void* data) {
  Stream* stream = of(data).find(frame->hd.stream_id);
  if (stream == nullptr) return 0;
  const std::string_view key = view_of(name, name_size);
  const std::string_view text = view_of(value, value_size);
  if (key == ":status") stream->http_status = text;
  if (key == "grpc-status") stream->code = read_grpc_code(text);
  if (key == "grpc-message") stream->text = read_grpc_text(text);
  return 0;
}

int Http2Connection::Session::on_data(nghttp2_session*, std::uint8_t, std::int32_t id,
                                      const std::uint8_t* bytes, std::size_t size, void* data) {
  Session& session = of(data);
  Stream* stream = session.find(id);
  // The body of another status is a page for people.
  if (stream == nullptr || stream->cancelled || !stream->fault.empty() ||
      stream->http_status != "200")
    return 0;
  std::vector<std::string> messages;
  const bool ok = stream->frames.receive(view_of(bytes, size), messages);
  for (std::string& message : messages) {
    session.events.push_back({.stream = {static_cast<std::uint64_t>(id)},
                              .kind = CallEvent::Kind::kMessage,
                              .message = std::move(message)});
  }
  if (!ok) session.reset(id, *stream, stream->frames.error());
  return 0;
}

int Http2Connection::Session::on_frame(nghttp2_session*, const nghttp2_frame* frame, void* data) {
  Session& session = of(data);
  if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
    session.established = true;
  if (frame->hd.type == NGHTTP2_GOAWAY) session.going_away = true;
  const bool has_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
  if (has_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) session.end_our_half(frame);
  return 0;
}

int Http2Connection::Session::on_stream_close(nghttp2_session*, std::int32_t id,
                                              std::uint32_t error, void* data) {
  Session& session = of(data);
  Stream* stream = session.find(id);
  if (stream == nullptr) return 0;
  GrpcStatus status{stream->code, stream->text};
  if (!stream->fault.empty()) {
    status = {std::nullopt, stream->fault};
  } else if (!status.code && error != NGHTTP2_NO_ERROR) {
    status.text = std::string("the stream was reset: ") + nghttp2_http2_strerror(error);
  } else if (!status.code) {
    status.text = "the server did not say how the call ended (HTTP status " +
                  (stream->http_status.empty() ? "missing" : stream->http_status) + ")";
  } else if (stream->frames.in_message()) {
    status = {std::nullopt, "the stream ended within a message"};
  }
  session.finish(id, std::move(status));
  return 0;
}

ssize_t Http2Connection::Session::read_request(nghttp2_session*, std::int32_t id,
                                               std::uint8_t* into, std::size_t size,
                                               std::uint32_t* flags, nghttp2_data_source*,
                                               void* data) {
  Stream* stream = of(data).find(id);
  if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  const std::size_t count = std::min(size, stream->unsent.size() - stream->sent);
  if (count == 0 && stream->stays_open) return NGHTTP2_ERR_DEFERRED;
  std::memcpy(into, stream->unsent.data() + stream->sent, count);
  stream->sent += count;
  if (stream->sent == stream->unsent.size()) {
    stream->unsent.clear();
    stream->sent = 0;
    if (!stream->stays_open) *flags |= NGHTTP2_DATA_FLAG_EOF;
  }
  return static_cast<ssize_t>(count);
}

// --- Ends ----------------------------------------------------------------------------------------

void Http2Connection::Session::reset(std::int32_t id, Stream& stream, std::string why) {
  stream.fault = std::move(why);
  PAWL_ASSERT(nghttp2_submit_rst_stream(native, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL) == 0);
}

// The server has ended the call: what is not sent yet has no receiver any more. Without this a
// stream that stays open would never be closed.
void Http2Connection::Session::end_our_half(const nghttp2_frame* frame) {
  const std::int32_t id = frame->hd.stream_id;
  const Stream* stream = find(id);
  if (stream == nullptr || (!stream->stays_open && stream->unsent.empty())) return;
  PAWL_ASSERT(nghttp2_submit_rst_stream(native, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR) == 0);
}

void Http2Connection::Session::finish(std::int32_t id, GrpcStatus status) {
  const auto found = streams.find(id);
  PAWL_ASSERT(found != streams.end());
  if (!found->second.cancelled) {
    events.push_back({.stream = {static_cast<std::uint64_t>(id)},
                      .kind = CallEvent::Kind::kEnded,
                      .status = std::move(status)});
  }
  streams.erase(found);
}

void Http2Connection::Session::fail(std::string why) {
  if (ended) return;
  ended = true;
  error = std::move(why);
  while (!streams.empty()) finish(streams.begin()->first, {std::nullopt, error});
}

// --- Http2Connection -----------------------------------------------------------------------------

Http2Connection::Http2Connection(Options options)
    : session_(std::make_unique<Session>(std::move(options))) {}

Http2Connection::~Http2Connection() = default;

bool Http2Connection::accepts_calls() const {
  return !session_->ended && !session_->going_away &&
         nghttp2_session_check_request_allowed(session_->native) != 0;
}

std::optional<StreamId> Http2Connection::start(const CallRequest& request) {
  if (!accepts_calls()) return std::nullopt;
  const std::string timeout = grpc_timeout(request.time);
  std::vector<nghttp2_nv> headers{
      header(":method", "POST"),
      header(":scheme", session_->options.tls ? "https" : "http"),
      header(":path", request.path),
      header(":authority", session_->options.authority),
      header("content-type", "application/grpc"),
      header("te", "trailers"),
      header("user-agent", "pawld"),
  };
  if (request.time > Nanos(0)) headers.push_back(header("grpc-timeout", timeout));
  for (const auto& [name, value] : request.metadata) headers.push_back(header(name, value));

  nghttp2_data_provider body{};
  body.read_callback = &Session::read_request;
  const std::int32_t id = nghttp2_submit_request(session_->native, nullptr, headers.data(),
                                                 headers.size(), &body, nullptr);
  if (id < 0) return std::nullopt;
  Session::Stream& stream =
      session_->streams.try_emplace(id, session_->options.answer_max).first->second;
  stream.stays_open = request.stays_open;
  put_frame(stream.unsent, request.message);
  return StreamId{static_cast<std::uint64_t>(id)};
}

void Http2Connection::send(StreamId stream, std::string_view message) {
  const auto id = static_cast<std::int32_t>(stream.value);
  Session::Stream* found = session_->find(id);
  if (found == nullptr || found->cancelled) return;
  PAWL_ASSERT(found->stays_open);
  put_frame(found->unsent, message);
  // An error: it is not deferred, so it will be read anyway.
  nghttp2_session_resume_data(session_->native, id);
}

void Http2Connection::cancel(StreamId stream) {
  const auto id = static_cast<std::int32_t>(stream.value);
  Session::Stream* found = session_->find(id);
  if (found == nullptr || found->cancelled) return;
  found->cancelled = true;
  PAWL_ASSERT(nghttp2_submit_rst_stream(session_->native, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL) ==
              0);
}

std::size_t Http2Connection::calls() const {
  return static_cast<std::size_t>(
      std::count_if(session_->streams.begin(), session_->streams.end(),
                    [](const auto& stream) { return !stream.second.cancelled; }));
}

bool Http2Connection::receive(std::string_view bytes) {
  if (session_->ended) return false;
  const ssize_t taken = nghttp2_session_mem_recv(
      session_->native, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (taken < 0) {
    session_->fail(std::string("the server broke HTTP/2: ") +
                   nghttp2_strerror(static_cast<int>(taken)));
  }
  return !session_->ended;
}

void Http2Connection::end(const std::string& why) {
  session_->fail(why);
}

std::string Http2Connection::take_output() {
  std::string output;
  while (!session_->ended) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_->native, &bytes);
    if (size < 0) {
      session_->fail(std::string("cannot send: ") + nghttp2_strerror(static_cast<int>(size)));
    }
    if (size <= 0) break;
    output.append(view_of(bytes, static_cast<std::size_t>(size)));
  }
  // The server broke a rule, and the output says so; or it has gone away.
  if (nghttp2_session_want_read(session_->native) == 0)
    session_->fail("HTTP/2 has ended the connection");
  return output;
}

std::vector<CallEvent> Http2Connection::take_events() {
  return std::exchange(session_->events, {});
}

bool Http2Connection::is_established() const {
  return session_->established && !session_->ended;
}

bool Http2Connection::is_finished() const {
  return session_->ended || (session_->going_away && session_->streams.empty());
}

const std::string& Http2Connection::error() const {
  return session_->error;
}

}  // namespace pawl::etcd
