// The same commands with each client library: acquire, renew, inspect, wait, release. Prints one JSON line per run; the test
// (clients_test.py) checks it.
//
//   node client.mjs redis|redis-5|ioredis|ioredis-5 PORT LOCK
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cwd } from 'node:process';

// The libraries are installed in the directory this runs in, not beside this file.
const require = createRequire(join(cwd(), 'package.json'));

const [library, port, lock] = process.argv.slice(2);

// Maps arrive as objects or Maps (RESP3) or as flat arrays (RESP2).
function fields(reply) {
  if (reply instanceof Map) return Object.fromEntries(reply);
  if (!Array.isArray(reply)) return { ...reply };
  const pairs = {};
  for (let i = 0; i < reply.length; i += 2) pairs[reply[i]] = reply[i + 1];
  return pairs;
}

async function nodeRedis(name) {
  const { createClient } = require(name);
  const open = async (protocol) => {
    const client = createClient({ socket: { host: '127.0.0.1', port: Number(port), reconnectStrategy: false }, RESP: protocol });
    client.on('error', () => {});
    await client.connect();
    return { call: (...words) => client.sendCommand(words.map(String)), close: () => client.close() };
  };
  return open;
}

async function ioRedis(name) {
  const loaded = require(name);
  const Redis = loaded.default ?? loaded.Redis ?? loaded;
  return async () => {
    const client = new Redis({ host: '127.0.0.1', port: Number(port), retryStrategy: null, lazyConnect: true });
    client.on('error', () => {});
    await client.connect();  // Waits for its ready check, which reads INFO.
    return { call: (...words) => client.call(...words.map(String)), close: () => client.quit() };
  };
}

// These libraries show no pushes they do not know, but a push must not be taken for a reply either; the grant it announced
// is fetched by asking again with the same request id.
async function asyncWait(client, other) {
  const held = fields(await client.call('ACQUIRE', lock, 'TTL', 60000));
  const request = randomBytes(16).toString('hex');
  const words = ['ACQUIRE', lock, 'TTL', 60000, 'REQUEST', request];
  const queued = await other.call(...words, 'WAIT', 60000, 'ASYNC').then(fields, (e) => ({ state: e.message }));
  await client.call('RELEASE', held.lease);
  if (queued.state !== 'queued') return { state: queued.state };
  let inStep = true;
  for (let i = 0; i < 50; ++i) inStep = (await other.call('ECHO', i)) === String(i) && inStep;
  const grant = fields(await other.call(...words));
  return { state: queued.state, inStep, released: Number(await other.call('RELEASE', grant.lease)) };
}

async function runCommands(open, protocol) {
  const client = await open(protocol);
  const request = randomBytes(16).toString('hex');
  const grant = fields(await client.call('ACQUIRE', lock, 'TTL', 60000, 'REQUEST', request, 'OWNER', library));
  const again = fields(await client.call('ACQUIRE', lock, 'TTL', 60000, 'REQUEST', request));
  const renewed = await client.call('RENEW', grant.lease);
  const seen = fields(await client.call('INSPECT', lock));
  const busy = await client.call('ACQUIRE', lock, 'TTL', 60000);

  const other = await open(protocol);
  const waiting = other.call('ACQUIRE', lock, 'TTL', 60000, 'WAIT', 60000);
  while (Number(fields(await client.call('INSPECT', lock)).waiters) !== 1);
  const released = await client.call('RELEASE', grant.lease);
  const handed = fields(await waiting);
  const releasedAgain = await other.call('RELEASE', handed.lease);
  const error = await client.call('RENEW', grant.lease).then(() => 'none', (e) => e.message);
  const pushed = await asyncWait(client, other);
  await other.close();
  await client.close();
  const token = (map) => Number(map.token);
  return {
    token: token(grant), same: again.lease === grant.lease && token(again) === token(grant), renewed: Number(renewed),
    state: seen.state, owner: fields(seen.holders[0]).owner, seen: token(seen), busy, released: Number(released),
    handed: token(handed), releasedAgain: Number(releasedAgain), error, pushed,
    exact: Number.isSafeInteger(token(grant)) && String(token(grant)) === String(grant.token),
  };
}

const open = library.startsWith('ioredis') ? await ioRedis(library) : await nodeRedis(library);
const runs = library.startsWith('ioredis') ? [undefined] : [2, 3];
for (const protocol of runs) console.log(JSON.stringify(await runCommands(open, protocol)));
