// dynalite with what it lacks of DynamoDB: TransactWriteItems, the item in the answer to a failed
// condition (ReturnValuesOnConditionCheckFailure), GetResourcePolicy, and a check of signatures.
// Conditions and updates are evaluated by dynalite itself. `--plain`: dynalite as it is.
//
//   node server.js PORT [--plain]
//
// Below /test/ the tests ask for requests that were answered (GET requests), make the next ones
// fail (POST faults), set policies of tables (POST policies), and say when all is prepared (ready).
'use strict'
const crypto = require('crypto')
const http = require('http')
const db = require('dynalite/db')
const validations = require('dynalite/validations')

const PORT = Number(process.argv[2])
const PLAIN = process.argv.includes('--plain')
const SECRETS = { AKIDEXAMPLE: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }

const log = []
let faults = []
let policies = {}
let ready = false
let store

// --- What is added to dynalite -------------------------------------------------------------------

const create = db.create
db.create = (options) => (store = create(options))

const RETURN_OLD = { type: 'String' }
const KINDS = { Put: 'putItem', Update: 'updateItem', Delete: 'deleteItem' }
const actions = {}
for (const action of Object.values(KINDS)) {
  const path = require.resolve(`dynalite/actions/${action}`)
  actions[action] = require(path)
  if (PLAIN) continue
  require(`dynalite/validations/${action}`).types.ReturnValuesOnConditionCheckFailure = RETURN_OLD
  require.cache[path].exports = (_, data, done) => {
    actions[action](store, data, (error, answer) => {
      const wanted = data.ReturnValuesOnConditionCheckFailure === 'ALL_OLD'
      if (!wanted || !isConditional(error)) return done(error, answer)
      readItem(data, (_, item) => {
        if (item) error.body.Item = item
        done(error)
      })
    })
  }
}
const dynalite = require('dynalite')

function isConditional(error) {
  return Boolean(error?.body?.__type.endsWith('ConditionalCheckFailedException'))
}

function readItem(data, done) {
  store.getTable(data.TableName, (error, table) => {
    if (error) return done(error)
    const key = db.createKey(data.Key || data.Item, table)
    store.getItemDb(data.TableName).get(key, (error, item) => {
      done(error && error.name !== 'NotFoundError' ? error : null, item)
    })
  })
}

const call = (action, ...words) =>
  new Promise((done, fail) => {
    action(...words, (error, value) => (error ? fail(error) : done(value)))
  })

// The request of one element, checked and parsed as dynalite does with a request of its own.
function parse(element) {
  const [word] = Object.keys(element)
  const check = word === 'ConditionCheck'
  const action = KINDS[check ? 'Delete' : word]
  const { types, custom } = require(`dynalite/validations/${action}`)
  const data = validations.checkTypes(element[word], types)
  validations.checkValidations(data, types, custom, store)
  return { action, check, data }
}

const failed = (status, type, more) => Object.assign(new Error(type), {
  statusCode: status,
  body: { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: type, ...more },
})

async function transact(body) {
  const elements = body.TransactItems.map(parse)
  const names = elements.map(({ data }) => JSON.stringify([data.TableName, data.Key || data.Item]))
  if (new Set(names).size !== names.length || names.length > 100)
    throw failed(400, 'ValidationException')
  const reasons = []
  const olds = []
  for (const { data } of elements) {
    const old = await call(readItem, data)
    olds.push(old)
    const error = db.checkConditional(data, old)
    const reason = { Code: error ? 'ConditionalCheckFailed' : 'None' }
    if (error && old && data.ReturnValuesOnConditionCheckFailure === 'ALL_OLD') reason.Item = old
    reasons.push(reason)
  }
  if (reasons.some((reason) => reason.Code !== 'None'))
    throw failed(400, 'TransactionCanceledException', { CancellationReasons: reasons })
  for (const [i, { action, check, data }] of elements.entries()) {
    if (check) continue
    try {
      await call(actions[action], store, data)
    } catch (error) {
      if (!error.body) throw error
      await undo(elements.slice(0, i), olds)
      reasons[i] = { Code: 'ValidationError', Message: error.body.message }
      throw failed(400, 'TransactionCanceledException', { CancellationReasons: reasons })
    }
  }
  return {}
}

async function undo(elements, olds) {
  for (const [i, { check, data }] of elements.entries()) {
    if (check) continue
    const old = olds[i]
    const table = await call(store.getTable, data.TableName)
    const key = db.createKey(data.Key || data.Item, table)
    const items = store.getItemDb(data.TableName)
    await call(old ? items.put.bind(items, key, old) : items.del.bind(items, key))
  }
}

// --- One transaction alone, or any number of other requests --------------------------------------

let running = 0
let exclusive = false
const waiting = []

function enter(alone, run) {
  waiting.push({ alone, run })
  next()
}
function next() {
  while (waiting.length && !exclusive && !(waiting[0].alone && running)) {
    const { alone, run } = waiting.shift()
    exclusive = alone
    running += 1
    let left = false
    run(() => {
      if (left) return
      left = true
      running -= 1
      if (alone) exclusive = false
      next()
    })
  }
}

// --- Signatures ----------------------------------------------------------------------------------

const sha256 = (text) => crypto.createHash('sha256').update(text).digest('hex')
const hmac = (key, text) => crypto.createHmac('sha256', key).update(text).digest()

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), *SignedHeaders=([^,]+), *Signature=(\w+)$/

function isSigned(request, body) {
  const found = AUTHORIZATION.exec(request.headers.authorization || '')
  if (!found) return false
  const [, account, scope, names, signature] = found
  const lines = names.split(';').map((name) => `${name}:${(request.headers[name] || '').trim()}\n`)
  const canonical = [request.method, '/', '', lines.join(''), names, sha256(body)].join('\n')
  const time = request.headers['x-amz-date']
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')
  let key = `AWS4${SECRETS[account]}`
  for (const part of scope.split('/')) key = hmac(key, part)
  return scope.split('/')[2] === 'dynamodb' && hmac(key, text).toString('hex') === signature
}

// --- The server ----------------------------------------------------------------------------------

const inner = dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 })
const [answer] = inner.listeners('request')

function send(response, status, body) {
  response.statusCode = status
  response.setHeader('content-type', 'application/x-amz-json-1.0')
  response.end(JSON.stringify(body))
}

function control(request, body, response) {
  const name = request.url.slice('/test/'.length)
  if (name === 'faults') faults = JSON.parse(body)
  if (name === 'policies') policies = JSON.parse(body)
  if (name === 'ready') ready = ready || request.method === 'POST'
  if (name === 'ready' && !ready) return send(response, 503, {})
  const found = name === 'requests' ? log.splice(0) : faults
  return send(response, 200, found)
}

// A fault is {"operation": …, "how": "before" | "after" | "drop" | "throttle" | "conflict"}: an
// answer of 500 instead of the request, 500 after it, no answer after it, and refusals.
function takeFault(operation) {
  const at = faults.findIndex((each) => each.operation === operation)
  return at < 0 ? '' : faults.splice(at, 1)[0].how
}

const REFUSALS = {
  before: [500, { __type: 'x#InternalServerError' }],
  throttle: [400, { __type: 'x#ProvisionedThroughputExceededException', message: 'slow down' }],
  conflict: [400, {
    __type: 'x#TransactionCanceledException',
    CancellationReasons: [{ Code: 'TransactionConflict' }, { Code: 'None' }],
  }],
}

function own(operation, body, response) {
  if (operation === 'GetResourcePolicy') {
    const policy = policies[body.ResourceArn.split('/').pop()]
    if (policy) return send(response, 200, { Policy: policy })
    return send(response, 400, { __type: 'x#PolicyNotFoundException' })
  }
  return transact(body).then(
    (done) => send(response, 200, done),
    (error) => {
      if (!error.statusCode) throw error
      send(response, error.statusCode, error.body)
    },
  )
}

// The end of an answer that is to be lost.
function lose(response, how) {
  const end = response.end.bind(response)
  response.end = () => {
    if (how === 'drop') return response.socket.destroy()
    response.removeHeader('content-length')
    response.statusCode = 500
    return end(JSON.stringify({ __type: 'x#InternalServerError' }))
  }
}

function handle(request, body, response) {
  const operation = (request.headers['x-amz-target'] || '').split('.')[1]
  log.push(operation)
  if (!PLAIN && !isSigned(request, body))
    return send(response, 400, { __type: 'x#InvalidSignatureException', message: 'not signed' })
  const how = takeFault(operation)
  if (REFUSALS[how]) return send(response, ...REFUSALS[how])
  const mine = !PLAIN && ['TransactWriteItems', 'GetResourcePolicy'].includes(operation)
  enter(operation === 'TransactWriteItems' && mine, (leave) => {
    response.once('close', leave)
    response.once('finish', leave)
    if (how) lose(response, how)
    if (mine) return own(operation, JSON.parse(body), response)
    // As if it came to dynalite itself.
    answer.call(inner, request, response)
    request.emit('data', Buffer.from(body))
    request.emit('end')
    return undefined
  })
}

const server = http.createServer((request, response) => {
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.once('end', () => {
    const body = Buffer.concat(parts).toString()
    request.removeAllListeners('data')
    if (request.url.startsWith('/test/')) return control(request, body, response)
    return handle(request, body, response)
  })
})
server.keepAliveTimeout = 600000
server.listen(PORT, '127.0.0.1')
