#include "cli/json.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/text.h"

namespace pawl::cli {
namespace {

boost::json::value to_json(const wire::Value& value) {
  using Kind = wire::Value::Kind;
  switch (value.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kInteger:
      return value.integer;
    case Kind::kBoolean:
      return value.integer != 0;
    case Kind::kReal:
      return std::isfinite(value.real) ? boost::json::value(value.real) : nullptr;
    case Kind::kSimple:
    case Kind::kText:
    case Kind::kError:
      return boost::json::string(to_valid_utf8(value.text));
    case Kind::kArray:
    case Kind::kPush: {
      boost::json::array items;
      for (const wire::Value& item : value.items) items.push_back(to_json(item));
      return items;
    }
    case Kind::kMap: {
      boost::json::object members;
      for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
        members.emplace(to_valid_utf8(value.items[i].text), to_json(value.items[i + 1]));
      return members;
    }
  }
  return nullptr;
}

}  // namespace

Json& Json::open(boost::json::value container) {
  open_.push_back({std::exchange(key_, {}), std::move(container)});
  return *this;
}

Json& Json::end() {
  PAWL_ASSERT(!open_.empty());
  Container ended = std::move(open_.back());
  open_.pop_back();
  key_ = std::move(ended.key);
  return add(std::move(ended.value));
}

Json& Json::add(boost::json::value value) {
  if (open_.empty()) {
    root_ = std::move(value);
  } else if (boost::json::array* items = open_.back().value.if_array()) {
    items->push_back(std::move(value));
  } else {
    open_.back().value.as_object().emplace(key_, std::move(value));
  }
  key_.clear();
  return *this;
}

Json& Json::key(std::string_view name) {
  key_ = to_valid_utf8(name);
  return *this;
}

Json& Json::string(std::string_view value) {
  return add(boost::json::string(to_valid_utf8(value)));
}

Json& Json::value(const wire::Value& value) {
  return add(to_json(value));
}

std::string Json::text() const {
  PAWL_ASSERT(open_.empty());
  return boost::json::serialize(root_);
}

}  // namespace pawl::cli
