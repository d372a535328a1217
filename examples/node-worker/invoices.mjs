// Writes the invoices of one month, once: the lock, the guard and PostgreSQL in one process.
//
//   PAWL_GUARD_DSN=postgres://app@localhost/shop node invoices.mjs MONTH
//
// Exit codes: 0 written, now or by an earlier run; 75 another holder has the lock; 121 a newer holder has taken over.
import pg from 'pg';
import { NotAcquired, withLease } from './pawl-lease.mjs';

const RETRY = ['40001', '40P01']; // Serialization failure, deadlock: rolled back, the same transaction may succeed now.

// Once, before the first read: no transaction with a smaller token is open or can begin after this.
const fence = (db, token) => db.query("SELECT pawl.advance('invoices', $1)", [token]);

async function write(db, token, month) {
  await db.query("SELECT pawl.use('invoices', $1)", [token]);
  const run = await db.query('INSERT INTO runs (month) VALUES ($1) ON CONFLICT DO NOTHING', [month]);
  if (run.rowCount === 1) // Otherwise an earlier run has done this month.
    await db.query('INSERT INTO invoices (customer, month) SELECT id, $1 FROM customers', [month]);
}

// Runs the work in one transaction, and again after a conflict or a lost connection; the row in `runs` keeps it once.
async function transact(lease, work, ...values) {
  for (let triesLeft = 4; ; --triesLeft) {
    lease.check();
    const db = new pg.Client({ connectionString: process.env.PAWL_GUARD_DSN });
    db.on('error', () => {}); // What was sent rejects below.
    await db.connect();
    try {
      await db.query('BEGIN');
      await work(db, lease.token, ...values);
      return await db.query('COMMIT');
    } catch (error) {
      const lost = await db.query('ROLLBACK').then(() => false, () => true);
      if (triesLeft === 0 || !(lost || RETRY.includes(error.code))) throw error;
    } finally {
      await db.end().catch(() => {});
    }
  }
}

try {
  await withLease('billing/nightly', {}, async (lease) => {
    await transact(lease, fence);
    await transact(lease, write, process.argv[2]);
  });
} catch (error) {
  if (!(error instanceof NotAcquired || error.code === 'PW002')) throw error;
  console.error(error.message);
  process.exitCode = error instanceof NotAcquired ? 75 : 121;
}
