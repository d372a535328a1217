// Ships one order, under a lock, into a table that refuses earlier holders of the lock.
//
//   worker PAWLD DSN ORDER
#include <libpq-fe.h>
#include <pawl/pawl.h>
#include <pawl/postgres.h>

#include <cstdlib>
#include <iostream>
#include <memory>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: worker PAWLD DSN ORDER\n";
    return 64;
  }
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(argv[2]), PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    std::cerr << PQerrorMessage(connection.get());
    return 69;
  }
  pawl::Client client(argv[1]);
  pawl::PgGuard guard(connection.get());

  // From here on no earlier holder of the lock can write to orders, even if we never write.
  auto lease = client.acquire("orders", {.ttl = 10s, .wait = 30s, .guards = {&guard}});
  if (!lease) {
    std::cerr << lease.error().detail << "\n";
    return 75;
  }
  const auto shipped =
      guard.write(*lease, "orders",
                  [&](pawl::PgTransaction& tx) {
                    tx.exec("UPDATE orders SET state = 'shipped' WHERE id = $1", {argv[3]});
                  },
                  {.operation = std::strtoull(argv[3], nullptr,
                                              10)});  // Once, whatever happens to the connection.
  if (!shipped) {
    std::cerr << shipped.error().detail << "\n";
    return shipped.error().code == pawl::Code::kStaleToken ? 121 : 1;
  }
  std::cout << to_text(shipped->verdict) << " under token " << shipped->token << "\n";
}
