// Writes a protected table as an application in Node.js would: BEGIN, pawl.use, UPDATE, COMMIT. Prints one JSON line of what it met.
//
//   node write.mjs PORT DATABASE TOKEN|none [VALUE]
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cwd } from 'node:process';

// The library is installed in the directory this runs in, not beside this file.
const { Client } = createRequire(join(cwd(), 'package.json'))('pg');

const [port, database, token, value = '1'] = process.argv.slice(2);
const client = new Client({ host: '127.0.0.1', port: Number(port), database, user: 'app', application_name: 'node' });
await client.connect();

let met;
try {
  await client.query('BEGIN');
  if (token !== 'none') await client.query('SELECT pawl.use($1, $2)', ['orders', token]);
  await client.query('UPDATE orders SET n = $1', [value]);
  await client.query('COMMIT');
  met = { wrote: true };
} catch (error) {
  await client.query('ROLLBACK');
  met = { wrote: false, code: error.code, detail: error.detail ?? null, message: error.message };
}
await client.end();
console.log(JSON.stringify(met));
