#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <utility>

#include "guard/dynamodb/front.h"
#include "guard/dynamodb/writer.h"
#include "pawl/dynamodb.h"

namespace pawl {
namespace {

std::string one_of(std::string_view type, boost::json::value value) {
  return boost::json::serialize(boost::json::object{{type, std::move(value)}});
}

}  // namespace

DynamoValue DynamoValue::text(std::string_view text) {
  return json(one_of("S", boost::json::string(text)));
}
DynamoValue DynamoValue::number(std::int64_t number) {
  return json(one_of("N", boost::json::string(std::to_string(number))));
}
DynamoValue DynamoValue::number(std::string_view digits) {
  return json(one_of("N", boost::json::string(digits)));
}
DynamoValue DynamoValue::boolean(bool value) {
  return json(one_of("BOOL", value));
}
DynamoValue DynamoValue::json(std::string json) {
  DynamoValue made;
  made.json_ = std::move(json);
  return made;
}

DynamoGuard::DynamoGuard(const DynamoOptions& options)
    : front_(std::make_unique<guard::DynamoFront>(guard::open_dynamo_store(options), options)) {}

DynamoGuard::~DynamoGuard() = default;

std::string DynamoGuard::name() const {
  return front_->name();
}

GuardStrength DynamoGuard::strength() {
  return front_->strength();
}

Result<std::uint64_t> DynamoGuard::advance(std::string_view resource, std::uint64_t token,
                                           std::chrono::milliseconds) {
  if (const auto ready = front_->ready(); !ready) return ready.error();
  const auto answer = front_->calls().advance(std::string(resource), token);
  if (!answer) return answer.error();
  if (!answer->text.empty()) return guard::to_error(*answer);
  return answer->max;
}

Result<Decision> DynamoGuard::check(std::string_view resource, std::uint64_t token) {
  if (const auto ready = front_->ready(); !ready) return ready.error();
  const auto answer = front_->calls().check(std::string(resource), token);
  if (!answer) return answer.error();
  if (!answer->text.empty()) return guard::to_error(*answer);
  return guard::to_decision(*answer, token);
}

Result<DynamoWrite> DynamoGuard::write(const Lease& lease, std::string_view resource,
                                       DynamoChange change, DynamoWriteOptions options) {
  return front_->write(guard::held_by(lease), {std::string(resource)}, {std::move(change)},
                       options);
}

Result<DynamoWrite> DynamoGuard::write(std::uint64_t token, std::string_view resource,
                                       DynamoChange change, DynamoWriteOptions options) {
  return front_->write({.token = token}, {std::string(resource)}, {std::move(change)}, options);
}

Result<DynamoWrite> DynamoGuard::write_all(const Lease& lease, std::vector<std::string> resources,
                                           std::vector<DynamoChange> changes,
                                           DynamoWriteOptions options) {
  return front_->write(guard::held_by(lease), std::move(resources), changes, options);
}

Result<DynamoWrite> DynamoGuard::write_all(std::uint64_t token, std::vector<std::string> resources,
                                           std::vector<DynamoChange> changes,
                                           DynamoWriteOptions options) {
  return front_->write({.token = token}, std::move(resources), changes, options);
}

Result<std::optional<DynamoItem>> DynamoGuard::read(std::string_view table, const DynamoItem& key) {
  return front_->read(std::string(table), key);
}

}  // namespace pawl
