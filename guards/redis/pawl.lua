#!lua name=pawl
-- Pawl's guard for Redis 7 and later, a function library.
-- Install it with `pawl guard install redis`, or redis-cli -x FUNCTION LOAD REPLACE < pawl.lua
--
--   FCALL pawl_write 2 {orders}:pawl {orders}:7 orders 34 "" SET {orders}:7 shipped
--
-- checks token 34 and runs the command in one atomic step. It answers [verdict, fence, the
-- command's own answer], or an error that begins with PAWLSTALE, PAWLMISSING, PAWLAHEAD,
-- PAWLMALFORMED, PAWLUNGUARDED or PAWLINVALID; then the command was not run.
--
-- All that the guard NAME remembers is in one hash, {NAME}:pawl. So nothing of it can be lost
-- alone, and a guard that is lost refuses every write.
--
--   policy         JSON: mode, percent, require_token, equal, max_step, floor, kind, by, keys.
--                  Numbers are strings, because JSON in Lua keeps 14 digits only.
--   f, f:KEY       the fence of NAME, or of NAME:KEY: "34" (advanced to), "34 0" (written), "34 8"
--                  (written, and 8 was the last operation)
--   n:VERDICT      how often
--   since          when the mode was set
--   before:VERDICT n:VERDICT at that time
--   server         the replication id of the server on which the fences were last known to be
--                  whole; `lost`: the guard was lost, and made anew without them
--
-- The hash tag {NAME} puts it into the slot of a Redis Cluster in which all keys with that tag are.
--
-- For older servers the same text without its first line is a script for EVAL. Its first argument
-- is the name of the function.

local VERSION = '0.1.0'
local CONTRACT = '1'
local TOKEN_MAX = '9007199254740991'  -- 2^53 - 1: a Lua number holds it exactly
local STEP_MIN = 2199023255552  -- 2^41
local STEP_DEFAULT = 17592186044416  -- 2^44
local KEY_MAX = 512
local AUDIT_MAX = 1000
local REMEMBERED_MAX = 10000  -- bytes of a text
local ARGUMENTS_MAX = 7000  -- of a command: what Lua can pass on

-- Commands whose only key is the first argument. COMMAND GETKEYS tells the keys of all others.
local FIRST_KEY = {
  append = 1, decr = 1, decrby = 1, expire = 1, expireat = 1, geoadd = 1, getdel = 1, getex = 1,
  getset = 1, hdel = 1, hincrby = 1, hincrbyfloat = 1, hmset = 1, hset = 1, hsetnx = 1, incr = 1,
  incrby = 1, incrbyfloat = 1, linsert = 1, lpop = 1, lpush = 1, lpushx = 1, lrem = 1, lset = 1,
  ltrim = 1, persist = 1, pexpire = 1, pexpireat = 1, pfadd = 1, psetex = 1, rpop = 1, rpush = 1,
  rpushx = 1, sadd = 1, set = 1, setbit = 1, setex = 1, setnx = 1, setrange = 1, spop = 1,
  srem = 1, xadd = 1, xdel = 1, xtrim = 1, zadd = 1, zincrby = 1, zpopmax = 1, zpopmin = 1,
  zrem = 1}

local function digits(number)
  return string.format('%.0f', number)
end

-- What `make` makes of a text is remembered for at most 1000 of them: a holder comes with the same
-- token and the same names again and again. (EVAL has none from before.)
local function remembering(make)
  local known, count = {}, 0
  return function(text)
    local found = known[text]
    if found ~= nil then return found end
    if #text > REMEMBERED_MAX then return make(text) end
    found = make(text)
    if count >= 1000 then known, count = {}, 0 end
    known[text] = found
    count = count + 1
    return found
  end
end

-- 1 … 2^53 - 1 in decimal digits, without a leading zero. false: it is no such number.
local parse_number = remembering(function(text)
  if not string.match(text, '^[1-9]%d*$') then return false end
  if #text > #TOKEN_MAX or (#text == #TOKEN_MAX and text > TOKEN_MAX) then return false end
  return tonumber(text)
end)

local function refuse(word, text)
  return {err = word .. ' ' .. text}
end

-- --- What is stored ------------------------------------------------------------------------------

local decode = remembering(function(text)
  local policy = cjson.decode(text)
  policy.floor = tonumber(policy.floor)
  policy.max_step = tonumber(policy.max_step)
  policy.percent = tonumber(policy.percent)
  policy.prefixes = {}
  for i, pattern in ipairs(policy.keys) do
    local prefix = string.match(pattern, '^(.*)%*$')
    policy.prefixes[i] = {text = prefix or pattern, exact = not prefix}
  end
  return policy
end)

local function encode(policy)
  return cjson.encode({
    mode = policy.mode, percent = digits(policy.percent), require_token = policy.require_token,
    equal = policy.equal, max_step = digits(policy.max_step), floor = digits(policy.floor),
    kind = policy.kind, by = policy.by, keys = policy.keys})
end

-- A decoded policy that may be changed.
local function copy(policy)
  local made = {}
  for name, value in pairs(policy) do made[name] = value end
  made.keys = {}
  for i, pattern in ipairs(policy.keys) do made.keys[i] = pattern end
  return made
end

local function field_of(key)
  return key == nil and 'f' or 'f:' .. key
end

local split_fence = remembering(function(text)
  local token, operation = string.match(text, '^(%d+) ?(%d*)$')
  return {tonumber(token), tonumber(operation)}
end)

-- "34 8": 34 and 8. "34": 34 and nil. false: 0 and nil.
local function parse_fence(text)
  if not text then return 0, nil end
  local parts = split_fence(text)
  return parts[1], parts[2]
end

local function count(guard_key, verdict)
  redis.call('HINCRBY', guard_key, 'n:' .. verdict, 1)
end

local function audit(guard_key, what, detail, reason)
  local list = guard_key .. ':audit'
  local at = redis.call('TIME')[1]
  redis.call('LPUSH', list, cjson.encode({at = at, what = what, detail = detail, reason = reason}))
  redis.call('LTRIM', list, 0, AUDIT_MAX - 1)
end

-- --- Names ---------------------------------------------------------------------------------------

local split_resource = remembering(function(resource)
  local colon = string.find(resource, ':', 1, true)
  local guard = colon and string.sub(resource, 1, colon - 1) or resource
  return {'{' .. guard .. '}:pawl', colon and string.sub(resource, colon + 1) or nil}
end)

-- The key of GUARD:KEY, nil for GUARD; and an error if this is not the hash of that guard.
local function split(guard_key, resource)
  local parts = split_resource(resource)
  local own, key = parts[1], parts[2]
  if guard_key ~= own then
    return nil, refuse('PAWLINVALID', 'the first key of a call for ' .. resource .. ' is ' .. own)
  end
  if key and #key > KEY_MAX then
    return nil, refuse('PAWLINVALID', 'a key has at most ' .. KEY_MAX .. ' bytes')
  end
  return key, nil
end

local function unguarded(resource)
  return refuse('PAWLUNGUARDED', "unknown resource '" .. resource .. "': put it under guard " ..
                'with pawl guard protect redis, or find out how its guard was lost')
end

local function is_guards_own(key)
  if string.byte(key) ~= 123 then return false end  -- {
  return string.find(key, '^{[^}]*}:pawl$') or string.find(key, '^{[^}]*}:pawl:audit$')
end

-- Which resource of the guard a Redis key belongs to: nil for the guard's only one. false: it is
-- not under this guard.
local function resource_key_of(policy, key)
  if is_guards_own(key) then return false end
  for _, prefix in ipairs(policy.prefixes) do
    if prefix.exact then
      if key == prefix.text then return nil end
    elseif string.sub(key, 1, #prefix.text) == prefix.text then
      if policy.kind == 'static' then return nil end
      local rest = string.sub(key, #prefix.text + 1)
      local ends = policy.kind == 'by' and string.find(rest, policy.by, 1, true)
      return ends and string.sub(rest, 1, ends - 1) or rest
    end
  end
  return false
end

-- How often one of these words is in the command, from a position on.
local function count_words(command, from, words)
  local n = 0
  for i = from, #command do
    if words[string.lower(command[i])] then n = n + 1 end
  end
  return n
end

-- Where the options of commands begin whose key STORE names; the last STORE counts, but COMMAND
-- GETKEYS, and so ACL rules, see the first only.
local STORE_FROM = {georadius = 7, georadiusbymember = 6}

-- Why a command reaches further than its keys tell. nil: it does not.
local function reaches_further(name, command)
  if name == 'move' or name == 'migrate' or
     (name == 'copy' and count_words(command, 4, {db = true}) > 0) then
    return 'writes to another database, where this guard does not judge'
  end
  if STORE_FROM[name] and
     count_words(command, STORE_FROM[name], {store = true, storedist = true}) > 1 then
    return 'names more than one key to STORE in'
  end
  return nil
end

local has_first_key = remembering(function(name)
  return FIRST_KEY[string.lower(name)] ~= nil
end)

local function keys_of(name, command)
  if command[2] and FIRST_KEY[name] then return {command[2]} end
  return redis.pcall('COMMAND', 'GETKEYS', unpack(command))
end

-- The command must touch nothing but what its token is for. nil: it does not.
local function check_keys(policy, resources, command)
  if #command > ARGUMENTS_MAX then
    return refuse('PAWLINVALID', 'a command has at most ' .. ARGUMENTS_MAX .. ' words')
  end
  local name = string.lower(command[1])
  local further = reaches_further(name, command)
  if further then return refuse('PAWLINVALID', 'this ' .. command[1] .. ' ' .. further) end
  local keys = keys_of(name, command)
  if keys.err then
    return refuse('PAWLINVALID', 'the keys of ' .. command[1] .. ' are not known: ' .. keys.err)
  end
  for _, key in ipairs(keys) do
    local owner = resource_key_of(policy, key)
    local named = false
    for _, resource in ipairs(resources) do named = named or resource.key == owner end
    if owner == false then
      return refuse('PAWLUNGUARDED', 'the key ' .. key .. ' is not under the guard of ' ..
                    resources[1].name .. ', which the token is for')
    elseif not named then
      return refuse('PAWLMISSING', 'the key ' .. key .. ' is not part of ' .. resources[1].name ..
                    ', which the token is for. pawl_write_all takes several resources')
    end
  end
  return nil
end

-- --- The rules -----------------------------------------------------------------------------------

local function enforces(policy, resource)
  if policy.mode ~= 'canary' then return policy.mode == 'enforce' end
  return tonumber(string.sub(redis.sha1hex(resource), 1, 8), 16) % 100 < policy.percent
end

-- The verdict of the numbers alone, and the fence they were compared with.
local function judge(policy, token, fence)
  local max = math.max(fence, policy.floor)
  if not token then return 'missing', max end
  if token < max then return 'stale', max end
  if max > 0 and token - max > policy.max_step then return 'ahead', max end
  return 'admitted', max
end

-- The same with operation numbers and the policy `equal`. The third value is what to store.
local function judge_write(policy, token, operation, stored)
  local fence, last = parse_fence(stored)
  local verdict, max = judge(policy, token, fence)
  if verdict ~= 'admitted' then return verdict, max end
  if token > fence then return 'admitted', max, digits(token) .. ' ' .. digits(operation or 0) end
  if operation then
    if operation == last then return 'replayed', max end
    if last and operation < last then return 'stale', max end
    return 'admitted', max, digits(token) .. ' ' .. digits(operation)
  end
  if policy.equal == 'accept' then return 'admitted', max end
  if last then return policy.equal == 'once' and 'missing' or 'stale', max end
  return 'admitted', max, digits(token) .. ' 0'
end

local STALE = 'stale token %s for %s: token %s has been here. Stop; a retry cannot succeed. A ' ..
  'newer holder has taken over, or a holder of another lock writes here: one guarded resource ' ..
  'needs one lock. If pawld still grants tokens below %s, run: pawl raise %s --reason TEXT'
local STALE_OPERATION = 'stale operation %s under token %s for %s: a later one was done, and ' ..
  'only the last is remembered'
local STALE_EQUAL = 'stale token %s for %s: it has been here. Stop; a retry cannot succeed. The ' ..
  'policy of this guard admits each token once'
local AHEAD = 'token %s for %s is further ahead of %s than the guard allows: forged or corrupt'
local MISSING_OPERATION = 'token %s was used for %s before, and is admitted again only with an ' ..
  'operation number'
local MISSING = 'write to %s without a token'

local function explain(verdict, resource, token, operation, max, policy)
  local format = string.format
  local given = token and digits(token) or 'none'
  local fence = digits(max)
  local numbers = format(' [resource=%s token=%s max=%s mode=%s]', resource, given, fence,
                         policy.mode)
  if verdict == 'ahead' then
    return refuse('PAWLAHEAD', format(AHEAD, given, resource, fence) .. numbers)
  end
  if verdict == 'missing' then
    local text = token and format(MISSING_OPERATION, given, resource) or format(MISSING, resource)
    return refuse('PAWLMISSING', text .. numbers)
  end
  local text = format(STALE, given, resource, fence, fence, fence)
  if token >= max then
    text = operation and format(STALE_OPERATION, digits(operation), given, resource) or
           format(STALE_EQUAL, given, resource)
  end
  return refuse('PAWLSTALE', text .. numbers)
end

local function malformed(guard_key, what, text)
  count(guard_key, 'malformed')
  local shown = string.gsub(string.sub(text, 1, 40), '%c', '?')
  return refuse('PAWLMALFORMED', 'malformed ' .. what .. " '" .. shown .. "'. It is a whole " ..
                'number from 1 to ' .. TOKEN_MAX .. ', as text without sign, space or leading zero')
end

-- --- Writing -------------------------------------------------------------------------------------

-- Of what was not admitted: the refusal, or nil where it is let through.
local function refusal(guard_key, policy, resource, verdict, token, operation, max)
  count(guard_key, verdict)
  local wrong = verdict ~= 'missing' or token or policy.require_token == 'on'
  if wrong and enforces(policy, resource.name) then
    return explain(verdict, resource.name, token, operation, max, policy)
  end
  if wrong and policy.mode ~= 'observe' then count(guard_key, 'would_refuse') end
  return nil
end

-- What to store when the command has failed: the fence stays raised, but nothing was done under it.
local function undo_of(stored, written)
  local fence = parse_fence(stored)
  local token = parse_fence(written)
  return token == fence and stored or digits(token)
end

-- The fence first: a user who may not write it has not run the command then. Nobody else runs
-- in between.
local function run(guard_key, resources, command)
  for _, resource in ipairs(resources) do
    if resource.write then redis.call('HSET', guard_key, field_of(resource.key), resource.write) end
  end
  local reply = redis.pcall(unpack(command))
  if type(reply) == 'table' and reply.err then
    for _, resource in ipairs(resources) do
      if resource.write then
        local undone = undo_of(resource.stored, resource.write)
        redis.call('HSET', guard_key, field_of(resource.key), undone)
      end
    end
  end
  return reply
end

-- resources: a list of {name, key}. The verdict is the first that is not `admitted`.
local function write(guard_key, resources, token_text, operation_text, command)
  local fields = {'policy'}
  for i, resource in ipairs(resources) do fields[i + 1] = field_of(resource.key) end
  local found = redis.call('HMGET', guard_key, unpack(fields))
  if not found[1] then return unguarded(resources[1].name) end
  local policy = decode(found[1])
  local token, operation
  if token_text ~= nil then
    token = parse_number(token_text)
    if not token then return malformed(guard_key, 'token', token_text) end
  end
  if operation_text ~= '' then
    operation = parse_number(operation_text)
    if not operation then return malformed(guard_key, 'operation number', operation_text) end
  end
  for _, resource in ipairs(resources) do
    if (policy.kind == 'static') ~= (resource.key == nil) then return unguarded(resource.name) end
  end
  local wrong_key = check_keys(policy, resources, command)
  if wrong_key then return wrong_key end

  local answer, answer_max = 'admitted', 0
  for i, resource in ipairs(resources) do
    resource.stored = found[i + 1]
    local verdict, max, to_store = judge_write(policy, token, operation, resource.stored)
    if verdict == 'replayed' then
      count(guard_key, verdict)
      return {verdict, digits(max), false}
    end
    if verdict ~= 'admitted' then
      local refused = refusal(guard_key, policy, resource, verdict, token, operation, max)
      if refused then return refused end
    end
    resource.write = to_store
    if i == 1 or answer == 'admitted' then answer, answer_max = verdict, max end
  end
  local reply = run(guard_key, resources, command)
  if type(reply) == 'table' and reply.err then return reply end
  -- An admitted token is the fence now, and its text is spelled as digits() would.
  return {answer, answer == 'admitted' and token_text or digits(answer_max), reply}
end

local function tail(list, from)
  local rest = {}
  for i = from, #list do rest[#rest + 1] = list[i] end
  return rest
end

-- nil: a write without a token. An empty text is a token that somebody forgot to fill in.
local function token_argument(text)
  if text == 'none' then return nil end
  return text
end

-- The usual write, without what only others need: a holder that writes again, to a key of a guard
-- with one fence. The same verdict as that of write(). nil: it is not such a write.
local function write_again(keys, args)
  local resource = split_resource(args[1])
  if args[3] ~= '' or resource[2] or keys[1] ~= resource[1] or #args > ARGUMENTS_MAX or
     not args[5] or not has_first_key(args[4]) then
    return nil
  end
  local found = redis.call('HMGET', keys[1], 'policy', 'f')
  local policy, token = found[1] and decode(found[1]), parse_number(args[2])
  if not policy or not token or policy.kind ~= 'static' or policy.equal ~= 'accept' or
     token ~= parse_fence(found[2]) or token < policy.floor or
     resource_key_of(policy, args[5]) ~= nil then
    return nil
  end
  local reply = redis.pcall(unpack(args, 4))
  if type(reply) == 'table' and reply.err then return reply end
  return {'admitted', args[2], reply}
end

local functions = {}
local reads_only = {}

-- KEYS: {GUARD}:pawl, and the command's keys. ARGV: RESOURCE TOKEN OPERATION COMMAND ARGUMENT…
-- TOKEN `none`: a write without one. OPERATION: a number from 1 on, or empty.
function functions.pawl_write(keys, args)
  if #keys < 1 or #args < 4 then
    return refuse('PAWLINVALID', 'use: FCALL pawl_write N {GUARD}:pawl KEY... RESOURCE TOKEN ' ..
                  'OPERATION COMMAND ARGUMENT...')
  end
  local again = write_again(keys, args)
  if again then return again end
  local key, wrong = split(keys[1], args[1])
  if wrong then return wrong end
  local resources = {{name = args[1], key = key}}
  return write(keys[1], resources, token_argument(args[2]), args[3], tail(args, 4))
end

-- The same for a command that touches several resources of one guard, such as RENAME. ARGV: N
-- RESOURCE… TOKEN COMMAND ARGUMENT…
function functions.pawl_write_all(keys, args)
  local n = parse_number(args[1] or '')
  if #keys < 1 or not n or n > 1000 or #args < n + 3 then
    return refuse('PAWLINVALID', 'use: FCALL pawl_write_all K {GUARD}:pawl KEY... N RESOURCE... ' ..
                  'TOKEN COMMAND ARGUMENT...')
  end
  local resources, seen = {}, {}
  for i = 2, n + 1 do
    local key, wrong = split(keys[1], args[i])
    if wrong then return wrong end
    if not seen[args[i]] then resources[#resources + 1] = {name = args[i], key = key} end
    seen[args[i]] = true
  end
  return write(keys[1], resources, token_argument(args[n + 2]), '', tail(args, n + 3))
end

-- The policy and the stored fence of a resource, or an error.
local function look_up(keys, resource)
  local key, wrong = split(keys[1] or '', resource or '')
  if wrong then return nil, nil, nil, wrong end
  local found = redis.call('HMGET', keys[1], 'policy', field_of(key))
  local policy = found[1] and decode(found[1])
  if not policy or (policy.kind == 'static') ~= (key == nil) then
    return nil, nil, nil, unguarded(resource)
  end
  return policy, key, found[2], nil
end

-- ARGV: RESOURCE TOKEN. Answers the former fence, or nothing. Refuses in every mode.
function functions.pawl_advance(keys, args)
  local policy, key, stored, wrong = look_up(keys, args[1])
  if wrong then return wrong end
  local token = parse_number(args[2] or '')
  if not token then return malformed(keys[1], 'token', args[2] or '') end
  local fence = parse_fence(stored)
  local verdict, max = judge(policy, token, fence)
  if verdict ~= 'admitted' then
    return explain(verdict, args[1], token, nil, max, policy)
  end
  if token > fence then redis.call('HSET', keys[1], field_of(key), digits(token)) end
  return max > 0 and digits(max) or false
end

-- ARGV: RESOURCE TOKEN. Answers [verdict, fence, mode, 1 if a write would pass all the same].
function functions.pawl_check(keys, args)
  local policy, _, stored, wrong = look_up(keys, args[1])
  if wrong then return wrong end
  local token = parse_number(args[2] or '')
  if not token then return refuse('PAWLMALFORMED', 'malformed token') end
  local verdict, max = judge(policy, token, (parse_fence(stored)))
  local passes = verdict ~= 'admitted' and not enforces(policy, args[1])
  return {verdict, digits(max), policy.mode, passes and 1 or 0}
end
reads_only.pawl_check = true

-- ARGV: RESOURCE. Answers its fence, or nothing.
function functions.pawl_max(keys, args)
  local policy, _, stored, wrong = look_up(keys, args[1])
  if wrong then return wrong end
  local max = math.max((parse_fence(stored)), policy.floor)
  return max > 0 and digits(max) or false
end
reads_only.pawl_max = true

function functions.pawl_version()
  return {VERSION, CONTRACT}
end
reads_only.pawl_version = true

-- --- Administration ------------------------------------------------------------------------------
-- KEYS: {GUARD}:pawl. The last argument is `change` or `rehearse`.

local MODES = {observe = true, shadow = true, canary = true, enforce = true}
local COUNTERS = {'replayed', 'stale', 'missing', 'ahead', 'malformed', 'would_refuse'}

local function policy_of(guard_key)
  local text = redis.call('HGET', guard_key, 'policy')
  if text then return copy(decode(text)), nil end
  return nil, refuse('PAWLUNGUARDED', 'there is no guard with the key ' .. guard_key)
end

local function begin_mode(guard_key)
  redis.call('HSET', guard_key, 'since', redis.call('TIME')[1])
  for _, name in ipairs({'missing', 'would_refuse'}) do
    local counted = redis.call('HGET', guard_key, 'n:' .. name) or '0'
    redis.call('HSET', guard_key, 'before:' .. name, counted)
  end
end

-- The fences are whole on this server. A replica that is promoted has another replication id.
local function note_server(guard_key)
  local id = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  redis.call('HSET', guard_key, 'server', id)
end

-- nil: the pattern can be put under guard.
local function wrong_pattern(pattern, kind, by)
  if not string.find(pattern, '^[^%*%?%[%]%^\\%c]+%*?$') then
    return 'a key, or the beginning of keys and a `*`: orders:*'
  end
  if kind ~= 'static' and string.sub(pattern, -1) ~= '*' then
    return 'a fence for each key needs the beginning of keys and a `*`: orders:*'
  end
  if (kind == 'by') ~= (by ~= '') then return 'only a guard of kind `by` has a separator' end
  return nil
end

-- ARGV: PATTERN KIND BY MODE. KIND: static, row or by. BY: what ends the resource's part of a key.
function functions.pawl_protect(keys, args)
  local pattern, kind, by, mode, change = args[1], args[2], args[3], args[4], args[5] == 'change'
  local wrong = wrong_pattern(pattern, kind, by)
  if wrong then return refuse('PAWLINVALID', wrong) end
  if mode ~= 'observe' and mode ~= 'shadow' and mode ~= 'enforce' then
    return refuse('PAWLINVALID', 'a guard begins in observe, shadow or enforce; canary comes later')
  end
  local policy = policy_of(keys[1])
  local new = not policy
  policy = policy or {mode = mode, percent = 100, require_token = 'off', equal = 'accept',
                      kind = kind, by = by, max_step = STEP_DEFAULT, floor = 0, keys = {}}
  if policy.kind ~= kind or policy.by ~= by then
    return refuse('PAWLINVALID', 'the guard exists, and is ' .. policy.kind .. ', not ' .. kind)
  end
  for _, known in ipairs(policy.keys) do
    if known == pattern then
      return refuse('PAWLINVALID', pattern .. ' is under guard already: unprotect it first')
    end
  end
  if not change then return 'OK' end
  policy.keys[#policy.keys + 1] = pattern
  redis.call('HSET', keys[1], 'policy', encode(policy))
  if new then
    begin_mode(keys[1])
    note_server(keys[1])
  end
  audit(keys[1], 'protect', pattern, '')
  return 'OK'
end

-- ARGV: PATTERN
function functions.pawl_unprotect(keys, args)
  local policy, wrong = policy_of(keys[1])
  if wrong then return wrong end
  for i, known in ipairs(policy.keys) do
    if known == args[1] then
      table.remove(policy.keys, i)
      if args[2] ~= 'change' then return 'OK' end
      redis.call('HSET', keys[1], 'policy', encode(policy))
      audit(keys[1], 'unprotect', args[1], '')
      return 'OK'
    end
  end
  return refuse('PAWLUNGUARDED', args[1] .. ' is not under guard')
end

function functions.pawl_drop(keys, args)
  local policy, wrong = policy_of(keys[1])
  if wrong then return wrong end
  if #policy.keys > 0 then
    return refuse('PAWLINVALID', 'it guards ' .. policy.keys[1] .. ': unprotect that first')
  end
  if args[1] == 'change' then redis.call('DEL', keys[1], keys[1] .. ':audit') end
  return 'OK'
end

-- ARGV: MODE PERCENT REASON WHAT. WHAT is `mode` or `emergency`, for the audit.
function functions.pawl_mode(keys, args)
  local mode, percent, reason, what = args[1], tonumber(args[2]), args[3], args[4]
  local policy, wrong = policy_of(keys[1])
  if wrong then return wrong end
  if not MODES[mode] then
    return refuse('PAWLINVALID', 'a mode is observe, shadow, canary or enforce')
  end
  if (mode == 'canary') ~= (percent ~= nil) or (percent and (percent < 1 or percent > 100)) then
    return refuse('PAWLINVALID', 'canary needs a percentage from 1 to 100; other modes take none')
  end
  if args[5] ~= 'change' then return policy.mode end
  local before = policy.mode
  policy.mode, policy.percent = mode, percent or 100
  redis.call('HSET', keys[1], 'policy', encode(policy))
  begin_mode(keys[1])
  local shown = mode .. (percent and ' ' .. digits(percent) or '')
  audit(keys[1], what, before .. ' -> ' .. shown, reason)
  return before
end

-- ARGV: REQUIRE_TOKEN EQUAL MAX_STEP REASON; empty: as it is
function functions.pawl_policy(keys, args)
  local require_token, equal, step, reason = args[1], args[2], args[3], args[4]
  local policy, wrong = policy_of(keys[1])
  if wrong then return wrong end
  if equal ~= '' and equal ~= 'accept' and equal ~= 'once' and equal ~= 'refuse' then
    return refuse('PAWLINVALID', 'equal is accept, once or refuse')
  end
  local number = parse_number(step)
  if step ~= '' and (not number or number < STEP_MIN) then
    return refuse('PAWLINVALID', 'max_step is from ' .. digits(STEP_MIN) .. ' to ' .. TOKEN_MAX)
  end
  if args[5] ~= 'change' then return 'OK' end
  if require_token ~= '' then policy.require_token = require_token end
  if equal ~= '' then policy.equal = equal end
  if number then policy.max_step = number end
  redis.call('HSET', keys[1], 'policy', encode(policy))
  audit(keys[1], 'policy', 'require_token=' .. policy.require_token .. ' equal=' .. policy.equal ..
        ' max_step=' .. digits(policy.max_step), reason)
  return 'OK'
end

-- ARGV: BELOW. Raises the floor; pawl_forget then removes the fences below it. That also settles a
-- promotion, after which fences may be lower than what was acknowledged.
function functions.pawl_compact(keys, args)
  local policy, wrong = policy_of(keys[1])
  if wrong then return wrong end
  local below = parse_number(args[1] or '')
  if not below then return refuse('PAWLMALFORMED', 'malformed token') end
  local known = math.max(policy.floor, (parse_fence(redis.call('HGET', keys[1], 'f'))))
  if policy.kind == 'static' and known > 0 and below - known > policy.max_step then
    return explain('ahead', keys[1], below, nil, known, policy)
  end
  if args[2] ~= 'change' then return 'OK' end
  note_server(keys[1])
  policy.floor = math.max(policy.floor, below)
  redis.call('HSET', keys[1], 'policy', encode(policy))
  audit(keys[1], 'compact', 'below ' .. digits(below), '')
  return 'OK'
end

-- ARGV: CURSOR. One step over the fences; answers the next cursor, "0" at the end.
function functions.pawl_forget(keys, args)
  local policy, wrong = policy_of(keys[1])
  if wrong then return wrong end
  local found = redis.call('HSCAN', keys[1], args[1], 'MATCH', 'f:*', 'COUNT', 500)
  for i = 1, #found[2], 2 do
    if parse_fence(found[2][i + 1]) < policy.floor then redis.call('HDEL', keys[1], found[2][i]) end
  end
  return found[1]
end

-- Answers [policy, fence, server, since, missing before, would_refuse before, COUNTERS …].
function functions.pawl_status(keys)
  local fields = {'policy', 'f', 'server', 'since', 'before:missing', 'before:would_refuse'}
  for _, name in ipairs(COUNTERS) do fields[#fields + 1] = 'n:' .. name end
  local found = redis.call('HMGET', keys[1], unpack(fields))
  if not found[1] then
    return refuse('PAWLUNGUARDED', 'there is no guard with the key ' .. keys[1])
  end
  return found
end
reads_only.pawl_status = true

-- --- As functions, or as a script ----------------------------------------------------------------

if redis.register_function then
  -- While a library is loaded there is no pairs().
  local names = {
    'pawl_write', 'pawl_write_all', 'pawl_advance', 'pawl_check', 'pawl_max', 'pawl_version',
    'pawl_protect', 'pawl_unprotect', 'pawl_drop', 'pawl_mode', 'pawl_policy', 'pawl_compact',
    'pawl_forget', 'pawl_status'}
  for i = 1, #names do
    redis.register_function{
      function_name = names[i], callback = functions[names[i]],
      flags = reads_only[names[i]] and {'no-writes'} or {}}
  end
else
  local callback = functions[table.remove(ARGV, 1)]
  if not callback then return {err = 'PAWLINVALID there is no such function'} end
  return callback(KEYS, ARGV)
end
