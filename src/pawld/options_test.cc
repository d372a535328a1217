#include "pawld/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <vector>

#include "pawld/exit_codes.h"

namespace pawl::pawld {
namespace {

using testing::HasSubstr;

class OptionsTest : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  ParsedOptions parse(std::vector<const char*> args) {
    args.insert(args.begin(), "pawld");
    return parse_options(static_cast<int>(args.size()), args.data());
  }
  const char* file(const std::string& text) {
    std::ofstream(path_, std::ios::trunc) << text;
    return path_.c_str();
  }
  static std::string users_file(const std::string& text, mode_t mode) {
    const std::string path = testing::TempDir() + "pawld-options-test.users";
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string problem_in(const std::string& text) {
    Config config;
    const auto read = read_config(file(text), config);
    return read ? "" : read.error().detail.substr(path_.size());
  }

  const std::string path_ = testing::TempDir() + "pawld-options-test.toml";
};

TEST_F(OptionsTest, DefaultsServeOnLoopbackOnly) {
  const auto parsed = parse({});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->action, Action::kServe);
  EXPECT_EQ(parsed.options->config.resp, "127.0.0.1:7295");
  EXPECT_EQ(parsed.options->config.data, "pawl-data");
}

TEST_F(OptionsTest, AMistypedOptionIsNamedWithTheOneThatWasMeant) {
  const auto message = [&](std::vector<const char*> args) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(parse(std::move(args)).exit_code, kExitUsage);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(message({"--dta", "x", "--rsep", "y"}),
              HasSubstr("unknown option --dta; did you mean --data?"));
  EXPECT_THAT(message({"--listen", "127.0.0.1:1"}),
              HasSubstr("unknown option --listen; did you mean --resp"));
  EXPECT_THAT(message({"--listen=127.0.0.1:1"}), HasSubstr("unknown option --listen;"));
  EXPECT_THAT(message({"dump", "--dta", "x"}),
              HasSubstr("unknown option --dta; did you mean --data?"));
  EXPECT_THAT(message({"serve", "now"}), HasSubstr("unexpected: serve now"));
}

TEST_F(OptionsTest, RestoreNeedsABackupAndADirectory) {
  EXPECT_EQ(parse({"restore", "--data", "new"}).exit_code, kExitUsage);
  EXPECT_EQ(parse({"restore", "--from", "old"}).exit_code, kExitUsage);
  EXPECT_EQ(
      parse({"restore", "--from", "old", "--data", "new", "--above", "9007199254740992"}).exit_code,
      kExitUsage);
  const auto parsed =
      parse({"restore", "--from", "old", "--data", "new", "--above", "7", "--skip-wait", "--json"});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->action, Action::kRestore);
  EXPECT_EQ(parsed.options->restore.from, "old");
  EXPECT_EQ(parsed.options->config.data, "new");
  EXPECT_EQ(parsed.options->restore.above, 7U);
  EXPECT_EQ(parsed.options->restore.wait_at_least, Millis(0));
  EXPECT_TRUE(parsed.options->restore.skip_wait && parsed.options->json);
  const auto longer = parse({"--config", file("max_ttl_ms = 7000\nmax_delay_ms = 300\n"), "restore",
                             "--from", "old", "--data", "new"});
  ASSERT_TRUE(longer.options);
  EXPECT_EQ(longer.options->restore.wait_at_least, Millis(7300))
      << "of a configuration that is given";
}

TEST_F(OptionsTest, FlagsOverrideTheFileAndTheFileOverridesDefaults) {
  const char* path = file(
      "data = \"from-file\"\nresp = \"127.0.0.1:1\"\nmax_ttl_ms = 1000\n[journal]\nsegment_bytes = "
      "1048576\n");
  const auto parsed = parse({"--config", path, "--data", "from-flag"});
  ASSERT_TRUE(parsed.options);
  const Config& config = parsed.options->config;
  EXPECT_EQ(config.data, "from-flag");
  EXPECT_EQ(config.resp, "127.0.0.1:1");
  EXPECT_EQ(config.max_ttl, Millis(1000));
  EXPECT_EQ(config.journal.segment_bytes, 1U << 20);
}

TEST_F(OptionsTest, UnknownKeysAndValuesOutOfRangeAreNamedWithTheirLine) {
  EXPECT_THAT(problem_in("\nprot = 1\n"), HasSubstr(":2: unknown key \"prot\""));
  EXPECT_THAT(problem_in("[journal]\nsegments = 1\n"),
              HasSubstr(":2: unknown key \"journal.segments\""));
  EXPECT_THAT(problem_in("[other]\nx = 1\n"), HasSubstr("unknown key \"other\""));
  EXPECT_THAT(problem_in("data = 3\n"), HasSubstr(":1: data: expected a text"));
  EXPECT_THAT(problem_in("data = \"a\\nb\"\n"), HasSubstr(":1: data: expected a text of one line"));
  EXPECT_THAT(problem_in("max_ttl_ms = 99\n"), HasSubstr("100 to 86400000"));
  EXPECT_THAT(problem_in("[limits]\nleases = 0\n"),
              HasSubstr(":2: limits.leases: expected a whole"));
  EXPECT_THAT(problem_in("[limits]\nlocks = 1\n"), HasSubstr("unknown key \"limits.locks\""));
  EXPECT_THAT(problem_in("[journal]\nsegment_bytes = 1000\n"), HasSubstr("journal.segment_bytes"));
  EXPECT_THAT(problem_in("[journal]\nsegment_bytes = 1048577\n"), HasSubstr("multiple of 4096"));
  EXPECT_THAT(problem_in("log_format = \"xml\"\n"), HasSubstr("\"text\" or \"json\""));
  EXPECT_THAT(problem_in("data = \n"), HasSubstr(":1: "));
}

TEST_F(OptionsTest, ThePrintedConfigurationReadsBack) {
  Config config;
  config.data = "some \"where\"";
  config.auth_file = "users";
  config.store = StoreKind::kMemory;
  config.journal.must_exist = true;
  config.journal.spare_segments = 5;
  config.max_ttl = Millis(12345);
  config.limits.leases_per_user = 17;
  config.wait = Millis(1);
  config.tls = {"a.pem", "a.key", ""};
  config.http = "off";
  config.http_hosts = {"locks.example", "[fd00::1]"};
  Config again;
  const auto read = read_config(file(to_toml(config)), again);
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(to_toml(again), to_toml(config));
}

TEST_F(OptionsTest, WaitIsADurationFlagOrMillisecondsInTheFile) {
  EXPECT_EQ(parse({}).options->config.wait, Millis(10'000));
  EXPECT_EQ(parse({"--wait", "0"}).options->config.wait, Millis(0));
  EXPECT_EQ(parse({"--config", file("wait_ms = 7\n")}).options->config.wait, Millis(7));
  EXPECT_EQ(parse({"--config", file("wait_ms = 7\n"), "--wait", "2s"}).options->config.wait,
            Millis(2000));
  EXPECT_EQ(parse({"--wait", "5"}).exit_code, kExitUsage);
  EXPECT_EQ(parse({"--wait", "1h"}).exit_code, kExitUsage);
  EXPECT_THAT(problem_in("wait_ms = -1\n"), HasSubstr("milliseconds, 0 to 600000"));
}

TEST_F(OptionsTest, ANonLoopbackAddressNeedsInsecure) {
  EXPECT_EQ(parse({"--resp", "0.0.0.0:7295"}).exit_code, kExitConfig);
  EXPECT_TRUE(parse({"--resp", "0.0.0.0:7295", "--insecure"}).options);
  EXPECT_TRUE(parse({"--resp", "[::1]:7295"}).options);
  EXPECT_TRUE(parse({"--resp", "127.3.2.1:0"}).options);
  EXPECT_EQ(parse({"--resp", "7295"}).exit_code, kExitConfig);
  EXPECT_EQ(parse({"--resp", "127.0.0.1:70000"}).exit_code, kExitConfig);
}

// Both are needed: users whose secrets can be read on the way are no protection.
TEST_F(OptionsTest, ANonLoopbackAddressWithUsersStillNeedsTls) {
  const std::string users = users_file("", 0600);
  EXPECT_TRUE(parse({"--auth-file", users.c_str()}).options);
  EXPECT_EQ(parse({"--auth-file", users.c_str(), "--resp", "0.0.0.0:7295"}).exit_code, kExitConfig);
  EXPECT_TRUE(
      parse({"--auth-file", users.c_str(), "--resp", "0.0.0.0:7295", "--insecure"}).options);
  std::remove(users.c_str());
}

TEST_F(OptionsTest, AnUnusableAuthFileIsReportedAtOnce) {
  EXPECT_EQ(parse({"--auth-file", "no/such/file"}).exit_code, kExitConfig);
  const std::string open = users_file("", 0644);
  EXPECT_EQ(parse({"--auth-file", open.c_str()}).exit_code, kExitConfig);
  const std::string wrong = users_file("ci use hunter2\n", 0600);
  EXPECT_EQ(parse({"--auth-file", wrong.c_str(), "--check-config"}).exit_code, kExitConfig);
  std::remove(wrong.c_str());
  EXPECT_EQ(parse({"--auth-file", ""}).exit_code, kExitUsage);
}

TEST_F(OptionsTest, TlsFilesComeFromFileOrFlagsAndAreChecked) {
  Config config;
  ASSERT_TRUE(read_config(
      file("[tls]\ncert = \"c.pem\"\nkey = \"k.pem\"\nclient_ca = \"ca.pem\"\n"), config));
  EXPECT_EQ(config.tls.cert, "c.pem");
  EXPECT_EQ(config.tls.key, "k.pem");
  EXPECT_EQ(config.tls.client_ca, "ca.pem");
  EXPECT_THAT(problem_in("[tls]\ncertificate = \"c\"\n"),
              HasSubstr(":2: unknown key \"tls.certificate\""));
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse({"--tls-cert", "no/such.pem", "--tls-key", "k.pem", "--check-config"}).exit_code,
            kExitConfig);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no/such.pem: cannot be read"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse({"--tls-cert", "c.pem"}).exit_code, kExitConfig);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("tls.key"));
}

TEST_F(OptionsTest, HttpIsOnLoopbackUnlessOffOrInsecure) {
  EXPECT_EQ(parse({}).options->config.http, "127.0.0.1:7296");
  EXPECT_EQ(parse({"--http", "off"}).options->config.http, kHttpOff);
  EXPECT_EQ(parse({"--http", "0.0.0.0:7296"}).exit_code, kExitConfig);
  EXPECT_TRUE(parse({"--http", "0.0.0.0:7296", "--insecure"}).options);
  EXPECT_EQ(parse({"--http", ""}).options->config.http, kHttpOff);
  EXPECT_EQ(parse({"--config", file("[http]\nlisten = \"\"\n")}).options->config.http, kHttpOff);
  const auto parsed =
      parse({"--config", file("[http]\nlisten = \"127.0.0.1:1\"\nhosts = [\"locks.example\"]\n")});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->config.http, "127.0.0.1:1");
  EXPECT_THAT(parsed.options->config.http_hosts, testing::ElementsAre("locks.example"));
  for (const char* hosts : {"\"a\"", "[1]", "[\"a:80\"]", "[\"http://a\"]", "[\"\"]"}) {
    EXPECT_THAT(problem_in(std::string("[http]\nhosts = ") + hosts + "\n"),
                HasSubstr(":2: http.hosts: expected"))
        << hosts;
  }
  EXPECT_THAT(problem_in("[http]\nport = 1\n"), HasSubstr("unknown key \"http.port\""));
}

TEST_F(OptionsTest, UsageErrorsExit64AndWrongFiles78) {
  EXPECT_EQ(parse({"--nonsense"}).exit_code, kExitUsage);
  EXPECT_EQ(parse({"--store", "paper"}).exit_code, kExitUsage);
  EXPECT_EQ(parse({"surplus"}).exit_code, kExitUsage);
  EXPECT_EQ(parse({"--config", file("x = 1\n")}).exit_code, kExitConfig);
  EXPECT_EQ(parse({"--config", "no/such/file.toml"}).exit_code, kExitConfig);
}

TEST_F(OptionsTest, EachSubcommandIsItsOwnAction) {
  EXPECT_EQ(parse({"--check-config"}).options->action, Action::kCheckConfig);
  EXPECT_EQ(parse({"--print-config"}).options->action, Action::kPrintConfig);
  const auto dump = parse({"dump", "--data", "elsewhere"});
  EXPECT_EQ(dump.options->action, Action::kDump);
  EXPECT_EQ(dump.options->config.data, "elsewhere");
  EXPECT_EQ(parse({"--help"}).exit_code, kExitOk);
}

TEST_F(OptionsTest, AClusterNeedsTheAddressesOfEtcd) {
  EXPECT_EQ(parse({"--store", "etcd"}).exit_code, kExitConfig);
  EXPECT_EQ(parse({"--etcd", "db1:2379"}).exit_code, kExitConfig) << "the store is a journal";
  const auto parsed = parse({"--store", "etcd", "--etcd", "db1,db2:2380", "--cluster", "prod",
                             "--advertise", "db1:7295"});
  ASSERT_TRUE(parsed.options);
  const Config& config = parsed.options->config;
  EXPECT_EQ(config.store, StoreKind::kEtcd);
  EXPECT_EQ(config.etcd.endpoints, "db1,db2:2380");
  EXPECT_EQ(config.etcd.cluster, "prod");
  EXPECT_EQ(config.etcd.advertise, "db1:7295");
  EXPECT_EQ(config.etcd.role_ttl, Millis(5000));
}

TEST_F(OptionsTest, AnAddressThatNoClientCanUseIsNotAdvertised) {
  const auto check = [](const std::string& advertise, const std::string& resp) {
    ClusterOptions options;
    options.endpoints = "db1";
    options.advertise = advertise;
    const auto checked = check_cluster(options, resp);
    return checked ? std::string() : checked.error().detail;
  };
  EXPECT_EQ(check("", "127.0.0.1:7295"), "");
  EXPECT_EQ(check("db1:7295", "0.0.0.0:7295"), "");
  EXPECT_THAT(check("", "0.0.0.0:7295"), HasSubstr("--advertise"));
  EXPECT_THAT(check("[::]:7295", "127.0.0.1:7295"), HasSubstr("--advertise"));
  EXPECT_THAT(check("db1:0", "127.0.0.1:7295"), HasSubstr("must not be 0"));
  EXPECT_THAT(check(std::string(130, 'x') + ":1", "127.0.0.1:7295"), HasSubstr("128 bytes"));
}

TEST_F(OptionsTest, KeysOfEtcdAreChecked) {
  EXPECT_EQ(problem_in("[etcd]\nendpoints = \"db1\"\nrole_ttl_ms = 2000\ntls = true\n"), "");
  EXPECT_THAT(problem_in("[etcd]\nrole_ttl_ms = 10\n"),
              HasSubstr("etcd.role_ttl_ms: expected milliseconds, 1000 to 60000"));
  EXPECT_THAT(problem_in("[etcd]\nquota_bytes = 1\n"), HasSubstr("etcd.quota_bytes"));
  EXPECT_THAT(problem_in("[etcd]\nnodes = 3\n"), HasSubstr("unknown key \"etcd.nodes\""));
  ClusterOptions options;
  options.endpoints = "db1";
  options.user = "pawld";
  options.password_file = "/nonexistent";
  EXPECT_THAT(check_cluster(options, "127.0.0.1:7295").error().detail,
              HasSubstr("etcd.password_file"));
  options.user = "";
  EXPECT_THAT(check_cluster(options, "127.0.0.1:7295").error().detail, HasSubstr("etcd.user"));
  options.password_file = "";
  options.cluster = "a/b";
  EXPECT_THAT(check_cluster(options, "127.0.0.1:7295").error().detail, HasSubstr("--cluster a/b"));
}

}  // namespace
}  // namespace pawl::pawld
