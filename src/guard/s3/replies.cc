#include "guard/s3/replies.h"

#include <array>
#include <charconv>
#include <utility>

namespace pawl::guard {
namespace {

std::string decode_entities(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string decoded;
  while (!text.empty()) {
    bool known = false;
    for (const auto& [entity, character] : kEntities) {
      if (!text.starts_with(entity)) continue;
      decoded += character;
      text.remove_prefix(entity.size());
      known = true;
      break;
    }
    if (known) continue;
    decoded += text.front();
    text.remove_prefix(1);
  }
  return decoded;
}

// %XX, and + for a space, as encoding-type=url has them.
std::optional<std::string> decode_url(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+') {
      decoded += ' ';
    } else if (text[at] != '%') {
      decoded += text[at];
    } else {
      unsigned byte = 0;
      if (at + 2 >= text.size()) return std::nullopt;
      const char* digits = text.data() + at + 1;
      if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) return std::nullopt;
      decoded += static_cast<char>(byte);
      at += 2;
    }
  }
  return decoded;
}

// The content of the element that begins at or behind `from`, which is moved behind its end.
std::optional<std::string_view> next_element(std::string_view xml, std::string_view element,
                                             std::size_t& from) {
  const std::string open = "<" + std::string(element);
  const std::string close = "</" + std::string(element) + ">";
  for (std::size_t at = xml.find(open, from); at != xml.npos; at = xml.find(open, at + 1)) {
    const std::size_t after = at + open.size();
    // <Key> is not <KeyCount>, but <Key xmlns="…"> is <Key>.
    if (after >= xml.size() || (xml[after] != '>' && xml[after] != ' ' && xml[after] != '/'))
      continue;
    const std::size_t begin = xml.find('>', after);
    if (begin == xml.npos) return std::nullopt;
    if (xml[begin - 1] == '/') {
      from = begin + 1;
      return std::string_view{};
    }
    const std::size_t end = xml.find(close, begin);
    if (end == xml.npos) return std::nullopt;
    from = end + close.size();
    return xml.substr(begin + 1, end - begin - 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> xml_text(std::string_view xml, std::string_view element) {
  std::size_t from = 0;
  const auto found = next_element(xml, element, from);
  if (!found) return std::nullopt;
  return decode_entities(*found);
}

Result<S3ListPage> parse_list_page(std::string_view xml) {
  const Error wrong{Code::kInvalid, "the store answered a list that is not one"};
  std::size_t from = 0;
  if (!next_element(xml, "ListBucketResult", from)) return wrong;
  S3ListPage page;
  from = 0;
  while (const auto contents = next_element(xml, "Contents", from)) {
    const auto key = xml_text(*contents, "Key");
    const auto decoded = key ? decode_url(*key) : std::nullopt;
    if (!decoded) return wrong;
    page.keys.push_back(*decoded);
  }
  if (xml_text(xml, "IsTruncated") != "true") return page;
  page.next = xml_text(xml, "NextContinuationToken").value_or("");
  if (page.next.empty()) return wrong;
  return page;
}

}  // namespace pawl::guard
