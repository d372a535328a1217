#include "guard/sqlite/connection_state.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <new>

#include "base/json_text.h"
#include "base/limits.h"
#include "base/version.h"
#include "guard/sqlite/decide.h"
#include "guard/sqlite/fault.h"
#include "guard/sqlite/owner.h"
#include "guard_contract/parse.h"

namespace pawl::sqlite {
namespace {

constexpr std::chrono::milliseconds kAdvanceWait{5000};

// One call: its arguments and where the answer goes.
class Call {
 public:
  Call(sqlite3_context* context, int count, sqlite3_value** values)
      : context_(context), count_(count), values_(values) {}

  [[nodiscard]] ConnectionState& state() const {
    return *static_cast<ConnectionState*>(sqlite3_user_data(context_));
  }
  [[nodiscard]] bool has(int index) const {
    return index < count_ && sqlite3_value_type(values_[index]) != SQLITE_NULL;
  }
  [[nodiscard]] bool given(int index) const { return index < count_; }
  [[nodiscard]] std::string text(int index) const {
    if (!has(index)) return {};
    const unsigned char* text = sqlite3_value_text(values_[index]);
    return {reinterpret_cast<const char*>(text),
            static_cast<std::size_t>(sqlite3_value_bytes(values_[index]))};
  }
  [[nodiscard]] std::int64_t number(int index) const { return sqlite3_value_int64(values_[index]); }
  // A whole number from 1 to 2^53 - 1: an integer, plain digits, or a double that is one
  // (JavaScript has no other).
  [[nodiscard]] std::optional<std::uint64_t> token(int index) const;

  void answer(std::int64_t value) const { sqlite3_result_int64(context_, value); }
  void answer(std::string_view value) const {
    sqlite3_result_text(context_, value.data(), static_cast<int>(value.size()),
                        SQLITE_TRANSIENT);  // NOLINT
  }
  void answer_fence(std::uint64_t fence) const {
    fence == 0 ? sqlite3_result_null(context_) : answer(static_cast<std::int64_t>(fence));
  }

 private:
  sqlite3_context* context_;
  int count_;
  sqlite3_value** values_;
};

std::optional<std::uint64_t> Call::token(int index) const {
  if (!given(index)) return std::nullopt;
  switch (sqlite3_value_type(values_[index])) {
    case SQLITE_INTEGER: {
      const std::int64_t value = number(index);
      if (value < 1 || static_cast<std::uint64_t>(value) > limits::kTokenMax) return std::nullopt;
      return static_cast<std::uint64_t>(value);
    }
    case SQLITE_FLOAT: {
      const double value = sqlite3_value_double(values_[index]);
      if (!(value >= 1) || value > static_cast<double>(limits::kTokenMax) ||
          std::trunc(value) != value)
        return std::nullopt;
      return static_cast<std::uint64_t>(value);
    }
    case SQLITE_TEXT:
      return guard::parse_token(text(index));
    default:
      return std::nullopt;
  }
}

using Body = void (*)(const Call&);

template <Body body>
void call(sqlite3_context* context, int count, sqlite3_value** values) {
  try {
    body(Call(context, count, values));
  } catch (const Fault& fault) {
    const std::string message = message_of(fault);
    sqlite3_result_error(context, message.c_str(), static_cast<int>(message.size()));
    sqlite3_result_error_code(context, fault.sqlite);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

// --- for writers ---------------------------------------------------------------------------------

// Whoever came with a token is no old program, also when it was refused.
template <Body body>
void as_user(const Call& call) {
  try {
    body(call);
  } catch (const Fault&) {
    call.state().note_user(call.text(0));
    throw;
  }
}

void admit_as(const Call& call, Carry carry) {
  ConnectionState& state = call.state();
  if (carry == Carry::kYes) state.note_user(call.text(0));
  if (sqlite3_get_autocommit(state.db()) != 0)
    fail(Word::kTransaction,
         "a token belongs to a transaction, and none is open: BEGIN IMMEDIATE first");
  state.join();
  const Named named = state.find(call.text(0));
  const auto token = call.token(1);
  const auto operation = call.token(2);
  if (!token || (call.given(2) && !operation))
    refuse_malformed(state, named, token ? "malformed operation number" : "malformed token");
  call.answer(to_text(admit(state, named, *token, operation, carry)));
}

void use(const Call& call) {
  admit_as(call, Carry::kYes);
}

void admit_only(const Call& call) {
  admit_as(call, Carry::kNo);
}

// Before a row is inserted whose key is not known yet.
void judge_connection(const Call& call) {
  insist_on_journal(call.state(), call.state().find(call.number(0), call.number(1), ""));
  call.answer(1);
}

void judge_row(const Call& call) {
  judge_write(call.state(), call.state().find(call.number(0), call.number(1), call.text(2)));
  call.answer(1);
}

std::uint64_t need_token(const Call& call, int index) {
  const auto token = call.token(index);
  if (!token) refuse_malformed(call.state(), call.state().find(call.text(0)), "malformed token");
  return *token;
}

void advance_to(const Call& call) {
  const std::uint64_t token = need_token(call, 1);
  const auto wait = call.has(2) ? std::chrono::milliseconds(call.number(2)) : kAdvanceWait;
  call.answer_fence(advance(call.state(), call.text(0), token, wait));
}

void check_token(const Call& call) {
  call.answer(to_text(check(call.state(), call.text(0), need_token(call, 1)).verdict));
}

void tell_fence(const Call& call) {
  // A check with any token tells it.
  call.answer_fence(check(call.state(), call.text(0), 1).max);
}

void tell_version(const Call& call) {
  call.answer(std::string_view(kVersion));
}

void tell_contract(const Call& call) {
  call.answer(kGuardContract);
}

// --- for owners ----------------------------------------------------------------------------------

void install_here(const Call& call) {
  install(call.state().db());
  call.answer(std::string_view(kVersion));
}

void uninstall_here(const Call& call) {
  uninstall(call.state());
}

// (table [, key column or expression [, mode [, guard]]])
void protect_table(const Call& call) {
  guard::Protection wanted{.table = call.text(0), .guard = call.text(3)};
  const std::string key = call.text(1);
  bool column = false;
  if (!key.empty()) {
    Statement listed(call.state().db(),
                     "SELECT 1 FROM pragma_table_xinfo(?1, 'main') WHERE name = ?2");
    column = listed.bind(wanted.table, key).step();
  }
  (column ? wanted.key : wanted.by) = key;
  if (call.has(2)) wanted.mode = call.text(2);
  call.answer(protect(call.state(), wanted));
}

void unprotect_table(const Call& call) {
  unprotect(call.state(), call.text(0));
}

void create(const Call& call) {
  create_guard(call.state(), call.text(0), call.has(1) && call.number(1) != 0);
}

void drop(const Call& call) {
  drop_guard(call.state(), call.text(0));
}

// (guard, mode [, percent [, reason]])
void change_mode(const Call& call) {
  guard::ModeChange change{call.text(0), call.text(1), {}, call.text(3)};
  if (call.has(2)) change.percent = static_cast<int>(call.number(2));
  set_mode(call.state(), change);
}

// (guard, policy, value [, reason])
void change_policy(const Call& call) {
  guard::PolicyChange change{.guard = call.text(0), .reason = call.text(3)};
  const std::string policy = call.text(1);
  if (policy == "require_token") {
    change.require_token = call.number(2) != 0;
  } else if (policy == "equal") {
    change.equal = call.text(2);
  } else if (policy == "max_step") {
    change.max_step = call.token(2).value_or(0);
  } else {
    fail(Word::kInvalid, "a policy is require_token, equal or max_step");
  }
  set_policy(call.state(), change);
}

// (reason [, guard])
void throw_switch(const Call& call) {
  call.answer(emergency(call.state(), call.text(1), call.text(0)));
}

void compact_guard(const Call& call) {
  call.answer(compact(call.state(), call.text(0), need_token(call, 1)));
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  append_json_text(out, text);
  return out + "\"";
}

// ([guard]): JSON
void tell_status(const Call& call) {
  std::string out = "[";
  for (const guard::Status& each : status(call.state(), call.text(0))) {
    if (out.size() > 1) out += ",";
    out += fmt::format(
        R"({{"guard":{},"kind":{},"mode":{},"require_token":{},"fence":{},"floor":{},"replayed":{},"stale":{},"missing":{},"ahead":{},"malformed":{},"would_refuse":{},"ready":{}}})",
        json_quoted(each.guard), json_quoted(each.kind), json_quoted(each.mode), each.require_token,
        each.fence ? std::to_string(*each.fence) : "null", each.floor, each.replayed, each.stale,
        each.missing, each.ahead, each.malformed, each.would_refuse, each.ready);
  }
  call.answer(out + "]");
}

// (): JSON
void tell_problems(const Call& call) {
  std::string out = "[";
  for (const guard::Problem& each : problems(call.state())) {
    if (out.size() > 1) out += ",";
    out += fmt::format(R"({{"severity":{},"guard":{},"object":{},"problem":{},"fix":{}}})",
                       json_quoted(each.severity), json_quoted(each.guard),
                       json_quoted(each.object), json_quoted(each.problem), json_quoted(each.fix));
  }
  call.answer(out + "]");
}

// --- the table of them ---------------------------------------------------------------------------

struct Function {
  const char* name;
  int arguments;
  void (*call)(sqlite3_context*, int, sqlite3_value**);
  int flags =
      // Not from triggers and views: a file from elsewhere must not carry tokens or change modes.
      SQLITE_DIRECTONLY;
};

constexpr std::array kFunctions{
    Function{"pawl_judge", 2, call<judge_connection>, SQLITE_INNOCUOUS},
    Function{"pawl_judge", 3, call<judge_row>, SQLITE_INNOCUOUS},
    Function{"pawl_use", 2, call<use>},
    Function{"pawl_use", 3, call<use>},
    Function{"pawl_admit", 2, call<as_user<admit_only>>},
    Function{"pawl_admit", 3, call<as_user<admit_only>>},
    Function{"pawl_advance", 2, call<as_user<advance_to>>},
    Function{"pawl_advance", 3, call<as_user<advance_to>>},
    Function{"pawl_check", 2, call<check_token>},
    Function{"pawl_fence", 1, call<tell_fence>},
    Function{"pawl_version", 0, call<tell_version>},
    Function{"pawl_contract", 0, call<tell_contract>},
    Function{"pawl_install", 0, call<install_here>},
    Function{"pawl_uninstall", 0, call<uninstall_here>},
    Function{"pawl_protect", 1, call<protect_table>},
    Function{"pawl_protect", 2, call<protect_table>},
    Function{"pawl_protect", 3, call<protect_table>},
    Function{"pawl_protect", 4, call<protect_table>},
    Function{"pawl_unprotect", 1, call<unprotect_table>},
    Function{"pawl_create_guard", 1, call<create>},
    Function{"pawl_create_guard", 2, call<create>},
    Function{"pawl_drop_guard", 1, call<drop>},
    Function{"pawl_set_mode", 2, call<change_mode>},
    Function{"pawl_set_mode", 3, call<change_mode>},
    Function{"pawl_set_mode", 4, call<change_mode>},
    Function{"pawl_set_policy", 3, call<change_policy>},
    Function{"pawl_set_policy", 4, call<change_policy>},
    Function{"pawl_emergency", 1, call<throw_switch>},
    Function{"pawl_emergency", 2, call<throw_switch>},
    Function{"pawl_compact", 2, call<compact_guard>},
    Function{"pawl_status", 0, call<tell_status>},
    Function{"pawl_status", 1, call<tell_status>},
    Function{"pawl_problems", 0, call<tell_problems>},
};

// C++ callers find the state of a connection through this.
constexpr const char* kPointerType = "pawl::sqlite::ConnectionState";

void pass_state(sqlite3_context* context, int, sqlite3_value**) {
  sqlite3_result_pointer(context, sqlite3_user_data(context), kPointerType, nullptr);
}

struct Taken {
  ConnectionState* state = nullptr;
};

void receive_state(sqlite3_context* context, int, sqlite3_value** values) {
  auto* taken = static_cast<Taken*>(sqlite3_value_pointer(values[1], kPointerType));
  if (taken != nullptr)
    taken->state = static_cast<ConnectionState*>(sqlite3_value_pointer(values[0], kPointerType));
  sqlite3_result_null(context);
}

}  // namespace

ConnectionState* state_of(sqlite3* db) {
  sqlite3_stmt* statement = nullptr;
  Taken taken;
  if (sqlite3_prepare_v2(db, "SELECT pawl_take_session(pawl_the_session(), ?1)", -1, &statement,
                         nullptr) == SQLITE_OK) {
    sqlite3_bind_pointer(statement, 1, &taken, kPointerType, nullptr);
    sqlite3_step(statement);
  }
  sqlite3_finalize(statement);
  return taken.state;
}

int add_functions(sqlite3* db) {
  if (state_of(db) != nullptr) return SQLITE_OK;
  auto owned = std::make_unique<ConnectionState>(db);
  ConnectionState* state = owned.get();
  int rc = watch_transactions(db, std::move(owned));
  const auto add = [&](const Function& function) {
    if (rc != SQLITE_OK) return;
    rc = sqlite3_create_function_v2(db, function.name, function.arguments,
                                    SQLITE_UTF8 | function.flags, state, function.call, nullptr,
                                    nullptr, nullptr);
  };
  for (const Function& function : kFunctions) add(function);
  add({"pawl_the_session", 0, pass_state});
  add({"pawl_take_session", 2, receive_state});
  return rc;
}

}  // namespace pawl::sqlite
