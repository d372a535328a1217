#include "cli/lock_pages.h"

namespace pawl::cli {

Result<void> each_lock_page(Console& console, const std::string& prefix,
                            const std::function<Result<void>(const LockPage&)>& take) {
  std::string cursor = "0";
  do {
    std::vector<std::string> words{"LOCKS", "CURSOR", cursor, "COUNT", "500"};
    if (!prefix.empty()) words.insert(words.end(), {"PREFIX", prefix});
    const auto reply = console.ask(words);
    if (!reply) return reply.error();
    if (reply->items.size() != 2)
      return Error{Code::kUnknown, "protocol error: LOCKS did not answer a page"};
    if (auto taken = take(reply->items[1].items); !taken) return taken;
    const wire::Value& next = reply->items[0];
    cursor = next.as_text() ? std::string(*next.as_text())
                            : std::to_string(next.as_integer().value_or(0));
  } while (cursor != "0");
  return {};
}

}  // namespace pawl::cli
