#include <utility>

#include "guard/s3/front.h"
#include "guard/s3/s3_store.h"
#include "pawl/s3.h"

namespace pawl {

S3Guard::S3Guard(const S3Options& options)
    : front_(std::make_unique<guard::S3Front>(guard::open_s3_store(options), options)) {}

S3Guard::~S3Guard() = default;

std::string S3Guard::name() const {
  return front_->name();
}

GuardStrength S3Guard::strength() {
  return front_->strength();
}

Result<std::uint64_t> S3Guard::advance(std::string_view resource, std::uint64_t token,
                                       std::chrono::milliseconds) {
  return front_->advance(std::string(resource), token);
}

Result<Decision> S3Guard::check(std::string_view resource, std::uint64_t token) {
  return front_->check(std::string(resource), token);
}

Result<Decision> S3Guard::write(const Lease& lease, std::string_view resource,
                                std::string_view content, const S3WriteOptions& options) {
  return update(
      lease, resource, [content](const auto&) { return std::string(content); }, options);
}

Result<Decision> S3Guard::write(std::uint64_t token, std::string_view resource,
                                std::string_view content, const S3WriteOptions& options) {
  return update(
      token, resource, [content](const auto&) { return std::string(content); }, options);
}

Result<Decision> S3Guard::update(const Lease& lease, std::string_view resource,
                                 const Change& change, const S3WriteOptions& options) {
  return front_->write({guard::held_by(lease), std::string(resource), options.operation, change});
}

Result<Decision> S3Guard::update(std::uint64_t token, std::string_view resource,
                                 const Change& change, const S3WriteOptions& options) {
  return front_->write({{.token = token}, std::string(resource), options.operation, change});
}

Result<Decision> S3Guard::remove(const Lease& lease, std::string_view resource) {
  return front_->write({guard::held_by(lease), std::string(resource), 0, nullptr});
}

Result<std::optional<std::string>> S3Guard::read(std::string_view resource) {
  return front_->read(std::string(resource));
}

}  // namespace pawl
