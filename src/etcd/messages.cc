// The numbers of fields are those of rpc.proto and kv.proto of etcd's API.
#include "etcd/messages.h"

#include <utility>

#include "base/limits.h"
#include "etcd/protobuf.h"

namespace pawl::etcd {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

// --- Parts of requests ---------------------------------------------------------------------------

// Compare.CompareResult; EQUAL is 0.
constexpr std::int64_t kEqual = 0;
constexpr std::int64_t kGreater = 1;
constexpr std::int64_t kLess = 2;
// Compare.CompareTarget.
constexpr std::int64_t kTargetCreate = 1;
constexpr std::int64_t kTargetMod = 2;
constexpr std::int64_t kTargetValue = 3;

std::string encode_value_compare(std::int64_t result, std::string_view key,
                                 std::string_view value) {
  std::string out;
  put_integer(out, 1, result);
  put_integer(out, 2, kTargetValue);
  put_bytes(out, 3, key);
  put_message(out, 7, value);
  return out;
}

std::string encode_revision_compare(std::int64_t target, std::uint32_t member, std::string_view key,
                                    std::int64_t revision) {
  std::string out;
  put_integer(out, 2, target);
  put_bytes(out, 3, key);
  put_member(out, member, revision);
  return out;
}

std::string encode_compare(const Compare& compare) {
  return std::visit(
      Overloaded{[](const ValueIs& wanted) {
                   return encode_value_compare(kEqual, wanted.key, wanted.value);
                 },
                 [](const ValueIsBefore& wanted) {
                   return encode_value_compare(kLess, wanted.key, wanted.value);
                 },
                 [](const ValueIsAfter& wanted) {
                   return encode_value_compare(kGreater, wanted.key, wanted.value);
                 },
                 [](const CreateRevisionIs& wanted) {
                   return encode_revision_compare(kTargetCreate, 5, wanted.key, wanted.revision);
                 },
                 [](const ModRevisionIs& wanted) {
                   return encode_revision_compare(kTargetMod, 6, wanted.key, wanted.revision);
                 }},
      compare);
}

std::string encode_op(const RequestOp& op) {
  std::string out;
  // Members of a oneof: 1 range, 2 put, 3 delete_range.
  std::visit(
      [&](const auto& request) {
        put_message(out, static_cast<std::uint32_t>(op.index() + 1), encode(request));
      },
      op);
  return out;
}

// --- Parts of answers ----------------------------------------------------------------------------

Error malformed(std::string_view what) {
  return {Code::kInvalid, "malformed " + std::string(what) + " from etcd"};
}
Error too_many(std::string_view what) {
  return {Code::kInvalid, "an answer from etcd has more than " +
                              std::to_string(limits::kEtcdItemsMax) + " " + std::string(what)};
}

// Calls `take(field)` for each field. False if the message is malformed, or `take` says so.
template <class Take>
bool read_fields(std::string_view bytes, Take&& take) {
  FieldReader in(bytes);
  while (const auto field = in.next()) {
    if (!take(*field)) return false;
  }
  return in.ok();
}

bool read(std::string_view bytes, ResponseHeader& out) {
  return read_fields(bytes, [&](const Field& field) {
    if (field.is_integer(1)) out.cluster_id = field.integer;
    if (field.is_integer(2)) out.member_id = field.integer;
    if (field.is_integer(3)) out.revision = field.signed_integer();
    if (field.is_integer(4)) out.raft_term = field.integer;
    return true;
  });
}

bool read(std::string_view bytes, KeyValue& out) {
  return read_fields(bytes, [&](const Field& field) {
    if (field.is_bytes(1)) out.key = field.bytes;
    if (field.is_integer(2)) out.create_revision = field.signed_integer();
    if (field.is_integer(3)) out.mod_revision = field.signed_integer();
    if (field.is_integer(4)) out.version = field.signed_integer();
    if (field.is_bytes(5)) out.value = field.bytes;
    if (field.is_integer(6)) out.lease = field.signed_integer();
    return true;
  });
}

bool read(std::string_view bytes, WatchEvent& out) {
  return read_fields(bytes, [&](const Field& field) {
    if (field.is_integer(1)) out.is_delete = field.integer == 1;
    if (field.is_bytes(2)) return read(field.bytes, out.kv);
    return true;
  });
}

// Permission.Type: READ 0, WRITE 1, READWRITE 2.
bool read(std::string_view bytes, Permission& out) {
  std::uint64_t type = 0;
  const bool well_formed = read_fields(bytes, [&](const Field& field) {
    if (field.is_integer(1)) type = field.integer;
    if (field.is_bytes(2)) out.key = field.bytes;
    if (field.is_bytes(3)) out.range_end = field.bytes;
    return true;
  });
  out.may_read = type != 1;
  out.may_write = type != 0;
  return well_formed;
}

// Counts the items of one answer, those of its parts included.
class ItemBudget {
 public:
  [[nodiscard]] bool take() { return ++taken_ <= limits::kEtcdItemsMax; }
  [[nodiscard]] bool exceeded() const { return taken_ > limits::kEtcdItemsMax; }

 private:
  std::size_t taken_ = 0;
};

bool read(std::string_view bytes, RangeResponse& out, ItemBudget& budget) {
  return read_fields(bytes, [&](const Field& field) {
    if (field.is_bytes(1)) return read(field.bytes, out.header);
    if (field.is_bytes(2)) return budget.take() && read(field.bytes, out.kvs.emplace_back());
    if (field.is_integer(3)) out.more = field.integer != 0;
    if (field.is_integer(4)) out.count = field.signed_integer();
    return true;
  });
}

bool read(std::string_view bytes, DeleteRangeResponse& out) {
  return read_fields(bytes, [&](const Field& field) {
    if (field.is_integer(2)) out.deleted = field.signed_integer();
    return true;
  });
}

bool read(std::string_view bytes, ResponseOp& out, ItemBudget& budget) {
  bool known = false;
  const bool well_formed = read_fields(bytes, [&](const Field& field) {
    if (field.is_bytes(1)) {
      known = true;
      return read(field.bytes, out.emplace<RangeResponse>(), budget);
    }
    if (field.is_bytes(2)) {
      known = true;
      out.emplace<PutResponse>();
    }
    if (field.is_bytes(3)) {
      known = true;
      return read(field.bytes, out.emplace<DeleteRangeResponse>());
    }
    return true;
  });
  return well_formed && known;
}

// An answer that has a header only, besides what `take` reads.
template <class Answer, class Take>
Result<Answer> read_answer(std::string_view bytes, std::string_view what, Take&& take) {
  Answer out;
  const bool ok = read_fields(bytes, [&](const Field& field) {
    if (field.is_bytes(1)) return read(field.bytes, out.header);
    return take(out, field);
  });
  if (!ok) return malformed(what);
  return out;
}

}  // namespace

// --- Requests ------------------------------------------------------------------------------------

std::string encode(const RangeRequest& request) {
  std::string out;
  put_bytes(out, 1, request.key);
  put_bytes(out, 2, request.range_end);
  put_integer(out, 3, request.limit);
  put_integer(out, 4, request.revision);
  return out;
}

std::string encode(const PutRequest& request) {
  std::string out;
  put_bytes(out, 1, request.key);
  put_bytes(out, 2, request.value);
  return out;
}

std::string encode(const DeleteRangeRequest& request) {
  std::string out;
  put_bytes(out, 1, request.key);
  put_bytes(out, 2, request.range_end);
  return out;
}

std::string encode(const TxnRequest& request) {
  std::string out;
  for (const Compare& compare : request.compare) put_message(out, 1, encode_compare(compare));
  for (const RequestOp& op : request.success) put_message(out, 2, encode_op(op));
  for (const RequestOp& op : request.failure) put_message(out, 3, encode_op(op));
  return out;
}

std::string encode(const CompactionRequest& request) {
  std::string out;
  put_integer(out, 1, request.revision);
  return out;
}

std::string encode(const WatchCreateRequest& request) {
  std::string create;
  put_bytes(create, 1, request.key);
  put_bytes(create, 2, request.range_end);
  put_integer(create, 3, request.start_revision);
  put_integer(create, 4, request.progress_notify ? 1 : 0);
  put_integer(create, 8, request.fragment ? 1 : 0);
  std::string out;
  put_message(out, 1, create);
  return out;
}

std::string encode_watch_progress() {
  std::string out;
  put_message(out, 3, {});
  return out;
}

std::string encode(const AuthenticateRequest& request) {
  std::string out;
  put_bytes(out, 1, request.name);
  put_bytes(out, 2, request.password);
  return out;
}

std::string encode(const RoleGetRequest& request) {
  std::string out;
  put_bytes(out, 1, request.role);
  return out;
}

std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

// --- Answers -------------------------------------------------------------------------------------

Result<RangeResponse> decode_range(std::string_view bytes) {
  RangeResponse out;
  ItemBudget budget;
  if (read(bytes, out, budget)) return out;
  return budget.exceeded() ? too_many("keys") : malformed("RangeResponse");
}

Result<TxnResponse> decode_txn(std::string_view bytes) {
  ItemBudget budget;
  auto out =
      read_answer<TxnResponse>(bytes, "TxnResponse", [&](TxnResponse& answer, const Field& field) {
        if (field.is_integer(2)) answer.succeeded = field.integer != 0;
        if (field.is_bytes(3))
          return budget.take() && read(field.bytes, answer.responses.emplace_back(), budget);
        return true;
      });
  if (!out && budget.exceeded()) return too_many("operations and keys");
  return out;
}

Result<CompactionResponse> decode_compaction(std::string_view bytes) {
  return read_answer<CompactionResponse>(bytes, "CompactionResponse",
                                         [](CompactionResponse&, const Field&) { return true; });
}

Result<WatchResponse> decode_watch(std::string_view bytes) {
  ItemBudget budget;
  auto out = read_answer<WatchResponse>(
      bytes, "WatchResponse", [&](WatchResponse& answer, const Field& field) {
        if (field.is_integer(2)) answer.watch_id = field.signed_integer();
        if (field.is_integer(3)) answer.created = field.integer != 0;
        if (field.is_integer(4)) answer.canceled = field.integer != 0;
        if (field.is_integer(5)) answer.compact_revision = field.signed_integer();
        if (field.is_bytes(6)) answer.cancel_reason = field.bytes;
        if (field.is_integer(7)) answer.fragment = field.integer != 0;
        if (field.is_bytes(11))
          return budget.take() && read(field.bytes, answer.events.emplace_back());
        return true;
      });
  if (!out && budget.exceeded()) return too_many("events");
  return out;
}

Result<StatusResponse> decode_status(std::string_view bytes) {
  ItemBudget budget;
  return read_answer<StatusResponse>(bytes, "StatusResponse",
                                     [&](StatusResponse& answer, const Field& field) {
                                       if (field.is_bytes(2)) answer.version = field.bytes;
                                       if (field.is_integer(3))
                                         answer.db_size = field.signed_integer();
                                       if (field.is_integer(4)) answer.leader = field.integer;
                                       if (field.is_integer(6)) answer.raft_term = field.integer;
                                       if (field.is_bytes(8) && !budget.take()) return false;
                                       if (field.is_bytes(8))
                                         answer.errors.emplace_back(field.bytes);
                                       if (field.is_integer(9))
                                         answer.db_size_in_use = field.signed_integer();
                                       if (field.is_integer(10))
                                         answer.is_learner = field.integer != 0;
                                       return true;
                                     });
}

Result<AuthenticateResponse> decode_authenticate(std::string_view bytes) {
  return read_answer<AuthenticateResponse>(bytes, "AuthenticateResponse",
                                           [](AuthenticateResponse& answer, const Field& field) {
                                             if (field.is_bytes(2)) answer.token = field.bytes;
                                             return true;
                                           });
}

Result<RoleListResponse> decode_role_list(std::string_view bytes) {
  ItemBudget budget;
  return read_answer<RoleListResponse>(bytes, "AuthRoleListResponse",
                                       [&](RoleListResponse& answer, const Field& field) {
                                         if (field.is_bytes(2) && !budget.take()) return false;
                                         if (field.is_bytes(2))
                                           answer.roles.emplace_back(field.bytes);
                                         return true;
                                       });
}

Result<RoleGetResponse> decode_role_get(std::string_view bytes) {
  ItemBudget budget;
  return read_answer<RoleGetResponse>(
      bytes, "AuthRoleGetResponse", [&](RoleGetResponse& answer, const Field& field) {
        if (field.is_bytes(2))
          return budget.take() && read(field.bytes, answer.permissions.emplace_back());
        return true;
      });
}

}  // namespace pawl::etcd
