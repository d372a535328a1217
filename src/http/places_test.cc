#include "http/places.h"

#include <gtest/gtest.h>

namespace pawl::http {
namespace {

using namespace std::chrono_literals;

class PlacesTest : public testing::Test {
 protected:
  // A client whose request is being served.
  Places::Admitted serve(Places::Id id) {
    EXPECT_EQ(places.add(id, now), std::nullopt);
    places.set_silent(id, false, now);
    return places.admit(id);
  }
  Nanos now{1s};
  Places places{{.newcomers = 2, .newcomer_bytes = 100, .ordinary = 2, .reserved = 1}};
};

TEST_F(PlacesTest, TheOldestStrangerGoesWhenTheyHoldTooMuchTogether) {
  using Ids = std::vector<Places::Id>;
  EXPECT_EQ(places.add(1, now), std::nullopt);
  EXPECT_EQ(places.add(2, now), std::nullopt);
  EXPECT_EQ(places.set_bytes(1, 60), Ids{});
  EXPECT_EQ(places.set_bytes(2, 40), Ids{});
  EXPECT_EQ(places.set_bytes(2, 41), Ids{1});
  EXPECT_EQ(places.set_bytes(1, 1000), Ids{}) << "it is forgotten";
  EXPECT_EQ(places.set_bytes(2, 100), Ids{}) << "what it held does not count any more";
  EXPECT_EQ(places.set_bytes(2, 101), Ids{2}) << "alone it may not hold more either";
  EXPECT_EQ(places.size(), 0U);
}

TEST_F(PlacesTest, WhatClientsSendIsNotCountedAmongStrangers) {
  EXPECT_EQ(places.add(1, now), std::nullopt);
  EXPECT_TRUE(places.set_bytes(1, 90).empty());
  EXPECT_EQ(places.admit(1).admission, Admission::kAll);
  EXPECT_TRUE(places.set_bytes(1, 1000).empty());
  EXPECT_EQ(places.add(2, now), std::nullopt);
  EXPECT_TRUE(places.set_bytes(2, 90).empty());
  places.remove(2);
  EXPECT_EQ(places.add(3, now), std::nullopt);
  EXPECT_TRUE(places.set_bytes(3, 90).empty());
}

TEST_F(PlacesTest, SilentStrangersTakeNoPlaceOfClients) {
  EXPECT_EQ(places.add(1, now), std::nullopt);
  EXPECT_EQ(places.add(2, now), std::nullopt);
  EXPECT_EQ(places.add(3, now), 1U) << "the oldest makes room";
  places.set_silent(3, false, now);
  EXPECT_EQ(places.admit(3).admission, Admission::kAll);
  EXPECT_EQ(places.admit(1).admission, Admission::kNone) << "it is forgotten";
  EXPECT_EQ(places.size(), 2U);
}

TEST_F(PlacesTest, BeyondTheOrdinaryPlacesThereAreSomeForRenewals) {
  EXPECT_EQ(serve(1).admission, Admission::kAll);
  EXPECT_EQ(serve(2).admission, Admission::kAll);
  EXPECT_EQ(serve(3).admission, Admission::kRenewals);
  EXPECT_EQ(serve(4).admission, Admission::kNone);
  places.remove(1);
  EXPECT_EQ(places.admit(3).admission, Admission::kAll) << "there is room again";
  EXPECT_EQ(places.admit(4).admission, Admission::kRenewals);
}

TEST_F(PlacesTest, TheClientThatWasSilentLongestMakesRoom) {
  EXPECT_EQ(serve(1).admission, Admission::kAll);
  EXPECT_EQ(serve(2).admission, Admission::kAll);
  places.set_silent(2, true, now);
  places.set_silent(1, true, now + 1s);
  const auto admitted = serve(3);
  EXPECT_EQ(admitted.admission, Admission::kAll);
  EXPECT_EQ(admitted.displaced, 2U);
  places.set_silent(2, false, now + 2s);  // Forgotten: nothing happens.
  places.remove(2);
  EXPECT_EQ(places.size(), 2U);
}

}  // namespace
}  // namespace pawl::http
