// The XML that S3 answers with, as far as the guard reads it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl::guard {

// The text of the first element of that name, with entities decoded. Nothing: there is none.
[[nodiscard]] std::optional<std::string> xml_text(std::string_view xml, std::string_view element);

// One page of ListObjectsV2, asked for with encoding-type=url.
struct S3ListPage {
  std::vector<std::string> keys;
  std::string next = {};  // the continuation token; empty: this was the last page
};
// kInvalid: it is not such a page.
[[nodiscard]] Result<S3ListPage> parse_list_page(std::string_view xml);

}  // namespace pawl::guard
