#include "wire/command_writer.h"

#include <charconv>

#include "base/hex.h"
#include "wire/acquire_options.h"

namespace pawl::wire {
namespace {

void append_header(std::string& out, char mark, std::uint64_t number) {
  char raw[24];
  const char* end = std::to_chars(raw, raw + sizeof(raw), number).ptr;
  out.push_back(mark);
  out.append(raw, static_cast<std::size_t>(end - raw));
  out.append("\r\n");
}

void append_bulk(std::string& out, std::string_view bytes) {
  append_header(out, '$', bytes.size());
  out.append(bytes);
  out.append("\r\n");
}

void append_lease(std::string& out, LeaseId lease) {
  char digits[kLeaseDigits];
  write_hex(lease, digits);
  append_bulk(out, {digits, kLeaseDigits});
}

// Arguments whose number is known only at the end.
class Frame {
 public:
  explicit Frame(std::string_view verb) { word(verb); }

  void word(std::string_view text) {
    append_bulk(body_, text);
    ++args_;
  }
  void option(std::string_view name, std::string_view text) { word(name), word(text); }
  void option(std::string_view name, std::uint64_t number) {
    char raw[24];
    const char* end = std::to_chars(raw, raw + sizeof(raw), number).ptr;
    option(name, std::string_view(raw, static_cast<std::size_t>(end - raw)));
  }

  void append_to(std::string& out) const {
    append_header(out, '*', args_);
    out.append(body_);
  }

 private:
  std::string body_;
  std::size_t args_ = 0;
};

void append_option(Frame& frame, const AcquireOption& option, const AcquireSpec& spec) {
  switch (option.kind) {
    case OptionKind::kMillis:
    case OptionKind::kNumber:
      if (const auto number = option.get(spec)) frame.option(option.word, *number);
      return;
    case OptionKind::kFlag:
      if (option.get(spec)) frame.word(option.word);
      return;
    case OptionKind::kText:
    case OptionKind::kRequestId:
      if (const auto text = spec.*option.text; !text.empty()) frame.option(option.word, text);
      return;
    case OptionKind::kMeta:
      for (const MetaPair& pair : spec.meta) {
        frame.option(option.word, pair.key);
        frame.word(pair.value);
      }
      return;
  }
}

}  // namespace

void append_command(std::string& out, std::span<const std::string_view> args) {
  append_header(out, '*', args.size());
  for (const std::string_view arg : args) append_bulk(out, arg);
}

void append_command(std::string& out, std::initializer_list<std::string_view> args) {
  append_command(out, std::span(args.begin(), args.size()));
}

void append_acquire(std::string& out, const AcquireSpec& spec) {
  PAWL_ASSERT(!spec.locks.empty());
  Frame frame("ACQUIRE");
  frame.word(spec.locks[0]);
  for (std::size_t i = 1; i < spec.locks.size(); ++i) frame.option("AND", spec.locks[i]);
  for (const AcquireOption& option : acquire_options()) append_option(frame, option, spec);
  frame.append_to(out);
}

void append_renew(std::string& out, LeaseId lease) {
  out.append("*2\r\n$5\r\nRENEW\r\n");
  append_lease(out, lease);
}

void append_renew_asks(std::string& out, LeaseId lease) {
  out.append("*3\r\n$5\r\nRENEW\r\n");
  append_lease(out, lease);
  append_bulk(out, "ASKS");
}

void append_mrenew(std::string& out, std::span<const LeaseId> leases) {
  append_header(out, '*', leases.size() + 2);
  append_bulk(out, "MRENEW");
  append_bulk(out, "ASKS");
  for (const LeaseId lease : leases) append_lease(out, lease);
}

void append_release(std::string& out, LeaseId lease) {
  out.append("*2\r\n$7\r\nRELEASE\r\n");
  append_lease(out, lease);
}

void append_cancel(std::string& out, std::string_view request) {
  append_command(out, {"CANCEL", request});
}

}  // namespace pawl::wire
