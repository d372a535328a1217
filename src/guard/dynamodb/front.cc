#include "guard/dynamodb/front.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "guard/dynamodb/access.h"
#include "guard/dynamodb/writer.h"

namespace pawl::guard {
namespace {

namespace json = boost::json;

Result<json::object> to_fields(const std::map<std::string, DynamoValue>& values) {
  json::object fields;
  for (const auto& [name, value] : values) {
    boost::system::error_code failed;
    json::value parsed = json::parse(value.json(), failed);
    if (failed || !parsed.is_object() || parsed.get_object().size() != 1)
      return Error{
          Code::kInvalid,
          fmt::format("the value of {} is not a value of DynamoDB, such as {{\"S\":\"a\"}}", name)};
    fields[name] = std::move(parsed);
  }
  return fields;
}

template <class Change>
Result<DynamoOp> op_of(const Change& change, DynamoOp::Kind kind,
                       const std::map<std::string, DynamoValue>& item) {
  DynamoOp op{.kind = kind, .table = change.table, .condition = change.condition};
  auto fields = to_fields(item);
  if (!fields) return fields.error();
  auto values = to_fields(change.values);
  if (!values) return values.error();
  op.fields = *std::move(fields);
  op.values = *std::move(values);
  for (const auto& [name, attribute] : change.names) op.names[name] = attribute;
  return op;
}

struct Converting {
  Result<DynamoOp> operator()(const DynamoPut& put) const {
    return op_of(put, DynamoOp::Kind::kPut, put.item);
  }
  Result<DynamoOp> operator()(const DynamoUpdate& update) const {
    if (update.update.empty()) return Error{Code::kInvalid, "an update needs an update expression"};
    auto op = op_of(update, DynamoOp::Kind::kUpdate, update.key);
    if (op) op->update = update.update;
    return op;
  }
  Result<DynamoOp> operator()(const DynamoDelete& removal) const {
    return op_of(removal, DynamoOp::Kind::kDelete, removal.key);
  }
};

}  // namespace

Result<DynamoOp> to_op(const DynamoChange& change) {
  return std::visit(Converting{}, change);
}

DynamoFront::DynamoFront(Result<std::unique_ptr<DynamoStore>> store, DynamoOptions options)
    : options_(std::move(options)) {
  if (!store) {
    error_ = store.error();
    return;
  }
  store_ = *std::move(store);
  calls_ = std::make_unique<DynamoCalls>(*store_, options_.guards_table);
}

std::string DynamoFront::name() const {
  return store_ == nullptr ? "dynamodb in " + options_.region : store_->name();
}

Result<void> DynamoFront::ready() const {
  if (error_) return *error_;
  return {};
}

GuardStrength DynamoFront::strength() {
  if (error_) return {Strength::kBestEffort, error_->detail};
  const auto tables = guarded_tables(*store_, options_.guards_table);
  if (!tables) return {Strength::kBestEffort, tables.error().detail};
  for (const std::string& table : *tables) {
    if (std::string why = find_bypass(*store_, table); !why.empty())
      return {Strength::kBestEffort, table + ": " + why};
  }
  return {Strength::kFenced, ""};
}

Result<DynamoWrite> DynamoFront::write(HeldToken held, std::vector<std::string> resources,
                                       const std::vector<DynamoChange>& changes,
                                       DynamoWriteOptions options) {
  if (error_) return *error_;
  if (changes.empty()) return Error{Code::kInvalid, "a write has at least one change"};
  if (resources.empty()) return Error{Code::kInvalid, "a write names at least one resource"};
  if (held.token == 0 || held.token > limits::kTokenMax || options.operation > limits::kTokenMax)
    return Error{Code::kInvalid,
                 fmt::format("tokens and operation numbers are from 1 to {}", limits::kTokenMax)};
  DynamoOrder order{.operation = options.operation};
  for (std::string& resource : resources) {
    if (std::find(order.resources.begin(), order.resources.end(), resource) ==
        order.resources.end())
      order.resources.push_back(std::move(resource));
  }
  for (const DynamoChange& change : changes) {
    auto op = to_op(change);
    if (!op) return op.error();
    order.ops.push_back(*std::move(op));
  }
  DynamoWriter writer(*calls_, std::move(held), std::move(order));
  const auto decision = writer.run();
  if (!decision) return decision.error();
  return DynamoWrite{*decision, writer.met()};
}

Result<std::optional<DynamoItem>> DynamoFront::read(const std::string& table,
                                                    const DynamoItem& key) {
  using Found = std::optional<DynamoItem>;
  if (error_) return *error_;
  const auto fields = to_fields(key);
  if (!fields) return fields.error();
  const auto item = calls_->read_item(table, *fields);
  if (!item) return item.error();
  if (!*item || (*item)->contains("pawl_gone")) return Found{};
  DynamoItem found;
  for (const auto& field : **item) {
    if (!field.key().starts_with("pawl_"))
      found.emplace(field.key(), DynamoValue::json(json::serialize(field.value())));
  }
  return Found{std::move(found)};
}

}  // namespace pawl::guard
