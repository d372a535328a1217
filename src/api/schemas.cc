// The shapes of bodies. Tests compare them with what pawld really takes and answers. The members of
// AcquireRequest come from the table of ACQUIRE's options; the codes of Problem are added by
// openapi_document(), from the table of the reference page.
#include <boost/json/parse.hpp>

#include "api/openapi.h"
#include "base/limits.h"
#include "wire/acquire_options.h"

namespace pawl::api {
namespace {

namespace json = boost::json;
using wire::AcquireOption;
using wire::OptionKind;

json::object schema_of(const AcquireOption& option) {
  json::object schema;
  switch (option.kind) {
    case OptionKind::kMillis:
    case OptionKind::kNumber:
      schema = {{"type", "integer"}, {"minimum", option.min}, {"maximum", option.member_max()}};
      if (option.omitted) schema["default"] = *option.omitted;
      break;
    case OptionKind::kFlag:
      schema = {{"type", "boolean"}, {"default", false}};
      break;
    case OptionKind::kText:
    case OptionKind::kRequestId:
      schema = {{"type", "string"}, {"minLength", option.min}, {"maxLength", option.max}};
      break;
    case OptionKind::kMeta:
      schema = {{"type", "object"},
                {"additionalProperties", {{"type", "string"}}},
                {"maxProperties", limits::kMetaPairs}};
      break;
  }
  schema["description"] = json::value(option.description);
  return schema;
}

constexpr std::string_view kShapes = R"json({
  "Token": {"type": "integer", "minimum": 1, "maximum": 9007199254740991,
    "description": "the fencing token: greater with every grant"},
  "LockName": {"type": "string", "minLength": 1, "maxLength": 512,
    "description": "1 to 512 bytes of UTF-8 without control characters"},
  "Mode": {"enum": ["exclusive", "shared", "limit"]},
  "How": {"enum": ["released", "expired", "broken", "max_hold"], "description": "how a lease ended"},
  "HowOrUnknown": {"enum": ["released", "expired", "broken", "max_hold", "unknown"],
    "description": "how a lease ended; unknown: it never existed, or its end is forgotten (pawld restarted, or 100000 more leases have ended)"},
  "UnixMs": {"type": "integer", "minimum": 0, "description": "a time: milliseconds since 1970-01-01T00:00:00Z, by the wall clock of pawld"},
  "AcquireRequest": {"type": "object", "additionalProperties": false, "required": ["locks", "ttl_ms"], "properties": {
    "locks": {"type": "array", "items": {"$ref": "#/components/schemas/LockName"}, "minItems": 1, "maxItems": 16, "uniqueItems": true, "description": "taken together, or not at all"}}},
  "Grant": {"type": "object", "required": ["lease", "token", "floor", "slot", "ttl_ms", "waited_ms"], "properties": {
    "lease": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "a secret: every client that knows it counts as the holder"},
    "token": {"$ref": "#/components/schemas/Token"},
    "floor": {"$ref": "#/components/schemas/Token", "description": "the token, except under shared: the least token that a reader's resource should admit"},
    "slot": {"type": ["integer", "null"], "description": "which of the limit holders this is, from 0; null without limit"},
    "ttl_ms": {"type": "integer"},
    "waited_ms": {"type": "integer"}}},
  "Renewal": {"type": "object", "required": ["expires_in_ms", "release_wanted"], "properties": {
    "expires_in_ms": {"type": "integer"},
    "release_wanted": {"type": ["object", "null"], "description": "somebody wants this lease released: the newest ask; null: nobody has asked", "required": ["ask", "lock", "by", "reason"], "properties": {
      "ask": {"type": "integer", "description": "greater than that of any ask before: a holder that has seen this number knows the ask"},
      "lock": {"type": "string"},
      "by": {"type": "string", "description": "who asks: the user, if there are users, and the owner that was given"},
      "reason": {"type": "string", "description": "may be empty"}}}}},
  "AskRequest": {"type": "object", "additionalProperties": false, "properties": {
    "owner": {"type": "string", "minLength": 1, "maxLength": 128, "description": "who asks, for people"},
    "reason": {"type": "string", "minLength": 1, "maxLength": 256, "description": "why, for people: holders and observers are told"}}},
  "Asked": {"type": "object", "required": ["lock", "state", "holders", "token"], "properties": {
    "lock": {"type": "string"},
    "state": {"enum": ["asked", "already_asked", "not_held"], "description": "already_asked: less than a second ago, and that ask stands"},
    "holders": {"type": "integer", "description": "how many were asked"},
    "token": {"type": ["integer", "null"], "description": "the greatest of theirs; null when not held"}}},
  "Release": {"type": "object", "required": ["released", "how"], "properties": {
    "released": {"type": "boolean", "description": "this request ended the lease; false: it was over before"},
    "how": {"$ref": "#/components/schemas/HowOrUnknown"}}},
  "Holder": {"type": "object", "required": ["token", "owner", "mode", "locks", "held_ms", "expires_in_ms"], "properties": {
    "token": {"$ref": "#/components/schemas/Token"},
    "owner": {"type": "string"},
    "mode": {"$ref": "#/components/schemas/Mode"},
    "limit": {"type": "integer"},
    "slot": {"type": ["integer", "null"]},
    "locks": {"type": "array", "items": {"type": "string"}},
    "held_ms": {"type": "integer"},
    "expires_in_ms": {"type": "integer"},
    "renewals": {"type": "integer"},
    "breaking": {"type": "boolean", "description": "its renewals are refused: someone has broken it"},
    "meta": {"type": "object", "additionalProperties": {"type": "string"}}}},
  "Waiter": {"type": "object", "required": ["owner", "mode", "waited_ms"], "properties": {
    "owner": {"type": "string"}, "mode": {"$ref": "#/components/schemas/Mode"}, "waited_ms": {"type": "integer"}}},
  "Lock": {"type": "object", "required": ["lock", "state", "token", "holder_count", "holders", "waiters", "queue", "last_token", "label"], "properties": {
    "lock": {"type": "string"},
    "state": {"enum": ["free", "held", "closed"], "description": "closed: not held, and not granted before reopens_in_ms (delay_ms)"},
    "token": {"type": ["integer", "null"], "description": "the greatest live one"},
    "holder_count": {"type": "integer", "description": "all of them"},
    "holders": {"type": "array", "items": {"$ref": "#/components/schemas/Holder"}, "description": "a page of them, in order of token: the first 16 unless asked for more"},
    "waiters": {"type": "integer"},
    "queue": {"type": "array", "items": {"$ref": "#/components/schemas/Waiter"}},
    "last_token": {"type": ["integer", "null"], "description": "the greatest that pawld remembers for this lock; null: none"},
    "label": {"type": "string", "description": "what pawld knows about the guards of the resource (pawl show: protection). It cannot see them: unknown until one reports"},
    "reopens_in_ms": {"type": "integer"}}},
  "Page": {"type": "object", "required": ["cursor", "locks"], "properties": {
    "cursor": {"type": "string"}, "locks": {"type": "array", "items": {"$ref": "#/components/schemas/Lock"}}}},
  "PastLease": {"type": "object", "required": ["token", "owner", "locks", "mode", "granted", "ended", "how"], "properties": {
    "token": {"$ref": "#/components/schemas/Token"},
    "owner": {"type": "string"},
    "locks": {"type": "array", "items": {"type": "string"}},
    "mode": {"$ref": "#/components/schemas/Mode"},
    "granted": {"$ref": "#/components/schemas/UnixMs"},
    "ended": {"$ref": "#/components/schemas/UnixMs"},
    "how": {"$ref": "#/components/schemas/How"}}},
  "History": {"type": "object", "required": ["lock", "history"], "properties": {
    "lock": {"type": "string"}, "history": {"type": "array", "items": {"$ref": "#/components/schemas/PastLease"}}}},
  "BreakRequest": {"type": "object", "additionalProperties": false, "required": ["token", "reason"], "properties": {
    "token": {"$ref": "#/components/schemas/Token", "description": "of the lease to break, as the lock shows it"},
    "now": {"type": "boolean", "default": false, "description": "hand its locks on at once, instead of when the lease has run out"},
    "reason": {"type": "string", "minLength": 1, "maxLength": 256, "description": "why, for people: it is logged, and sent to observers"}}},
  "Broken": {"type": "object", "required": ["lock", "token", "state"], "properties": {
    "lock": {"type": "string"}, "token": {"$ref": "#/components/schemas/Token"}, "state": {"enum": ["breaking", "broken"]}}},
  "Status": {"type": "object", "required": ["version", "store", "role", "incarnation", "last_token"], "properties": {
    "version": {"type": "string"},
    "store": {"type": "string"},
    "role": {"enum": ["loading", "active", "standby"]},
    "state": {"enum": ["granting", "loading", "restoring", "full", "standby"], "description": "whether locks are granted, and if not, why"},
    "epoch": {"type": "integer", "description": "with --store etcd: grows each time that another pawld becomes active; otherwise 0"},
    "active": {"type": "string", "description": "the RESP address of the pawld that grants"},
    "incarnation": {"type": "string"},
    "last_token": {"type": "integer"},
    "oldest_live_token": {"type": ["integer", "null"]},
    "locks": {"type": "integer"},
    "leases": {"type": "integer"},
    "waiters": {"type": "integer"},
    "uptime_ms": {"type": "integer"},
    "restoring_ms": {"type": "integer", "description": "after a restore: until grants begin"},
    "limits": {"type": "object", "description": "leases, lease_bytes, waiters, observers, history_bytes, output_bytes: how much of each limit is used", "additionalProperties": {"type": "object", "required": ["use", "limit"], "properties": {
      "use": {"type": "integer"}, "limit": {"type": "integer"},
      "greatest_user": {"type": "integer", "description": "the most that one user has"},
      "per_user": {"type": "integer", "description": "what each user may have"}}}},
    "cluster": {"type": "object", "description": "with --store etcd: which pawld run, and how etcd is", "properties": {
      "name": {"type": "string"},
      "health": {"type": "string", "description": "of etcd: how many endpoints answer, and which one leads"},
      "nodes": {"type": "array", "items": {"type": "object", "properties": {
        "address": {"type": "string"}, "role": {"enum": ["active", "standby", "silent"]},
        "pid": {"type": "integer"}, "self": {"type": "boolean"}}}},
      "etcd": {"type": "array", "items": {"type": "object", "properties": {
        "endpoint": {"type": "string"}, "usable": {"type": "boolean"}, "leader": {"type": "boolean"},
        "version": {"type": "string"}, "problem": {"type": "string", "description": "empty: none"}}}}}}}},
  "Health": {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["ok", "ready"]}}},
  "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
  "Event": {"type": "object", "required": ["event", "lock"], "description": "the data of one event", "properties": {
    "event": {"enum": ["granted", "released", "expired", "breaking", "broken", "raised", "release_wanted", "reset", "cut"]},
    "id": {"type": "string", "description": "of every event but cut"},
    "lock": {"type": "string", "description": "empty for raised, reset and cut, which concern every lock"},
    "token": {"$ref": "#/components/schemas/Token"},
    "mode": {"$ref": "#/components/schemas/Mode"},
    "owner": {"type": "string", "description": "of the lease; of release_wanted: who asks"},
    "how": {"$ref": "#/components/schemas/How"},
    "reason": {"type": "string", "description": "why the lease was broken, the token raised or the release wanted, as somebody wrote it"},
    "code": {"type": "string", "description": "of cut: why, as in a problem"},
    "detail": {"type": "string", "description": "of cut"},
    "retryable": {"type": "boolean", "description": "of cut"},
    "at": {"$ref": "#/components/schemas/UnixMs"}}},
  "Problem": {"type": "object", "required": ["type", "title", "status", "detail", "code", "retryable"], "properties": {
    "type": {"type": "string", "format": "uri"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string"},
    "code": {"type": "string", "description": "stable; decide by this. Later versions may add codes"},
    "retryable": {"type": "boolean", "description": "the same request may succeed later"}}},
  "Lost": {"allOf": [{"$ref": "#/components/schemas/Problem"}], "type": "object", "properties": {
    "how": {"$ref": "#/components/schemas/HowOrUnknown"}}},
  "Held": {"allOf": [{"$ref": "#/components/schemas/Problem"}], "type": "object", "properties": {
    "lock": {"type": "string"},
    "owner": {"type": "string"},
    "token": {"$ref": "#/components/schemas/Token"},
    "expires_in_ms": {"type": "integer"},
    "reopens_in_ms": {"type": "integer"}}}
})json";

}  // namespace

json::value schemas() {
  json::value shapes = json::parse(kShapes);
  json::object& acquire = shapes.at("AcquireRequest").at("properties").as_object();
  for (const AcquireOption& option : wire::acquire_options()) {
    if (!option.member.empty()) acquire[option.member] = schema_of(option);
  }
  return shapes;
}

}  // namespace pawl::api
