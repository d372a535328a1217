#include "server/wait_table.h"

#include <gtest/gtest.h>

namespace pawl::server {
namespace {

constexpr ConnectionId kAlice{1};
constexpr ConnectionId kBob{2};

TEST(WaitTable, EachWaitIsFoundByItsOwnIdFromTheVeryFirst) {
  WaitTable table;
  std::uint32_t chain = 0;
  std::vector<WaiterId> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(table.add(kAlice, chain).id);
  for (const WaiterId id : ids) {
    ASSERT_NE(table.find(id), nullptr);
    EXPECT_EQ(table.find(id)->id, id);
  }
  EXPECT_EQ(table.find(WaiterId{}), nullptr);
}

TEST(WaitTable, AnIdThatIsOverIsNotMistakenForItsSuccessor) {
  WaitTable table;
  std::uint32_t alice = 0;
  std::uint32_t bob = 0;
  const WaiterId old = table.add(kAlice, alice).id;
  table.remove(*table.find(old), alice);
  EXPECT_EQ(table.find(old), nullptr);
  const WaiterId fresh = table.add(kBob, bob).id;
  EXPECT_EQ(table.find(old), nullptr);
  EXPECT_EQ(table.find(fresh)->connection, kBob);
  EXPECT_EQ(alice, 0U);
}

TEST(WaitTable, AConnectionsChainNamesExactlyItsOwnWaits) {
  WaitTable table;
  std::uint32_t alice = 0;
  std::uint32_t bob = 0;
  const WaiterId first = table.add(kAlice, alice).id;
  const WaiterId other = table.add(kBob, bob).id;
  const WaiterId middle = table.add(kAlice, alice).id;
  const WaiterId last = table.add(kAlice, alice).id;
  table.remove(*table.find(middle), alice);
  std::vector<WaiterId> named;
  for (std::uint32_t link = alice; link != 0; link = table.at(link).next)
    named.push_back(table.at(link).id);
  EXPECT_EQ(named, (std::vector<WaiterId>{last, first}));
  EXPECT_EQ(table.at(bob).id, other);
  EXPECT_EQ(table.size(), 3U);
}

}  // namespace
}  // namespace pawl::server
