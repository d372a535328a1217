// A worker of which one at a time works.
//
//   node worker.mjs [LOCK [STEPS [TTL_MS]]]
//
// Exit codes: 0 done; 1 the work failed; 69 pawld was not reached, or refused; 75 another holder has the lock; 122 the
// lease was lost.
import { setTimeout as sleep } from 'node:timers/promises';
import { NotAcquired, withLease } from './pawl-lease.mjs';

const [lock = 'examples/worker', steps = '10', ttlMs = '5000'] = process.argv.slice(2);

// Here goes the work. The token goes with every write, so that the resource can refuse an old one.
async function write(step, token) {
  console.log(`step ${step} with token ${token}`);
  await sleep(100);
}

let acquired = false;
try {
  await withLease(lock, { ttlMs: Number(ttlMs), waitMs: 1000 }, async (lease) => {
    acquired = true;
    for (let step = 1; step <= Number(steps); ++step) {
      lease.check();
      await write(step, lease.token);
    }
  });
  console.log('done');
} catch (error) {
  if (acquired) throw error; // The work failed: Node.js prints the error and ends with 1.
  console.error(`not acquired: ${error.message}`);
  process.exitCode = error instanceof NotAcquired ? 75 : 69;
}
