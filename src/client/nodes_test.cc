#include "client/nodes.h"

#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"

namespace pawl::client {
namespace {

using Next = Nodes::Next;

Nodes three() {
  return Nodes({{"db1"}, {"db2"}, {"db3"}});
}

TEST(Nodes, EachIsTriedOnceBeforeAPause) {
  Nodes nodes = three();
  EXPECT_EQ(nodes.current().host, "db1");
  EXPECT_EQ(nodes.on_failed(), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "db2");
  EXPECT_EQ(nodes.on_failed(), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "db3");
  EXPECT_EQ(nodes.on_failed(), Next::kAfterPause);
  EXPECT_EQ(nodes.current().host, "db1");
  EXPECT_EQ(nodes.on_failed(), Next::kAtOnce) << "a new round";
}

TEST(Nodes, NamedOneIsNext) {
  Nodes nodes = three();
  EXPECT_EQ(nodes.on_standby("db3:7295"), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "db3");
  EXPECT_EQ(nodes.on_failed(), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "db2");
  EXPECT_EQ(nodes.size(), 3u);
}

TEST(Nodes, NamedOneThatFailedInThisRoundIsNotTriedAgainBeforeTheOthers) {
  Nodes nodes = three();
  EXPECT_EQ(nodes.on_failed(), Next::kAtOnce);
  EXPECT_EQ(nodes.on_standby("db1:7295"), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "db3");
  EXPECT_EQ(nodes.on_standby("db1:7295"), Next::kAfterPause);
  EXPECT_EQ(nodes.current().host, "db1") << "the next round begins with it";
}

TEST(Nodes, TwoThatNameEachOtherCostAPause) {
  Nodes nodes({{"db1"}, {"db2"}});
  EXPECT_EQ(nodes.on_standby("db2"), Next::kAtOnce);
  EXPECT_EQ(nodes.on_standby("db1"), Next::kAfterPause);
}

TEST(Nodes, LostOneIsTriedLast) {
  Nodes nodes = three();
  nodes.on_served();
  EXPECT_EQ(nodes.on_lost(), Next::kAfterPause) << "everyone lost it in the same moment";
  EXPECT_EQ(nodes.current().host, "db2");
  EXPECT_EQ(nodes.on_failed(), Next::kAtOnce);
  EXPECT_EQ(nodes.on_failed(), Next::kAfterPause);
  EXPECT_EQ(nodes.current().host, "db1");
}

TEST(Nodes, UnknownOneIsLearnt) {
  Nodes nodes({{"db1"}});
  EXPECT_EQ(nodes.on_standby("[::1]:7"), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "::1");
  EXPECT_EQ(nodes.current().port, 7);
  nodes.on_served();
  static_cast<void>(nodes.on_lost());
  EXPECT_EQ(nodes.current().host, "db1");
}

TEST(Nodes, LearntOnesAreBounded) {
  Nodes nodes({{"db1"}});
  for (int i = 0; i < 100; ++i) {
    const std::string named = "other-" + std::to_string(i);
    EXPECT_EQ(nodes.on_standby(named), Next::kAtOnce);
    EXPECT_EQ(nodes.current().host, named);
    EXPECT_LE(nodes.size(), 1 + limits::kNodesLearnt);
  }
  static_cast<void>(nodes.on_failed());
  EXPECT_EQ(nodes.current().host, "db1") << "the configured one is never forgotten";
}

TEST(Nodes, WhatIsNoAddressIsIgnored) {
  for (const std::string& named : {std::string(), std::string("db2:0"), std::string("db2,db3"),
                                   std::string(limits::kAddressMax + 1, 'x')}) {
    Nodes nodes({{"db1"}, {"db9"}});
    EXPECT_EQ(nodes.on_standby(named), Next::kAtOnce) << named;
    EXPECT_EQ(nodes.current().host, "db9") << named;
    EXPECT_EQ(nodes.size(), 2u) << named;
  }
}

TEST(Nodes, NamedOneIsReachedByTlsLikeTheConfiguredOnes) {
  Address secure{"db1"};
  secure.tls = true;
  Nodes nodes({secure});
  EXPECT_EQ(nodes.on_standby("db2:7295"), Next::kAtOnce);
  EXPECT_TRUE(nodes.current().tls);
}

TEST(Nodes, TlsIsNotTurnedOnByAStandby) {
  Nodes nodes({{"db1"}, {"db9"}});
  EXPECT_EQ(nodes.on_standby("tls://db2:7295"), Next::kAtOnce);
  EXPECT_EQ(nodes.current().host, "db9");
}

}  // namespace
}  // namespace pawl::client
