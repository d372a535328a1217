#include "guard/s3/envelope.h"

#include <fmt/format.h>

#include "aws/sigv4.h"
#include "base/limits.h"
#include "guard_contract/parse.h"

namespace pawl::guard {
namespace {

constexpr std::string_view kFirstLine = "pawl-fenced-object 1\n";
constexpr std::size_t kNonceDigits = 32;

std::string_view equal_text(Equal equal) {
  switch (equal) {
    case Equal::kAccept:
      return "accept";
    case Equal::kOnce:
      return "once";
    case Equal::kRefuse:
      return "refuse";
  }
  return "";
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string content_text(const S3Content& content) {
  switch (content.place) {
    case S3Content::Place::kNone:
      return "none";
    case S3Content::Place::kInline:
      return fmt::format("inline {} {}", content.size, content.sha256);
    case S3Content::Place::kObject:
      return fmt::format("object {} {} {}", content.size, content.sha256, content.object);
  }
  return "";
}

// Takes the text apart line by line; the first thing that is wrong ends it.
class EnvelopeReader {
 public:
  explicit EnvelopeReader(std::string_view lines) : rest_(lines) {}

  // The value of the next line, which must be `name VALUE`.
  std::string_view line(std::string_view name) {
    const std::size_t end = rest_.find('\n');
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != ' ')
      return fail(name);
    return text.substr(name.size() + 1);
  }
  std::uint64_t number(std::string_view name) {
    const auto value = parse_count(line(name));
    if (!value) fail(name);
    return value.value_or(0);
  }
  std::string_view fail(std::string_view name) {
    if (failed_.empty()) failed_ = name;
    return {};
  }
  [[nodiscard]] std::string_view failed() const { return failed_; }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::string_view failed_;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t space = text.find(' ');
    words.push_back(text.substr(0, space));
    if (space == text.npos) return words;
    text.remove_prefix(space + 1);
  }
}

void read_nonces(EnvelopeReader& reader, S3Envelope& envelope) {
  for (const std::string_view word : words_of(reader.line("nonces"))) {
    if (!is_hex(word, kNonceDigits)) reader.fail("nonces");
    envelope.nonces.emplace_back(word);
  }
  if (envelope.nonces.size() > limits::kFencedNoncesMax) reader.fail("nonces");
}

void read_content(EnvelopeReader& reader, S3Content& content) {
  const std::string_view text = reader.line("content");
  if (text == "none") return;
  const auto words = words_of(text.substr(0, text.find('\n')));
  const bool at_object = words.front() == "object";
  if (words.size() < (at_object ? 4U : 3U) || (!at_object && words.front() != "inline")) {
    reader.fail("content");
    return;
  }
  const auto size = parse_count(words[1]);
  if (!size || *size > limits::kFencedContentMax || !is_hex(words[2], 64)) {
    reader.fail("content");
    return;
  }
  content.place = at_object ? S3Content::Place::kObject : S3Content::Place::kInline;
  content.size = *size;
  content.sha256 = words[2];
  // A key may contain spaces: it is all that is left.
  if (at_object)
    content.object = text.substr(words[0].size() + words[1].size() + words[2].size() + 3);
}

void read_policy(EnvelopeReader& reader, S3Policy& policy) {
  const auto mode = parse_mode(reader.line("mode"));
  if (!mode) reader.fail("mode");
  policy.mode = mode.value_or(GuardMode::kEnforce);
  const std::uint64_t percent = reader.number("percent");
  if (percent < 1 || percent > 100) reader.fail("percent");
  policy.percent = static_cast<int>(percent % 101);
  const std::string_view require = reader.line("require_token");
  if (require != "on" && require != "off") reader.fail("require_token");
  policy.require_token = require == "on";
  const auto equal = parse_equal(reader.line("equal"));
  if (!equal) reader.fail("equal");
  policy.equal = equal.value_or(Equal::kAccept);
  policy.max_step = reader.number("max_step");
  if (policy.max_step > limits::kTokenMax) reader.fail("max_step");
  policy.floor = reader.number("floor");
  if (policy.floor > limits::kTokenMax) reader.fail("floor");
}

Error not_fenced(std::string why) {
  return {Code::kInvalid, std::move(why)};
}

}  // namespace

std::optional<Equal> parse_equal(std::string_view text) {
  for (const Equal equal : {Equal::kAccept, Equal::kOnce, Equal::kRefuse}) {
    if (equal_text(equal) == text) return equal;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  if (text.empty() || text.size() > 19 || (text.front() == '0' && text.size() > 1))
    return std::nullopt;
  std::uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

std::string to_bytes(const S3Envelope& envelope) {
  std::string text(kFirstLine);
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{} {}\n", name, value);
  };
  std::string nonces;
  for (const std::string& nonce : envelope.nonces) nonces += (nonces.empty() ? "" : " ") + nonce;
  const S3Policy& policy = envelope.policy;
  add("key", envelope.key);
  add("sequence", std::to_string(envelope.sequence));
  add("nonces", nonces);
  add("token", std::to_string(envelope.token));
  add("operation", envelope.operation ? std::to_string(*envelope.operation) : "none");
  add("content", content_text(envelope.content));
  add("mode", to_text(policy.mode));
  add("percent", std::to_string(policy.percent));
  add("require_token", policy.require_token ? "on" : "off");
  add("equal", equal_text(policy.equal));
  add("max_step", std::to_string(policy.max_step));
  add("floor", std::to_string(policy.floor));
  text += '\n';
  if (envelope.content.place == S3Content::Place::kInline) text += envelope.content.bytes;
  return text;
}

Result<S3Envelope> parse_envelope(std::string_view bytes) {
  if (!bytes.starts_with(kFirstLine)) {
    if (bytes.starts_with("pawl-fenced-object "))
      return not_fenced("it is a fenced object of a newer version; use a newer pawl");
    return not_fenced("it is not a fenced object");
  }
  EnvelopeReader reader(bytes.substr(kFirstLine.size()));
  S3Envelope envelope;
  envelope.key = reader.line("key");
  envelope.sequence = reader.number("sequence");
  read_nonces(reader, envelope);
  envelope.token = reader.number("token");
  if (envelope.token > limits::kTokenMax) reader.fail("token");
  const std::string_view operation = reader.line("operation");
  if (operation != "none") {
    envelope.operation = parse_count(operation);
    if (!envelope.operation || *envelope.operation > limits::kTokenMax) reader.fail("operation");
  }
  read_content(reader, envelope.content);
  read_policy(reader, envelope.policy);
  if (!reader.failed().empty())
    return not_fenced(fmt::format("it is damaged: its line `{}` is missing, out of order or wrong",
                                  reader.failed()));
  const std::string_view rest = reader.rest();
  if (!rest.starts_with('\n')) return not_fenced("it is damaged: no empty line ends its header");
  S3Content& content = envelope.content;
  content.bytes = rest.substr(1);
  const bool within = content.place == S3Content::Place::kInline;
  if (content.bytes.size() != (within ? content.size : 0) ||
      (within && aws::sha256_hex(content.bytes) != content.sha256))
    return not_fenced("it is damaged: its content is not the one that its header tells");
  return envelope;
}

}  // namespace pawl::guard
