// A worker of which one at a time may work, with nothing but node-redis. Linux.
//
//   node worker.mjs [HOST:PORT [LOCK [STEPS [TTL_MS]]]]
//
// Exit codes: 0 done; 69 pawld was not reached, or refused; 75 somebody else has the lock; 122 the lease was lost, and
// this process ended itself before the lock could pass to anyone else.
import { randomBytes } from 'node:crypto';
import { hostname, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, ErrorReply } from 'redis';

const WAIT_MS = 2000; // How long to queue for the lock.
const CLOCK_STEP_MS = 10;

const [address = '127.0.0.1:7295', lock = 'examples/worker', steps = '10', ttlMs = '5000'] = process.argv.slice(2);
const [, host, port] = address.match(/^(.*):(\d+)$/);

// Milliseconds on the clock that goes on while the machine sleeps; performance.now() and process.hrtime() do not.
const now = () => uptime() * 1000;

// The deadline. It counts from the send: pawld cannot have started the lease before it was asked.
const goodUntil = (sent, granted, ttl) => sent + granted * 0.99 - Math.max(20, ttl / 100) - CLOCK_STEP_MS;

// One command on a connection of its own, so that a connection that hangs costs one try and not the lease.
async function call(timeoutMs, ...words) {
  const client = createClient({ socket: { host, port: Number(port), connectTimeout: timeoutMs, reconnectStrategy: false } });
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

// Whether pawld has refused. Otherwise nothing is known about what was asked, or nothing happened: ask again.
const refused = (error) => error instanceof ErrorReply && !/^(UNCERTAIN|LOADING)/.test(error.message);

// A lease that was granted. It renews itself, and ends the process when it cannot be relied on any more.
class Lease {
  #id;
  #ttl;
  #deadline;
  #done = false;
  #timer;

  static async from(grant, firstSent) {
    const lease = new Lease();
    lease.token = grant.token;
    lease.#id = grant.lease;
    lease.#ttl = grant.ttl_ms;
    lease.#deadline = goodUntil(firstSent, grant.waited_ms + lease.#ttl, lease.#ttl);
    if (lease.#deadline - now() < lease.#ttl / 2) await lease.#renew(); // The answer was slow: begin with a fresh one.
    lease.#watch();
    lease.#keep();
    return lease;
  }

  // Call this before every write.
  check() {
    if (now() >= this.#deadline) this.#stop();
  }

  #stop() {
    process.exit(122);
  }

  async #renew() {
    const sent = now();
    const left = await call(this.#ttl / 6, 'RENEW', this.#id);
    this.#deadline = goodUntil(sent, left, this.#ttl);
  }

  // Renews a third of the TTL after the last renewal that was answered; when none is answered, again and again.
  async #keep() {
    for (;;) {
      await sleep(Math.max(this.#deadline - (this.#ttl * 2) / 3 - now(), this.#ttl / 30), undefined, { ref: false });
      if (this.#done) return;
      try {
        await this.#renew();
      } catch (error) {
        if (!this.#done && error.message.startsWith('LOST')) this.#stop(); // pawld says that it is over.
      }
    }
  }

  // Ends the process at the deadline, whatever the network says and whatever the work awaits.
  #watch() {
    this.check();
    const left = this.#deadline - now();
    this.#timer = setTimeout(() => this.#watch(), Math.min(left, 100)); // Timers stand still while the machine sleeps.
  }

  // Call this when the last write is done. Returns whether pawld confirmed it; if not, the lease ends by itself.
  async release() {
    this.#done = true;
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

// A Lease, or null when somebody else has the lock.
async function acquire(ttl) {
  const request = randomBytes(16).toString('hex'); // Asked again with it, pawld answers with the same lease.
  const firstSent = now();
  for (;;) {
    try {
      const reply = await call(WAIT_MS + ttl, 'ACQUIRE', lock, 'TTL', ttl, 'WAIT', WAIT_MS, 'REQUEST', request,
        'OWNER', `${hostname()}:${process.pid}`);
      return reply === null ? null : await Lease.from(fields(reply), firstSent);
    } catch (error) {
      if (refused(error) || now() - firstSent > WAIT_MS + ttl) throw error;
      await sleep(100);
    }
  }
}

// Here goes the work. The token goes with every write, so that the resource can refuse an old one.
async function write(step, token) {
  console.log(`step ${step} with token ${token}`);
  await sleep(100);
}

let lease;
try {
  lease = await acquire(Number(ttlMs));
} catch (error) {
  console.error(`not acquired: ${error.message}`);
  process.exit(69);
}
if (lease === null) {
  console.error('not acquired: somebody else has the lock');
  process.exit(75);
}
for (let step = 1; step <= Number(steps); ++step) {
  lease.check();
  await write(step, lease.token);
}
console.log((await lease.release()) ? 'released' : 'not confirmed: the lease ends by itself');
