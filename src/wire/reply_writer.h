// Encodes replies for RESP2 or RESP3.
//
//   wire::ReplyWriter reply(out, Protocol::kResp3);
//   reply.map(2);
//   reply.field("token", 34);
//   reply.field_null("slot");
//
// The differences:
//                     RESP3            RESP2
//   map(n)            %n               *2n, a flat array of pairs
//   push(n)           >n               *n
//   null()            _                $-1, the null that every client can read inside an array
//   not_obtained()    _                *-1, like BLPOP after its timeout
//   boolean(b)        #t #f            :1 :0
//   real(d)           ,d               bulk string
//   verbatim(text)    =n txt:          bulk string
//
// It only appends to `out`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/error_code.h"

namespace pawl::wire {

enum class Protocol : std::uint8_t { kResp2 = 2, kResp3 = 3 };

class ReplyWriter {
 public:
  ReplyWriter(std::string& out, Protocol protocol) : out_(out), protocol_(protocol) {}

  [[nodiscard]] Protocol protocol() const { return protocol_; }

  // CR and LF in simple strings and errors become spaces.
  void simple(std::string_view text);
  void ok() { out_.append("+OK\r\n"); }
  void error(ErrorCode code, std::string_view text);
  void error(const WireError& error) { this->error(error.code, error.text); }
  void integer(std::int64_t value);
  void bulk(std::string_view bytes);
  void null();
  void not_obtained();
  void boolean(bool value);
  void real(double value);
  void verbatim(std::string_view text);

  // Appends bytes that already are a reply in this protocol.
  void raw(std::string_view reply) { out_.append(reply); }

  // Headers: the caller writes the items that they announce (a map: key, value, key, value, …).
  void array(std::size_t items) { header('*', items); }
  void map(std::size_t pairs);
  void push(std::size_t items);

  // One pair of a map.
  void field(std::string_view key, std::string_view text) { bulk(key), bulk(text); }
  void field(std::string_view key, const char* text) { bulk(key), bulk(text); }
  void field(std::string_view key, std::int64_t value) { bulk(key), integer(value); }
  void field(std::string_view key, std::uint64_t value) {
    field(key, static_cast<std::int64_t>(value));
  }
  void field(std::string_view key, int value) { field(key, std::int64_t{value}); }
  void field(std::string_view key, std::uint32_t value) { field(key, std::int64_t{value}); }
  void field(std::string_view key, bool value) { bulk(key), boolean(value); }
  void field_null(std::string_view key) { bulk(key), null(); }

 private:
  void header(char mark, std::uint64_t number);
  void line(std::string_view text);

  std::string& out_;
  Protocol protocol_;
};

}  // namespace pawl::wire
