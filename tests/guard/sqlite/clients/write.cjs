// Writes a protected table as a program in Node.js would: load the extension, BEGIN IMMEDIATE, pawl_use, UPDATE, COMMIT. What it
// is refused ends it.
//
//   node write.cjs SQLITE FILE EXTENSION|none TOKEN|none VALUE
//
// SQLITE: the module, node:sqlite or one with its interface.
const [sqlite, file, extension, token, value] = process.argv.slice(2);
const { DatabaseSync } = require(sqlite);

const db = new DatabaseSync(file, { allowExtension: true });
db.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL');
if (extension !== 'none') {
  db.enableLoadExtension(true);
  db.loadExtension(extension);
}
db.exec('BEGIN IMMEDIATE');
// As a number: JavaScript has no other for what it was granted.
if (token !== 'none') db.prepare("SELECT pawl_use('orders', ?)").get(Number(token));
db.prepare('UPDATE orders SET n = ?').run(Number(value));
db.exec('COMMIT');
db.close();
