// What a client sends to a gate: it is refused, or it has one meaning. What would be forwarded is
// read back as the same request, and how the bytes of a body were cut makes no difference.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "base/assert.h"
#include "gate/http1.h"
#include "gate/mark_file.h"
#include "gate/resource_pattern.h"
#include "guard_contract/parse.h"

namespace {

using namespace pawl::gate;

// The payload, and what follows the body; "refused" or "more".
std::string read_body(const Framing& framing, std::string_view bytes, std::size_t step) {
  BodyReader body(framing, BodyReader::Reads::kRequest);
  std::string input, payload;
  while (!bytes.empty() && !body.done()) {
    const auto count = std::min(step, bytes.size());
    input += bytes.substr(0, count);
    bytes.remove_prefix(count);
    if (!body.read(input, payload)) return "refused";
  }
  return body.done() ? payload + "|" + input + std::string(bytes) : "more";
}

void check_forwarded(const RequestHead& head) {
  Headers headers = end_to_end(head.headers);
  headers.push_back({"Connection", "close"});
  headers.push_back({"Content-Length", "7"});
  const std::string text = head_text(head.method + " " + head.target + " HTTP/1.1", headers);
  PAWL_ASSERT(head_end(text) == text.size());
  const auto parsed = parse_request(text);
  const auto* again = std::get_if<RequestHead>(&parsed);
  // Our two headers may be one too many.
  if (again == nullptr) return PAWL_ASSERT(headers.size() >= 128);
  PAWL_ASSERT(again->method == head.method && again->target == head.target);
  PAWL_ASSERT(again->body.type == Framing::Type::kLength && again->body.length == 7);
  PAWL_ASSERT(only_value(again->headers, "X-Fencing-Token") ==
              only_value(head.headers, "X-Fencing-Token"));
}

void check_path(const RequestHead& head) {
  const auto path = canonical_path(head.target);
  if (!path) return;
  PAWL_ASSERT(*canonical_path(*path) == *path);
  PAWL_ASSERT(path->find("//") == std::string::npos && path->find("/../") == std::string::npos);
  static const auto pattern = *ResourcePattern::parse("path:/{any}");
  const auto resource = pattern.match(*path);
  PAWL_ASSERT(resource.has_value() == (*path != "/"));
  PAWL_ASSERT(!resource || path->starts_with(*resource));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)parse_marks(bytes);
  const auto end = head_end(bytes);
  if (!end) return 0;
  (void)parse_response(bytes.substr(0, *end), false);
  const auto parsed = parse_request(bytes.substr(0, *end));
  const auto* head = std::get_if<RequestHead>(&parsed);
  if (head == nullptr) return 0;
  if (const auto token = only_value(head->headers, "X-Fencing-Token"))
    PAWL_ASSERT(pawl::guard::parse_token(*token).value_or(1) > 0);
  check_forwarded(*head);
  check_path(*head);
  const std::string whole = read_body(head->body, bytes.substr(*end), size);
  PAWL_ASSERT(whole == read_body(head->body, bytes.substr(*end), 1));
  return 0;
}
