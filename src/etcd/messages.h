// The messages of etcd's API (etcdserverpb, version 3) that Pawl sends and reads, as values.
//
// encode() gives the bytes of a request; the decode functions read an answer. They keep to
// limits::kEtcdItemsMax, and skip fields that they do not know, which newer versions of etcd send.
// An error (kInvalid) means that the bytes are not such a message.
//
// There is no `serializable`: such a read may return old data, so nothing may be decided by it
// (hard case 49).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pawl/result.h"

namespace pawl::etcd {

// --- Requests ------------------------------------------------------------------------------------

// The keys [key, range_end); with an empty range_end, `key` alone.
struct RangeRequest {
  std::string key;
  std::string range_end = {};
  std::int64_t limit = 0;     // 0: none
  std::int64_t revision = 0;  // The state at this revision; 0: the newest.
};

struct PutRequest {
  std::string key;
  std::string value;
};

// The keys [key, range_end); with an empty range_end, `key` alone.
struct DeleteRangeRequest {
  std::string key;
  std::string range_end = {};
};

// True if the key has exactly this value; false if it is absent, whatever the value.
struct ValueIs {
  std::string key;
  std::string value;
};
// True if the key's value comes before this one, byte by byte; false if the key is absent. So for
// ValueIsAfter.
struct ValueIsBefore {
  std::string key;
  std::string value;
};
struct ValueIsAfter {
  std::string key;
  std::string value;
};
// True if the key was created by this revision; 0: the key is absent.
struct CreateRevisionIs {
  std::string key;
  std::int64_t revision = 0;
};
// True if the key was last changed by this revision; 0: the key is absent.
struct ModRevisionIs {
  std::string key;
  std::int64_t revision = 0;
};
using Compare = std::variant<ValueIs, ValueIsBefore, ValueIsAfter, CreateRevisionIs, ModRevisionIs>;

using RequestOp = std::variant<RangeRequest, PutRequest, DeleteRangeRequest>;

// If every compare is true, `success` is done, else `failure`. etcd refuses a key that is put
// twice, and more than 128 operations.
struct TxnRequest {
  std::vector<Compare> compare = {};
  std::vector<RequestOp> success = {};
  std::vector<RequestOp> failure = {};
};

// Forgets all that was overwritten or deleted before the revision.
struct CompactionRequest {
  std::int64_t revision = 0;
};

// Every change of the keys [key, range_end) from start_revision on.
struct WatchCreateRequest {
  std::string key;
  std::string range_end = {};
  std::int64_t start_revision = 0;  // 0: from now on
  bool progress_notify = false;     // Answers without events tell the revision now and then.
  bool fragment = false;            // Large answers are sent in parts.
};

struct AuthenticateRequest {
  std::string name;
  std::string password;
};

// Of Auth.RoleGet. Auth.RoleList has no fields.
struct RoleGetRequest {
  std::string role;
};

[[nodiscard]] std::string encode(const RangeRequest& request);
[[nodiscard]] std::string encode(const PutRequest& request);
[[nodiscard]] std::string encode(const DeleteRangeRequest& request);
[[nodiscard]] std::string encode(const TxnRequest& request);
[[nodiscard]] std::string encode(const CompactionRequest& request);
[[nodiscard]] std::string encode(const WatchCreateRequest& request);  // as a WatchRequest
[[nodiscard]] std::string encode(const AuthenticateRequest& request);
[[nodiscard]] std::string encode(const RoleGetRequest& request);
// The request of Maintenance.Status has no fields.
[[nodiscard]] inline std::string encode_status_request() {
  return {};
}
// A WatchRequest that asks for the revision up to which everything was sent.
[[nodiscard]] std::string encode_watch_progress();

// The end of the range of all keys that begin with `prefix`; "\0" (all keys) if there is no such
// end.
[[nodiscard]] std::string end_of_prefix(std::string_view prefix);

// --- Answers -------------------------------------------------------------------------------------

struct ResponseHeader {
  std::uint64_t cluster_id = 0;
  std::uint64_t member_id = 0;
  std::int64_t revision = 0;
  std::uint64_t raft_term = 0;
};

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t version = 0;  // 1 when created, + 1 with each put.
  std::int64_t lease = 0;    // The key is deleted when this lease ends; 0: it has none.
};

struct RangeResponse {
  ResponseHeader header;
  std::vector<KeyValue> kvs;
  bool more = false;       // The limit was reached.
  std::int64_t count = 0;  // All keys in the range, whatever the limit.
};

struct PutResponse {};
struct DeleteRangeResponse {
  std::int64_t deleted = 0;
};
using ResponseOp = std::variant<RangeResponse, PutResponse, DeleteRangeResponse>;

struct TxnResponse {
  ResponseHeader header = {};
  bool succeeded = false;
  std::vector<ResponseOp> responses = {};  // One for each operation that was done.
};

struct CompactionResponse {
  ResponseHeader header;
};

struct WatchEvent {
  bool is_delete = false;
  KeyValue kv;  // Of a delete: the key and mod_revision only.
};

struct WatchResponse {
  ResponseHeader header;
  std::int64_t watch_id = 0;
  bool created = false;
  bool canceled = false;
  std::int64_t compact_revision = 0;  // Not 0: canceled, because changes up to it are forgotten.
  std::string cancel_reason;          // Often empty.
  bool fragment = false;              // More parts of this answer follow.
  std::vector<WatchEvent> events;
};

struct StatusResponse {
  ResponseHeader header;
  std::string version;
  std::int64_t db_size = 0;         // Of the file.
  std::int64_t db_size_in_use = 0;  // What a defragmentation would leave.
  std::uint64_t leader = 0;         // 0: this member knows of none.
  std::uint64_t raft_term = 0;
  std::vector<std::string> errors;  // Alarms, as in "memberID:… alarm:NOSPACE".
  bool is_learner = false;

  [[nodiscard]] bool is_leader() const { return leader != 0 && leader == header.member_id; }
};

struct AuthenticateResponse {
  ResponseHeader header;
  std::string token;
};

struct RoleListResponse {
  ResponseHeader header;
  std::vector<std::string> roles;
};

// What a role may do with the keys [key, range_end); with an empty range_end, `key` alone; with
// "\0" all from `key` on.
struct Permission {
  bool may_read = false;
  bool may_write = false;
  std::string key;
  std::string range_end;
};
struct RoleGetResponse {
  ResponseHeader header;
  std::vector<Permission> permissions;
};

[[nodiscard]] Result<RangeResponse> decode_range(std::string_view bytes);
[[nodiscard]] Result<TxnResponse> decode_txn(std::string_view bytes);
[[nodiscard]] Result<CompactionResponse> decode_compaction(std::string_view bytes);
[[nodiscard]] Result<WatchResponse> decode_watch(std::string_view bytes);
[[nodiscard]] Result<StatusResponse> decode_status(std::string_view bytes);
[[nodiscard]] Result<AuthenticateResponse> decode_authenticate(std::string_view bytes);
[[nodiscard]] Result<RoleListResponse> decode_role_list(std::string_view bytes);
[[nodiscard]] Result<RoleGetResponse> decode_role_get(std::string_view bytes);

}  // namespace pawl::etcd
