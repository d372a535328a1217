// Holds a lock of pawld from Node.js, with node-redis alone. Linux. Copy this file into your project.
//
//   await withLease('billing/nightly', {}, async (lease) => {
//     lease.check();                          // before every write
//     await write(lease.token);               // the token goes with every write
//   });
//
// As for `pawl`: PAWL_ADDR (host:port, or tls://host:port; several with commas), PAWL_AUTH (user:secret), PAWL_TLS_CA,
// PAWL_TLS_CERT, PAWL_TLS_KEY.
import { randomBytes } from 'node:crypto';
import { readFileSync, writeSync } from 'node:fs';
import { hostname, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, ErrorReply } from 'redis';

export class NotAcquired extends Error {} // Another holder has the lock.
export class LeaseLost extends Error {} // The lease can no longer be relied on. Stop; do not write any more.

// Ends the process at once: pending promises are dropped.
export function endProcess(lease, why) {
  try {
    void process.stderr; // With this, descriptor 2 does not block: a full pipe must not delay the exit.
    writeSync(2, `pawl: lost ${lease.lock} (token ${lease.token}): ${why}. This process ends with 122.\n`);
  } finally {
    process.exit(122);
  }
}

const CLOCK_STEP_MS = 10;

// Milliseconds on the clock that goes on while the machine sleeps; performance.now() and process.hrtime() do not.
const now = () => uptime() * 1000;

// The deadline. It counts from the send: pawld cannot have started the lease before it was asked.
const goodUntil = (sent, granted, ttl) => sent + granted * 0.99 - Math.max(20, ttl / 100) - CLOCK_STEP_MS;

function clientOptions(address, connectTimeout) {
  const { PAWL_AUTH, PAWL_TLS_CA, PAWL_TLS_CERT, PAWL_TLS_KEY } = process.env;
  const url = new URL(address.includes('://') ? address : `pawl://${address}`);
  const [, username, password] = (PAWL_AUTH ?? '').match(/^([^:]*):(.*)$/) ?? [];
  const file = (path) => path && readFileSync(path);
  const tls = url.protocol === 'tls:' && { tls: true, ca: file(PAWL_TLS_CA), cert: file(PAWL_TLS_CERT), key: file(PAWL_TLS_KEY) };
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  // autoSelectFamily: Node.js 18 would try only the first address of a name, and that of localhost may be ::1.
  const socket = { host, port: Number(url.port || 7295), connectTimeout, reconnectStrategy: false, autoSelectFamily: true };
  return { username, password, socket: { ...socket, ...tls } };
}

// Of several pawld one is active. `active` is the one that answered last, or that a standby has named.
const addresses = (process.env.PAWL_ADDR || '127.0.0.1:7295').split(',');
let active = addresses[0];

// After an error that says to ask again: the active one, if a standby has named it; otherwise the next of the list.
function moveOn(error) {
  const [, named] = error.message.match(/^READONLY .*\bactive=(\S+)/) ?? [];
  const tls = addresses[0].startsWith('tls://'); // Never without TLS where TLS was asked for.
  if (!named) addresses.push(addresses.shift());
  active = named ? (tls ? 'tls://' : '') + named : addresses[0];
}

// One command on a connection of its own, so that a connection that hangs costs one try and not the lease.
async function call(timeoutMs, ...words) {
  try {
    return await ask(timeoutMs, words);
  } catch (error) {
    if (!refused(error)) moveOn(error);
    throw error;
  }
}

async function ask(timeoutMs, words) {
  const client = createClient(clientOptions(active, Math.min(timeoutMs, 2000)));
  client.on('error', () => {}); // What fails also rejects below.
  const timer = setTimeout(() => client.isOpen && client.destroy(), timeoutMs);
  try {
    await client.connect();
    return await client.sendCommand(words.map(String));
  } finally {
    clearTimeout(timer);
    if (client.isOpen) client.destroy();
  }
}

// Whether pawld has refused. Otherwise it is unknown what happened, or nothing happened: ask again.
const refused = (error) => error instanceof ErrorReply && !/^(UNCERTAIN|LOADING|READONLY)/.test(error.message);

// A granted lease, renewed in the background. Once it cannot be relied on, `signal` is aborted and onLost(lease, why) is
// called, once.
class Lease {
  #id;
  #ttl;
  #deadline;
  #early;
  #onLost;
  #over = false;
  #timer;
  #abort = new AbortController();

  static async from(lock, grant, firstSent, onLost) {
    const lease = new Lease();
    lease.lock = lock;
    lease.token = grant.token;
    lease.#id = grant.lease;
    lease.#ttl = grant.ttl_ms;
    lease.#onLost = onLost;
    lease.#early = onLost === endProcess ? 0 : grant.ttl_ms / 6; // Time for the work to stop.
    lease.#deadline = goodUntil(firstSent, grant.waited_ms + lease.#ttl, lease.#ttl);
    if (lease.#deadline - now() < lease.#ttl / 2) await lease.#renew(); // The answer was slow: begin with a renewal.
    lease.#watch();
    lease.#keep();
    return lease;
  }

  get signal() {
    return this.#abort.signal;
  }

  // Call this before every write. Throws LeaseLost when the work must stop.
  check() {
    if (this.#left() <= 0) this.#lose('it was not renewed in time');
    this.signal.throwIfAborted();
    if (this.#over) throw new LeaseLost('it was released');
  }

  #left() {
    return this.#deadline - this.#early - now();
  }

  #lose(why) {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    if (this.#onLost === endProcess) endProcess(this, why); // Before any listener of the signal.
    this.#abort.abort(new LeaseLost(why));
    this.#onLost(this, why);
  }

  async #renew() {
    const sent = now();
    const answered = await call(this.#ttl / 6, 'RENEW', this.#id);
    this.#deadline = goodUntil(sent, answered, this.#ttl);
  }

  // Renews when a third of the TTL has passed; without an answer, again and again.
  async #keep() {
    for (;;) {
      await sleep(Math.max(this.#deadline - (this.#ttl * 2) / 3 - now(), this.#ttl / 30), undefined, { ref: false });
      if (this.#over) return;
      try {
        await this.#renew();
      } catch (error) {
        if (error.message.startsWith('LOST')) this.#lose(`pawld answered ${error.message}`);
      }
    }
  }

  // Acts at the deadline, whatever the network does and whatever the work awaits.
  #watch() {
    if (this.#left() <= 0) return this.#lose('it was not renewed in time');
    this.#timer = setTimeout(() => this.#watch(), Math.min(this.#left(), 100)); // Timers stand still in suspend: 100 ms.
  }

  // Call this after the last write. Returns whether pawld confirmed it; if not, the lease ends by itself.
  async release() {
    this.#over = true;
    clearTimeout(this.#timer);
    while (now() < this.#deadline) {
      try {
        return (await call(this.#ttl / 6, 'RELEASE', this.#id)) === 1;
      } catch (error) {
        if (refused(error)) return false;
        await sleep(50);
      }
    }
    return false;
  }
}

// Maps arrive as objects (RESP3) or as flat arrays of pairs (RESP2).
function fields(reply) {
  if (!Array.isArray(reply)) return reply;
  return Object.fromEntries(reply.flatMap((key, i) => (i % 2 ? [] : [[key, reply[i + 1]]])));
}

// A Lease. Throws NotAcquired, or node-redis's error when pawld was not reached or refused.
export async function acquire(lock, { ttlMs = 15000, waitMs = 0, onLost = endProcess } = {}) {
  const request = randomBytes(16).toString('hex'); // Asked again with it, pawld answers with the same lease.
  const firstSent = now();
  for (;;) {
    try {
      const reply = await call(waitMs + ttlMs, 'ACQUIRE', lock, 'TTL', ttlMs, 'WAIT', waitMs, 'REQUEST', request,
        'OWNER', `${hostname()}:${process.pid}`);
      if (reply === null) throw new NotAcquired(`another holder has ${lock}`);
      return await Lease.from(lock, fields(reply), firstSent, onLost);
    } catch (error) {
      if (error instanceof NotAcquired || refused(error) || now() - firstSent > waitMs + ttlMs) throw error;
      await sleep(100);
    }
  }
}

// Runs work(lease) and releases the lease; also when the work throws, and then the error passes on.
export async function withLease(lock, options, work) {
  const lease = await acquire(lock, options);
  let result;
  try {
    result = await work(lease);
  } finally {
    await lease.release();
  }
  lease.signal.throwIfAborted(); // It was lost before the work ended.
  return result;
}
