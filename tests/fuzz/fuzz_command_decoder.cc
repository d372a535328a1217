// What a client sends: however the bytes are cut into reads, the same requests come out and the
// same error ends them, and every reply to them can be read back.
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/limits.h"
#include "server/verbs/lease_verbs.h"
#include "server/verbs/table.h"
#include "tests/fuzz/chunks.h"
#include "wire/acquire_options.h"
#include "wire/arg_reader.h"
#include "wire/command_decoder.h"
#include "wire/command_writer.h"
#include "wire/reply_decoder.h"

namespace pawl::fuzz {
namespace {

using wire::DecodeStatus;
using wire::Protocol;

// A line per command: its arguments by length and content, and what the parser made of them.
class Transcript {
 public:
  void command(std::span<const std::string_view> args) {
    for (const std::string_view arg : args) {
      text_ += std::to_string(arg.size());
      text_ += ':';
      text_ += arg;
    }
    if (!args.empty()) request(args);
    text_ += '\n';
  }
  void error(const wire::DecodedCommand& command) {
    text_ += to_text(command.error);
    text_ += command.message;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void request(std::span<const std::string_view> args) {
    const server::Verb* verb = server::find_verb(args.front());
    if (verb == nullptr) return answer(server::unknown_command(args));
    if (const auto error = server::check_arguments(*verb, args, {.protocol = Protocol::kResp3}))
      return answer(*error);
    text_ += verb->name;
    if (verb == &server::kAcquire) acquire(parse_acquire(args));
  }

  static AcquireSpec parse_acquire(std::span<const std::string_view> args) {
    wire::ArgReader in(server::kAcquire.syntax(), args);
    AcquireSpec spec;
    wire::parse_acquire(in, spec, limits::kTtlMaxDefault, Protocol::kResp3);
    PAWL_ASSERT(in.ok());
    return spec;
  }

  // What is accepted survives being written and parsed again.
  void acquire(const AcquireSpec& spec) {
    std::string bytes;
    wire::append_acquire(bytes, spec);
    text_ += bytes;
    wire::CommandDecoder decoder;
    const auto command = decoder.decode(bytes);
    PAWL_ASSERT(command.status == DecodeStatus::kComplete && command.consumed == bytes.size());
    std::string twice;
    wire::append_acquire(twice, parse_acquire(command.args));
    PAWL_ASSERT(twice == bytes);
  }

  void answer(const wire::WireError& error) {
    std::string bytes;
    wire::ReplyWriter(bytes, Protocol::kResp2).error(error);
    const auto reply = wire::ReplyDecoder().decode(bytes);
    PAWL_ASSERT(reply.status == DecodeStatus::kComplete && reply.consumed == bytes.size() &&
                reply.value.is_error());
    text_ += bytes;
  }

  std::string text_;
};

std::string transcript(std::string_view bytes, Cut cut) {
  Transcript seen;
  wire::CommandDecoder decoder;
  Chunks chunks(cut, bytes);
  std::string unread;
  while (!bytes.empty()) {
    const std::size_t piece = chunks.next(bytes.size());
    unread.append(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    for (;;) {
      // A copy of exactly this size, so that a read past its end is seen, and the address changes.
      const auto buffer = std::make_unique<char[]>(unread.size());
      unread.copy(buffer.get(), unread.size());
      const auto command = decoder.decode({buffer.get(), unread.size()});
      if (command.status == DecodeStatus::kProtocolError) {
        seen.error(command);
        return seen.text();
      }
      if (command.status == DecodeStatus::kNeedMore) break;
      PAWL_ASSERT(command.consumed > 0 && command.consumed <= limits::kFrameMax);
      seen.command(command.args);
      unread.erase(0, command.consumed);
    }
    PAWL_ASSERT(unread.size() <
                limits::kFrameMax);  // A connection never has to keep more than one frame.
  }
  return seen.text();
}

}  // namespace
}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using pawl::fuzz::Cut;
  using pawl::fuzz::transcript;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = transcript(bytes, Cut::kWhole);
  PAWL_ASSERT(transcript(bytes, Cut::kMixed) == whole);
  if (size <= 4096) PAWL_ASSERT(transcript(bytes, Cut::kBytes) == whole);
  return 0;
}
