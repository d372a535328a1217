// The shapes of bodies. Tests compare them with what pawld really takes and answers.
#include "api/openapi.h"

namespace pawl::api {

std::string_view schemas() {
  return R"json({
  "Token": {"type": "integer", "minimum": 1, "maximum": 9007199254740991,
    "description": "the fencing token: greater with every grant"},
  "AcquireRequest": {"type": "object", "additionalProperties": false, "required": ["locks", "ttl_ms"], "properties": {
    "locks": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 16, "description": "taken together, or not at all"},
    "ttl_ms": {"type": "integer", "minimum": 100, "description": "how long it lives without being renewed"},
    "wait_ms": {"type": "integer", "minimum": 0, "maximum": 60000, "default": 0, "description": "how long to wait in line"},
    "owner": {"type": "string", "maxLength": 128, "description": "a label for people; proves nothing"},
    "shared": {"type": "boolean", "default": false, "description": "as a reader among readers"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1024, "default": 1, "description": "as one of up to so many holders"},
    "delay_ms": {"type": "integer", "minimum": 0, "maximum": 60000, "default": 0, "description": "the lock stays closed for so long after a lease that was not released"},
    "max_hold_ms": {"type": "integer", "minimum": 0, "default": 0, "description": "renewing ends after so long; 0: never"},
    "meta": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 8, "description": "shown to whoever looks"}}},
  "Grant": {"type": "object", "required": ["lease", "token", "floor", "slot", "ttl_ms", "waited_ms"], "properties": {
    "lease": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "a secret: whoever knows it is the holder"},
    "token": {"$ref": "#/components/schemas/Token"},
    "floor": {"$ref": "#/components/schemas/Token"},
    "slot": {"type": ["integer", "null"]},
    "ttl_ms": {"type": "integer"},
    "waited_ms": {"type": "integer"}}},
  "Renewal": {"type": "object", "required": ["expires_in_ms"], "properties": {"expires_in_ms": {"type": "integer"}}},
  "Holder": {"type": "object", "required": ["token", "owner", "mode", "locks", "held_ms", "expires_in_ms"], "properties": {
    "token": {"$ref": "#/components/schemas/Token"},
    "owner": {"type": "string"},
    "mode": {"enum": ["exclusive", "shared", "limit"]},
    "limit": {"type": "integer"},
    "slot": {"type": ["integer", "null"]},
    "locks": {"type": "array", "items": {"type": "string"}},
    "held_ms": {"type": "integer"},
    "expires_in_ms": {"type": "integer"},
    "renewals": {"type": "integer"},
    "breaking": {"type": ["boolean", "integer"]},
    "meta": {"type": "object", "additionalProperties": {"type": "string"}}}},
  "Waiter": {"type": "object", "required": ["owner", "mode", "waited_ms"], "properties": {
    "owner": {"type": "string"}, "mode": {"type": "string"}, "waited_ms": {"type": "integer"}}},
  "Lock": {"type": "object", "required": ["lock", "state", "token", "holders", "waiters", "queue", "last_token", "label"], "properties": {
    "lock": {"type": "string"},
    "state": {"enum": ["free", "held", "closed"]},
    "token": {"type": ["integer", "null"], "description": "the greatest live one"},
    "holders": {"type": "array", "items": {"$ref": "#/components/schemas/Holder"}},
    "waiters": {"type": "integer"},
    "queue": {"type": "array", "items": {"$ref": "#/components/schemas/Waiter"}},
    "last_token": {"type": ["integer", "null"]},
    "label": {"type": "string"},
    "reopens_in_ms": {"type": "integer"}}},
  "Page": {"type": "object", "required": ["cursor", "locks"], "properties": {
    "cursor": {"type": "string"}, "locks": {"type": "array", "items": {"$ref": "#/components/schemas/Lock"}}}},
  "Epoch": {"type": "object", "required": ["token", "owner", "locks", "mode", "granted", "ended", "how"], "properties": {
    "token": {"$ref": "#/components/schemas/Token"},
    "owner": {"type": "string"},
    "locks": {"type": "array", "items": {"type": "string"}},
    "mode": {"type": "string"},
    "granted": {"type": "integer", "description": "Unix ms"},
    "ended": {"type": "integer", "description": "Unix ms"},
    "how": {"type": "string"}}},
  "History": {"type": "object", "required": ["lock", "history"], "properties": {
    "lock": {"type": "string"}, "history": {"type": "array", "items": {"$ref": "#/components/schemas/Epoch"}}}},
  "BreakRequest": {"type": "object", "additionalProperties": false, "required": ["token", "reason"], "properties": {
    "token": {"$ref": "#/components/schemas/Token"},
    "now": {"type": "boolean", "default": false},
    "reason": {"type": "string", "minLength": 1, "maxLength": 256}}},
  "Broken": {"type": "object", "required": ["lock", "token", "state"], "properties": {
    "lock": {"type": "string"}, "token": {"$ref": "#/components/schemas/Token"}, "state": {"enum": ["breaking", "broken"]}}},
  "Status": {"type": "object", "required": ["version", "store", "role", "incarnation", "last_token"], "properties": {
    "version": {"type": "string"},
    "store": {"type": "string"},
    "role": {"type": "string"},
    "epoch": {"type": "integer"},
    "active": {"type": "string"},
    "incarnation": {"type": "string"},
    "last_token": {"type": "integer"},
    "oldest_live_token": {"type": ["integer", "null"]},
    "locks": {"type": "integer"},
    "leases": {"type": "integer"},
    "waiters": {"type": "integer"},
    "uptime_ms": {"type": "integer"},
    "restoring_ms": {"type": "integer", "description": "after a restore: until grants begin"}}},
  "Health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
  "Document": {"type": "object", "required": ["openapi", "info", "paths"]},
  "Event": {"type": "object", "required": ["event", "id", "lock"], "description": "the data of one event", "properties": {
    "event": {"enum": ["granted", "released", "expired", "breaking", "broken", "raised", "reset"]},
    "id": {"type": "string"},
    "lock": {"type": "string", "description": "empty for raised and reset, which concern every lock"},
    "token": {"$ref": "#/components/schemas/Token"},
    "mode": {"type": "string"},
    "owner": {"type": "string"},
    "how": {"type": "string"},
    "reason": {"type": "string"},
    "at": {"type": "integer", "description": "Unix ms"}}},
  "Problem": {"type": "object", "required": ["type", "title", "status", "detail", "code", "retryable"], "properties": {
    "type": {"type": "string", "format": "uri"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string"},
    "code": {"type": "string", "description": "stable; decide by this"},
    "retryable": {"type": "boolean", "description": "the same request may succeed later"}}},
  "Held": {"allOf": [{"$ref": "#/components/schemas/Problem"}], "type": "object", "properties": {
    "lock": {"type": "string"},
    "owner": {"type": "string"},
    "token": {"$ref": "#/components/schemas/Token"},
    "expires_in_ms": {"type": "integer"},
    "reopens_in_ms": {"type": "integer"}}}
})json";
}

}  // namespace pawl::api
