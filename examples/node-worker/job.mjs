// node job.mjs MONTH: writes the invoices of one month, once. Start it with `pawl run`.
import pg from 'pg';

const [month, token] = [process.argv[2], process.env.PAWL_TOKEN];
const db = new pg.Client({ connectionString: process.env.PAWL_GUARD_DSN });
await db.connect();
await db.query('BEGIN'); // What throws before COMMIT ends this process, and PostgreSQL rolls back.
await db.query("SELECT pawl.use('invoices', $1)", [token]);
const run = await db.query('INSERT INTO runs (month) VALUES ($1) ON CONFLICT DO NOTHING', [month]);
if (run.rowCount === 1) // Otherwise an earlier run has done this month.
  await db.query('INSERT INTO invoices (customer, month) SELECT id, $1 FROM customers', [month]);
await db.query('COMMIT');
await db.end();
