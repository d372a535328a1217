#include "guard/mariadb/scripts.h"

#include <gtest/gtest.h>

namespace pawl::guard {
namespace {

using Statements = std::vector<std::string>;

TEST(MariaScripts, AStatementEndsAtTheDelimiterInForce) {
  EXPECT_EQ(
      statements_of("A;\nB\n  C;\nDELIMITER //\nCREATE x BEGIN\n  D;\nEND//\nDELIMITER ;\nE;\n"),
      (Statements{"A", "B\n  C", "CREATE x BEGIN\n  D;\nEND", "E"}));
}

TEST(MariaScripts, CommentsAreLeftOutAndHideNoDelimiter) {
  EXPECT_EQ(statements_of("-- why;\n\nA;  -- because\nB,  -- not; yet\nC;\n"),
            (Statements{"A", "B,\nC"}));
}

TEST(MariaScripts, NoStatementOfOurFilesIsCutInTwo) {
  for (const std::string_view file : {maria_install_file(), maria_uninstall_file()}) {
    const Statements statements = statements_of(file);
    EXPECT_FALSE(statements.empty());
    for (const std::string& statement : statements) {
      EXPECT_EQ(statement.find("//"), statement.npos) << statement;
      EXPECT_EQ(statement.find("DELIMITER"), statement.npos) << statement;
    }
  }
}

}  // namespace
}  // namespace pawl::guard
