#include "store/etcd/etcd_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "base/limits.h"

namespace pawl::store::etcd_log {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kCompactAfterBytes = 64 * 1024 * 1024;
constexpr Nanos kCompactAfter = minutes(5);
// A page of large entries takes longer than a write; an endpoint that is silent is left sooner.
constexpr Nanos kReadTime = seconds(10);
// Above this part of its quota etcd soon refuses everything, heartbeats too.
constexpr std::uint64_t kRoomPercent = 80;
constexpr Nanos kRoomEvery = seconds(1);
// A member that was stopped may answer a read with what it knew then (etcd's issue 20418). So many
// in a row, each at another member, are no such accident.
constexpr int kOldAnswersMax = 10;

}  // namespace

EtcdLog::EtcdLog(etcd::Client& client, EtcdLogSettings settings, std::function<Instant()> clock,
                 std::function<void()> flush)
    : client_(client),
      settings_(std::move(settings)),
      clock_(std::move(clock)),
      flush_(std::move(flush)),
      keys_(settings_.cluster),
      nodes_(keys_, settings_.self),
      compacted_at_(clock_()),
      report_at_(clock_()) {}

EtcdLog::Call EtcdLog::call(std::string request, std::optional<Nanos> attempt_time) {
  const Call made{client_.transact(std::move(request), attempt_time), clock_()};
  flush_();
  return made;
}

// --- SharedLog -----------------------------------------------------------------------------------

void EtcdLog::write(const Write& write) {
  PAWL_ASSERT(!write_);
  etcd::TxnRequest request;
  if (write.expected && write.expected->empty()) {
    request.compare.push_back(etcd::CreateRevisionIs{keys_.head(), 0});
  } else if (write.expected) {
    request.compare.push_back(etcd::ValueIs{keys_.head(), *write.expected});
  }
  request.success.push_back(etcd::PutRequest{keys_.head(), write.head});
  if (write.entry != 0)
    request.success.push_back(etcd::PutRequest{keys_.entry(write.entry), write.bytes});
  if (write.delete_before != 0) {
    request.success.push_back(
        etcd::DeleteRangeRequest{keys_.entry(0), keys_.entry(write.delete_before)});
  }
  request.failure.push_back(etcd::RangeRequest{.key = keys_.head()});
  write_bytes_ = write.bytes.size() + write.head.size();
  write_ = call(etcd::encode(request));
}

void EtcdLog::read(const Read& read) {
  PAWL_ASSERT(!read_ && read.most > 0);
  read_ = call(etcd::encode(etcd::TxnRequest{
                   .compare = {},
                   .success = {etcd::RangeRequest{.key = keys_.head()},
                               etcd::RangeRequest{.key = keys_.entry(read.from),
                                                  .range_end = keys_.entry(read.from + read.most)}},
                   .failure = {}}),
               kReadTime);
}

// --- Answers -------------------------------------------------------------------------------------

void EtcdLog::on_event(const etcd::Event& event) {
  if (const auto* done = std::get_if<etcd::TxnDone>(&event)) {
    on_done(*done);
  } else if (const auto* compacted = std::get_if<etcd::CompactionDone>(&event)) {
    if (compaction_ == compacted->call) compaction_.reset();
  } else if (std::holds_alternative<etcd::Trouble>(event)) {
    ++troubles_;
  }
}

void EtcdLog::on_done(const etcd::TxnDone& done) {
  for (std::optional<Call>* call : {&write_, &read_, &report_, &goodbye_}) {
    if (!*call || (*call)->id != done.call) continue;
    ++round_trips_;
    sends_ += done.sends.count;
    round_trip_time_ += clock_() - (*call)->began;
    call->reset();
    if (call == &write_) return on_written(done);
    if (call == &read_) return on_read(done);
    if (call == &goodbye_) {
      farewell_ = Farewell::kDone;
    } else {
      nodes_.take(done.answer.responses, clock_());
    }
    return;
  }
}

void EtcdLog::on_written(const etcd::TxnDone& done) {
  using Outcome = etcd::TxnDone::Outcome;
  if (done.outcome == Outcome::kFatal) return fail("etcd refused a write: " + done.text);
  if (done.went_back) return listener_->failed(cluster::log_went_back());
  if (done.outcome == Outcome::kApplied) {
    count_written(write_bytes_, done.answer.header.revision);
    return listener_->written({WriteAnswer::Outcome::kApplied, ""});
  }
  listener_->written({WriteAnswer::Outcome::kRefused, done.found ? done.found->value : ""});
}

void EtcdLog::on_read(const etcd::TxnDone& done) {
  if (done.outcome == etcd::TxnDone::Outcome::kFatal)
    return fail("etcd refused a read: " + done.text);
  if (done.went_back) {
    if (++old_answers_ < kOldAnswersMax) return listener_->read({});
    return listener_->failed(cluster::log_went_back());
  }
  old_answers_ = 0;
  const auto& responses = done.answer.responses;
  const auto* head = responses.empty() ? nullptr : std::get_if<etcd::RangeResponse>(&responses[0]);
  const auto* entries =
      responses.size() < 2 ? nullptr : std::get_if<etcd::RangeResponse>(&responses[1]);
  if (head == nullptr || entries == nullptr) return listener_->read({});
  ReadAnswer answer{.known = true};
  if (!head->kvs.empty()) answer.head = head->kvs.front().value;
  for (const etcd::KeyValue& kv : entries->kvs) {
    const auto number = keys_.entry_number(kv.key);
    if (number) answer.entries.push_back({*number, kv.value});
  }
  listener_->read(answer);
}

void EtcdLog::fail(std::string why) {
  listener_->failed({Code::kInvalid, explained(std::move(why))});
}

// --- Housekeeping --------------------------------------------------------------------------------

void EtcdLog::count_written(std::size_t bytes, std::int64_t revision) {
  written_since_ += bytes;
  revision_ = revision;
  if (!settings_.compaction || compaction_) return;
  if (written_since_ < kCompactAfterBytes && clock_() - compacted_at_ < kCompactAfter) return;
  compact();
}

void EtcdLog::compact() {
  written_since_ = 0;
  compacted_at_ = clock_();
  const std::int64_t to = std::exchange(revision_before_, revision_);
  if (to == 0) return;
  compaction_ = client_.compact(to);
  flush_();
}

void EtcdLog::on_timer() {
  const Instant now = clock_();
  if (now >= room_at_) {
    room_ = find_room();
    room_at_ = now + kRoomEvery;
  }
  if (now < report_at_ || farewell_ != Farewell::kNo) return;
  report_at_ = now + Nodes::kReportEvery;
  if (!report_ && !nodes_.address().empty()) report_ = call(nodes_.report(role_));
}

void EtcdLog::set_role(std::string role) {
  if (role == role_) return;
  role_ = std::move(role);
  report_at_ = clock_();
}

void EtcdLog::say_farewell() {
  if (farewell_ != Farewell::kNo) return;
  farewell_ = Farewell::kSent;
  if (report_) client_.cancel(std::exchange(report_, std::nullopt)->id);
  goodbye_ = call(nodes_.farewell());
}

// Not asked for every grant: that would copy the status of each endpoint.
bool EtcdLog::find_room() const {
  for (const etcd::EndpointView& endpoint : client_.endpoints()) {
    if (!endpoint.status) continue;
    if (static_cast<std::uint64_t>(endpoint.status->db_size) >
        settings_.quota_bytes / 100 * kRoomPercent)
      return false;
    for (const std::string& alarm : endpoint.status->errors) {
      if (alarm.find("NOSPACE") != std::string::npos) return false;
    }
  }
  return true;
}

std::optional<ClusterView> EtcdLog::view() const {
  ClusterView view{.name = settings_.cluster,
                   .nodes = nodes_.list(clock_()),
                   .endpoints = {},
                   .round_trips = round_trips_,
                   .sends = sends_,
                   .troubles = troubles_,
                   .round_trip_time = round_trip_time_};
  for (ClusterView::Node& node : view.nodes) {
    if (node.is_self) node.role = role_;  // The report may be older.
  }
  for (const etcd::EndpointView& endpoint : client_.endpoints()) {
    ClusterView::Endpoint seen{.name = endpoint.name,
                               .usable = endpoint.usable,
                               .leader = endpoint.status && endpoint.status->is_leader(),
                               .version = endpoint.status ? endpoint.status->version : "",
                               .problem = endpoint.usable ? "" : explained(endpoint.error)};
    if (endpoint.usable && endpoint.status) {
      for (const std::string& alarm : endpoint.status->errors) seen.problem += alarm + "; ";
      seen.problem += version_problem(seen.version);
    }
    if (!endpoint.usable && seen.problem.empty()) seen.problem = "it has not answered yet";
    view.endpoints.push_back(std::move(seen));
  }
  return view;
}

std::string explained(std::string problem) {
  const auto says = [&](std::string_view text) { return problem.find(text) != std::string::npos; };
  std::string_view advice;
  if (says("refuses the user")) {
    advice = ". Correct etcd.user and etcd.password_file in the configuration of pawld";
  } else if (says("permission denied")) {
    advice =
        ". Give its role in etcd the permission: etcdctl role grant-permission ROLE --prefix=true "
        "readwrite pawl/";
  } else if (says("etcd has users")) {
    advice = ": etcd.user and etcd.password_file";
  } else if (says("certificate")) {
    advice =
        ". Check etcd.tls_ca (who signed the certificate of etcd), and etcd.tls_cert with "
        "etcd.tls_key (which etcd must know)";
  }
  return problem.append(advice);
}

std::string version_problem(std::string_view version) {
  // The first release of each line that answers no read with old data (etcd's issue 20418).
  constexpr std::array<std::array<int, 3>, 3> kGood{{{3, 4, 42}, {3, 5, 28}, {3, 6, 9}}};
  std::array<int, 3> parts{};
  const char* at = version.data();
  const char* end = at + version.size();
  for (int& part : parts) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc()) return "its version is not known";
    at = next == end ? end : next + 1;
  }
  for (const auto& good : kGood) {
    if (parts[0] != good[0] || parts[1] != good[1] || parts[2] >= good[2]) continue;
    return "etcd before " + std::to_string(good[0]) + "." + std::to_string(good[1]) + "." +
           std::to_string(good[2]) +
           " may answer with old data after a pause: Pawl decides nothing by it, but upgrade";
  }
  if (parts[0] < 3 || (parts[0] == 3 && parts[1] < 4)) return "Pawl needs etcd 3.4 or newer";
  return "";
}

}  // namespace pawl::store::etcd_log
