// A server of gRPC without a socket, for tests of the client: it shows the calls that it received,
// and the test says how each is answered.
//
//   FakeServer server;
//   server.receive(bytes of the client);
//   for (ReceivedCall& call : server.take_calls()) server.answer(call.stream, message);
//   client.receive(server.take_output());
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::etcd {

// One message of a client; of a stream that stays open, each of them.
struct ReceivedCall {
  std::int32_t stream = 0;
  std::string path;
  std::map<std::string, std::string> headers;
  std::string message;
};

class FakeServer {
 public:
  FakeServer();
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  void receive(std::string_view bytes);
  [[nodiscard]] std::string take_output();
  [[nodiscard]] std::vector<ReceivedCall> take_calls();

  // A message, then the status in trailers.
  void answer(std::int32_t stream, std::string_view message, std::string_view code = "0",
              std::string_view text = "");
  // The status in the first headers, without a message.
  void refuse(std::int32_t stream, std::string_view code, std::string_view text);
  // A message of a stream that stays open.
  void send(std::int32_t stream, std::string_view message);
  // Bytes that need not be a frame, and the end of the stream without a status.
  void answer_raw(std::int32_t stream, std::string_view bytes,
                  std::string_view http_status = "200");
  void reset(std::int32_t stream);
  // No more calls; those under way go on.
  void go_away();
  // The streams that the client has reset.
  [[nodiscard]] const std::vector<std::int32_t>& cancelled() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace pawl::etcd
