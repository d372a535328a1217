#include "guard/s3/replies.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

TEST(S3Replies, ErrorIsFound) {
  const char* xml =
      "<?xml version=\"1.0\"?><Error><Code>PreconditionFailed</Code><Message>a &lt;b&gt; &amp;amp;"
      "</Message><HostId/></Error>";
  EXPECT_EQ(xml_text(xml, "Code"), "PreconditionFailed");
  EXPECT_EQ(xml_text(xml, "Message"), "a <b> &amp;");
  EXPECT_EQ(xml_text(xml, "HostId"), "");
  EXPECT_EQ(xml_text(xml, "Resource"), std::nullopt);
}

TEST(S3Replies, ListHasItsKeysAndItsNextPage) {
  const auto page = parse_list_page(
      "<ListBucketResult xmlns=\"http://s3\"><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>abc</NextContinuationToken>"
      "<Contents><Key>a%2Fb+c</Key></Contents><Contents><Key>d</Key></Contents></"
      "ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->keys, (std::vector<std::string>{"a/b c", "d"}));
  EXPECT_EQ(page->next, "abc");
}

TEST(S3Replies, EmptyListIsALastPage) {
  const auto page = parse_list_page("<ListBucketResult></ListBucketResult>");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->keys.empty() && page->next.empty());
}

TEST(S3Replies, WhatIsNotAListIsNotTakenForAnEmptyOne) {
  for (const char* xml : {"", "<html>hello</html>", "<ListBucketResult>",
                          "<ListBucketResult><Contents><Key>%4</Key>"
                          "</Contents></ListBucketResult>",
                          "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"})
    EXPECT_FALSE(parse_list_page(xml)) << xml;
}

}  // namespace
}  // namespace pawl::guard
