// The configuration file.
#include <fmt/format.h>

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>
#include <vector>

#include "pawld/options.h"

namespace pawl::pawld {
namespace {

// One reader per key. It returns what was expected if the value is something else.
using Reader = std::function<std::optional<std::string>(const toml::node&, Config&)>;
struct Key {
  std::string_view name;
  Reader read;
};

std::optional<std::string> expected(std::string_view range) {
  return fmt::format("expected {}", range);
}

bool is_one_line(const std::string& text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !text.empty() && std::none_of(text.begin(), text.end(), is_control);
}

Reader text(std::function<std::string&(Config&)> field) {
  return [field = std::move(field)](const toml::node& node,
                                    Config& config) -> std::optional<std::string> {
    const auto value = node.value_exact<std::string>();
    if (!value || !is_one_line(*value)) return expected("a text of one line");
    field(config) = *value;
    return std::nullopt;
  };
}

// The path of a file; empty: none.
Reader path(std::function<std::string&(Config&)> field) {
  return [read = text(field), field](const toml::node& node,
                                     Config& config) -> std::optional<std::string> {
    if (node.value_exact<std::string>() != "") return read(node, config);
    field(config).clear();
    return std::nullopt;
  };
}

std::optional<std::string> read_http_listen(const toml::node& node, Config& config) {
  if (node.value_exact<std::string>() != "") return text(&Config::http)(node, config);
  config.http = kHttpOff;
  return std::nullopt;
}

// Names only: a name with a port, or a URL, would never match.
std::optional<std::string> read_hosts(const toml::node& node, Config& config) {
  const std::string wanted = "expected an array of host names, without scheme and port";
  const toml::array* names = node.as_array();
  if (names == nullptr) return wanted;
  config.http_hosts.clear();
  for (const toml::node& entry : *names) {
    const auto name = entry.value_exact<std::string>();
    if (!name || !is_one_line(*name) ||
        name->find_first_of(name->starts_with('[') ? "/ " : ":/ ") != std::string::npos)
      return wanted;
    config.http_hosts.push_back(*name);
  }
  return std::nullopt;
}

Reader flag(std::function<bool&(Config&)> field) {
  return [field = std::move(field)](const toml::node& node,
                                    Config& config) -> std::optional<std::string> {
    const auto value = node.value_exact<bool>();
    if (!value) return expected("true or false");
    field(config) = *value;
    return std::nullopt;
  };
}

template <class Number>
Reader number(Number store::journal::Settings::*field, std::int64_t least, std::int64_t most) {
  return [=](const toml::node& node, Config& config) -> std::optional<std::string> {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      return expected(fmt::format("a whole number, {} to {}", least, most));
    config.journal.*field = static_cast<Number>(*value);
    return std::nullopt;
  };
}

Reader limit(std::uint64_t MemoryLimits::*field) {
  return [=](const toml::node& node, Config& config) -> std::optional<std::string> {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 1 || *value > kMost)
      return expected(fmt::format("a whole number, 1 to {}", kMost));
    config.limits.*field = static_cast<std::uint64_t>(*value);
    return std::nullopt;
  };
}

std::optional<std::string> read_log_format(const toml::node& node, Config& config) {
  const auto value = node.value_exact<std::string>();
  if (value != "text" && value != "json") return expected("\"text\" or \"json\"");
  config.log_format = value == "json" ? LogFormat::kJson : LogFormat::kText;
  return std::nullopt;
}

std::optional<std::string> read_store(const toml::node& node, Config& config) {
  const auto kind = parse_store(node.value_exact<std::string>().value_or(""));
  if (!kind) return expected("\"journal\" or \"etcd\" (or, for tests, \"memory\")");
  config.store = *kind;
  return std::nullopt;
}

std::optional<std::string> read_role_ttl(const toml::node& node, Config& config) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || Millis(*value) < kRoleTtlMin || Millis(*value) > kRoleTtlMax) {
    return expected(
        fmt::format("milliseconds, {} to {}", kRoleTtlMin.count(), kRoleTtlMax.count()));
  }
  config.etcd.role_ttl = Millis(*value);
  return std::nullopt;
}

std::optional<std::string> read_quota(const toml::node& node, Config& config) {
  constexpr std::int64_t kLeast = std::int64_t{16} << 20, kMost = std::int64_t{1} << 40;
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < kLeast || *value > kMost)
    return expected(fmt::format("a whole number, {} to {}", kLeast, kMost));
  config.etcd.quota_bytes = static_cast<std::uint64_t>(*value);
  return std::nullopt;
}

std::optional<std::string> read_max_ttl(const toml::node& node, Config& config) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || Millis(*value) < limits::kTtlMin || Millis(*value) > limits::kTtlMaxCeiling) {
    return expected(fmt::format("milliseconds, {} to {}", limits::kTtlMin.count(),
                                limits::kTtlMaxCeiling.count()));
  }
  config.max_ttl = Millis(*value);
  return std::nullopt;
}

std::optional<std::string> read_max_delay(const toml::node& node, Config& config) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0 || Millis(*value) > limits::kDelayMax)
    return expected(fmt::format("milliseconds, 0 to {}", limits::kDelayMax.count()));
  config.max_delay = Millis(*value);
  return std::nullopt;
}

std::optional<std::string> read_wait(const toml::node& node, Config& config) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0 || Millis(*value) > kWaitMax)
    return expected(fmt::format("milliseconds, 0 to {}", kWaitMax.count()));
  config.wait = Millis(*value);
  return std::nullopt;
}

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

const std::vector<Key>& top_keys() {
  static const std::vector<Key> keys{
      {"data", text([](Config& c) -> std::string& { return c.data; })},
      {"resp", text([](Config& c) -> std::string& { return c.resp; })},
      {"log_format", read_log_format},
      {"store", read_store},
      {"auth_file", path([](Config& c) -> std::string& { return c.auth_file; })},
      {"insecure", flag([](Config& c) -> bool& { return c.insecure; })},
      {"must_exist", flag([](Config& c) -> bool& { return c.journal.must_exist; })},
      {"max_ttl_ms", read_max_ttl},
      {"max_delay_ms", read_max_delay},
      {"wait_ms", read_wait},
  };
  return keys;
}

const std::vector<Key>& http_keys() {
  static const std::vector<Key> keys{
      {"listen", read_http_listen},
      {"hosts", read_hosts},
  };
  return keys;
}

struct LimitKey {
  std::string_view name;
  std::uint64_t MemoryLimits::*field;
};
constexpr std::array kLimits{
    LimitKey{"leases", &MemoryLimits::leases},
    LimitKey{"lease_bytes", &MemoryLimits::lease_bytes},
    LimitKey{"waiters", &MemoryLimits::waiters},
    LimitKey{"observers", &MemoryLimits::observers},
    LimitKey{"history_bytes", &MemoryLimits::history_bytes},
    LimitKey{"output_bytes", &MemoryLimits::output_bytes},
    LimitKey{"leases_per_user", &MemoryLimits::leases_per_user},
    LimitKey{"lease_bytes_per_user", &MemoryLimits::lease_bytes_per_user},
    LimitKey{"waiters_per_user", &MemoryLimits::waiters_per_user},
    LimitKey{"observers_per_user", &MemoryLimits::observers_per_user},
};

const std::vector<Key>& limit_keys() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all;
    for (const LimitKey& key : kLimits) all.push_back({key.name, limit(key.field)});
    return all;
  }();
  return keys;
}

const std::vector<Key>& journal_keys() {
  using store::journal::Settings;
  static const std::vector<Key> keys{
      {"segment_bytes", number(&Settings::segment_bytes,
                               static_cast<std::int64_t>(store::journal::kSegmentBytesMin), kGiB)},
      {"spare_segments", number(&Settings::spare_segments, 0, 16)},
      {"checkpoint_after", number(&Settings::checkpoint_after, 1, 1000)},
      {"space_reserve_bytes", number(&Settings::space_reserve, 0, 1024 * kGiB)},
  };
  return keys;
}

const std::vector<Key>& etcd_keys() {
  static const std::vector<Key> keys{
      {"endpoints", path([](Config& c) -> std::string& { return c.etcd.endpoints; })},
      {"cluster", text([](Config& c) -> std::string& { return c.etcd.cluster; })},
      {"advertise", path([](Config& c) -> std::string& { return c.etcd.advertise; })},
      {"role_ttl_ms", read_role_ttl},
      {"user", path([](Config& c) -> std::string& { return c.etcd.user; })},
      {"password_file", path([](Config& c) -> std::string& { return c.etcd.password_file; })},
      {"tls", flag([](Config& c) -> bool& { return c.etcd.tls; })},
      {"tls_ca", path([](Config& c) -> std::string& { return c.etcd.files.ca; })},
      {"tls_cert", path([](Config& c) -> std::string& { return c.etcd.files.cert; })},
      {"tls_key", path([](Config& c) -> std::string& { return c.etcd.files.key; })},
      {"compaction", flag([](Config& c) -> bool& { return c.etcd.compaction; })},
      {"quota_bytes", read_quota},
  };
  return keys;
}

const std::vector<Key>& tls_keys() {
  static const std::vector<Key> keys{
      {"cert", path([](Config& c) -> std::string& { return c.tls.cert; })},
      {"key", path([](Config& c) -> std::string& { return c.tls.key; })},
      {"client_ca", path([](Config& c) -> std::string& { return c.tls.client_ca; })},
  };
  return keys;
}

// The tables of the file, by name.
const std::vector<Key>* keys_of_table(std::string_view name) {
  if (name == "etcd") return &etcd_keys();
  if (name == "http") return &http_keys();
  if (name == "journal") return &journal_keys();
  if (name == "limits") return &limit_keys();
  if (name == "tls") return &tls_keys();
  return nullptr;
}

Result<void> read_table(const toml::table& table, const std::vector<Key>& keys,
                        const std::string& path, const std::string& prefix, Config& config) {
  for (const auto& [name, node] : table) {
    const auto line = node.source().begin.line;
    const std::vector<Key>* inner =
        prefix.empty() && node.is_table() ? keys_of_table(name.str()) : nullptr;
    if (inner != nullptr) {
      const std::string inner_prefix = std::string(name.str()) + ".";
      if (auto read = read_table(*node.as_table(), *inner, path, inner_prefix, config); !read)
        return read;
      continue;
    }
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&, n = name.str()](const Key& k) { return k.name == n; });
    if (key == keys.end()) {
      return Error{Code::kInvalid,
                   fmt::format("{}:{}: unknown key \"{}{}\" (pawld --print-config shows all keys)",
                               path, line, prefix, name.str())};
    }
    if (const auto problem = key->read(node, config)) {
      return Error{Code::kInvalid,
                   fmt::format("{}:{}: {}{}: {}", path, line, prefix, name.str(), *problem)};
    }
  }
  return {};
}

// `parse` returns the table, or throws.
Result<void> read_from(const std::function<toml::table()>& parse, const std::string& path,
                       Config& config) {
  try {
    const toml::table table = parse();
    if (auto read = read_table(table, top_keys(), path, "", config); !read) return read;
  } catch (const toml::parse_error& error) {
    const auto line = error.source().begin.line;
    if (line == 0) return Error{Code::kInvalid, fmt::format("{}: {}", path, error.description())};
    return Error{Code::kInvalid, fmt::format("{}:{}: {}", path, line, error.description())};
  }
  if (config.journal.segment_bytes % store::kBlock != 0) {
    return Error{Code::kInvalid, fmt::format("{}: journal.segment_bytes: expected a multiple of {}",
                                             path, store::kBlock)};
  }
  return {};
}

constexpr std::array<std::pair<std::string_view, StoreKind>, 3> kStores{
    {{"journal", StoreKind::kJournal}, {"memory", StoreKind::kMemory}, {"etcd", StoreKind::kEtcd}}};

}  // namespace

std::string_view store_name(StoreKind kind) {
  for (const auto& [name, known] : kStores) {
    if (known == kind) return name;
  }
  return "unknown";
}

std::optional<StoreKind> parse_store(std::string_view text) {
  for (const auto& [name, known] : kStores) {
    if (name == text) return known;
  }
  return std::nullopt;
}

Result<void> read_config(const std::string& path, Config& config) {
  return read_from([&] { return toml::parse_file(path); }, path, config);
}

Result<void> parse_config(std::string_view text, const std::string& name, Config& config) {
  return read_from([&] { return toml::parse(text, name); }, name, config);
}

std::string to_toml(const Config& config) {
  toml::table journal{
      {"segment_bytes", static_cast<std::int64_t>(config.journal.segment_bytes)},
      {"spare_segments", static_cast<std::int64_t>(config.journal.spare_segments)},
      {"checkpoint_after", static_cast<std::int64_t>(config.journal.checkpoint_after)},
      {"space_reserve_bytes", static_cast<std::int64_t>(config.journal.space_reserve)},
  };
  toml::table limits;
  for (const LimitKey& key : kLimits)
    limits.insert(key.name, static_cast<std::int64_t>(config.limits.*key.field));
  toml::table tls{
      {"cert", config.tls.cert}, {"key", config.tls.key}, {"client_ca", config.tls.client_ca}};
  const ClusterOptions& e = config.etcd;
  toml::table etcd{
      {"endpoints", e.endpoints},
      {"cluster", e.cluster},
      {"advertise", e.advertise},
      {"role_ttl_ms", std::int64_t{e.role_ttl.count()}},
      {"user", e.user},
      {"password_file", e.password_file},
      {"tls", e.tls},
      {"tls_ca", e.files.ca},
      {"tls_cert", e.files.cert},
      {"tls_key", e.files.key},
      {"compaction", e.compaction},
      {"quota_bytes", static_cast<std::int64_t>(e.quota_bytes)},
  };
  toml::array hosts;
  for (const std::string& host : config.http_hosts) hosts.push_back(host);
  const toml::table http{{"listen", config.http}, {"hosts", hosts}};
  const toml::table all{
      {"data", config.data},
      {"resp", config.resp},
      {"log_format", config.log_format == LogFormat::kJson ? "json" : "text"},
      {"store", std::string(store_name(config.store))},
      {"auth_file", config.auth_file},
      {"insecure", config.insecure},
      {"must_exist", config.journal.must_exist},
      {"max_ttl_ms", std::int64_t{config.max_ttl.count()}},
      {"max_delay_ms", std::int64_t{config.max_delay.count()}},
      {"wait_ms", std::int64_t{config.wait.count()}},
      {"etcd", etcd},
      {"http", http},
      {"journal", journal},
      {"limits", limits},
      {"tls", tls},
  };
  std::ostringstream out;
  out << toml::toml_formatter{all} << '\n';
  return out.str();
}

}  // namespace pawl::pawld
