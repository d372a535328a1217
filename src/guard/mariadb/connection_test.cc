#include "guard/mariadb/connection.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;

// Found by the nemesis: libmariadb calls a statement that could not be sent -1, as it calls the end
// of the results.
TEST(MariaStatement, OnAConnectionThatIsGoneItIsNoSuccess) {
  const Connection never_connected(mysql_init(nullptr), mysql_close);
  const MariaOutcome outcome = execute(never_connected.get(), "SELECT 1");
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(outcome.failure->disconnected);
}

}  // namespace
}  // namespace pawl::guard
