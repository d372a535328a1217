// The shapes of bodies. Tests compare them with what pawld really takes and answers. The codes of
// Problem are added by openapi_document(), from the table of the reference page.
#include "api/openapi.h"

namespace pawl::api {

std::string_view schemas() {
  return R"json({
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
    "locks": {"type": "array", "items": {"$ref": "#/components/schemas/LockName"}, "minItems": 1, "maxItems": 16, "uniqueItems": true, "description": "taken together, or not at all"},
    "ttl_ms": {"type": "integer", "minimum": 100, "maximum": 86400000, "description": "how long it lives without being renewed; at most max_ttl_ms of the configuration (default 600000)"},
    "wait_ms": {"type": "integer", "minimum": 0, "maximum": 60000, "default": 0, "description": "how long to wait in line; 0: not at all"},
    "owner": {"type": "string", "minLength": 1, "maxLength": 128, "description": "a label for people; proves nothing"},
    "shared": {"type": "boolean", "default": false, "description": "as a reader among readers"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1024, "default": 1, "description": "as one of up to so many holders at a time; 1: exclusively"},
    "delay_ms": {"type": "integer", "minimum": 0, "maximum": 60000, "default": 0, "description": "the lock stays closed for so long after a lease that was not released"},
    "max_hold_ms": {"type": "integer", "minimum": 0, "maximum": 31536000000, "default": 0, "description": "the lease ends after so long, however often it is renewed; at least ttl_ms. 0: no cap"},
    "meta": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 8, "description": "shown with the lock; at most 1024 bytes in all"}}},
  "Grant": {"type": "object", "required": ["lease", "token", "floor", "slot", "ttl_ms", "waited_ms"], "properties": {
    "lease": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "a secret: whoever knows it is the holder"},
    "token": {"$ref": "#/components/schemas/Token"},
    "floor": {"$ref": "#/components/schemas/Token", "description": "the token, except under shared: the least token that a reader's resource should admit"},
    "slot": {"type": ["integer", "null"], "description": "which of the limit holders this is, from 0; null without limit"},
    "ttl_ms": {"type": "integer"},
    "waited_ms": {"type": "integer"}}},
  "Renewal": {"type": "object", "required": ["expires_in_ms"], "properties": {"expires_in_ms": {"type": "integer"}}},
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
  "Lock": {"type": "object", "required": ["lock", "state", "token", "holders", "waiters", "queue", "last_token", "label"], "properties": {
    "lock": {"type": "string"},
    "state": {"enum": ["free", "held", "closed"], "description": "closed: not held, and not granted before reopens_in_ms (delay_ms)"},
    "token": {"type": ["integer", "null"], "description": "the greatest live one"},
    "holders": {"type": "array", "items": {"$ref": "#/components/schemas/Holder"}},
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
    "role": {"enum": ["loading", "active"]},
    "state": {"enum": ["granting", "loading", "restoring", "full"], "description": "whether locks are granted, and if not, why"},
    "epoch": {"type": "integer", "description": "always 0: there is one pawld"},
    "active": {"type": "string", "description": "the RESP address of the pawld that grants"},
    "incarnation": {"type": "string"},
    "last_token": {"type": "integer"},
    "oldest_live_token": {"type": ["integer", "null"]},
    "locks": {"type": "integer"},
    "leases": {"type": "integer"},
    "waiters": {"type": "integer"},
    "uptime_ms": {"type": "integer"},
    "restoring_ms": {"type": "integer", "description": "after a restore: until grants begin"}}},
  "Health": {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["ok", "ready"]}}},
  "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
  "Event": {"type": "object", "required": ["event", "lock"], "description": "the data of one event", "properties": {
    "event": {"enum": ["granted", "released", "expired", "breaking", "broken", "raised", "reset", "cut"]},
    "id": {"type": "string", "description": "of every event but cut"},
    "lock": {"type": "string", "description": "empty for raised, reset and cut, which concern every lock"},
    "token": {"$ref": "#/components/schemas/Token"},
    "mode": {"$ref": "#/components/schemas/Mode"},
    "owner": {"type": "string"},
    "how": {"$ref": "#/components/schemas/How"},
    "reason": {"type": "string", "description": "the text of whoever broke the lease or raised the token"},
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
}

}  // namespace pawl::api
