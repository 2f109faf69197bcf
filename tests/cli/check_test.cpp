// `capo check` in the real program: the exit codes 0 to 4, where its input comes from, and what is
// declared beside it.

#include "tests/support/check_order.h"
#include "tests/support/run_capo.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::check_order;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::report_of;
using testing_support::run_capo;

// --- exit codes ---------------------------------------------------------------------------------

TEST(CheckExitCode, SaysTheVerdict) {
  const auto code = [](const std::string& order, const std::vector<std::string>& flags = {}) {
    return check_order(order, flags).exit_code;
  };
  EXPECT_EQ(code("[1, -1]"), 0);
  EXPECT_EQ(code("[1]"), 1);
  EXPECT_EQ(code("[1, -1]", {"--form", "tea"}), 2);
  EXPECT_EQ(code("[1, -1"), 3);
  EXPECT_EQ(code("[1, -1]", {"--max-entries", "1"}), 4);
  EXPECT_EQ(run_capo({"check", "--order", "[1, -1]"}, {.stdout_path = "/dev/full"}).exit_code, 5);
}

TEST(CheckExitCode, IsTheSameInEveryFormat) {
  for (const std::string order : {"[1, -1]", "[1]", "[1, -1", "[nan]", "{}"}) {
    const int code = check_order(order).exit_code;
    for (const char* format : {"text", "json", "sarif"}) {
      SCOPED_TRACE(order + " " + format);
      const Outcome outcome = check_order(order, {"--format", format});
      EXPECT_EQ(outcome.exit_code, code);
      EXPECT_EQ(outcome.err, "");
    }
  }
}

// --- where the input comes from -----------------------------------------------------------------

TEST(CheckInput, ComesFromTheCommandLineStandardInputOrAFile) {
  const std::string corpus = CAPO_SOURCE_DIR "/tests/corpus/input/line-ends";
  const Outcome from_order = check_order("[1, x]");
  const Outcome from_stdin = run_capo({"check", "-"}, {.input = "[1, x]"});
  const Outcome from_file = run_capo({"check", "malformed-lf.te"}, {.directory = corpus});
  EXPECT_TRUE(holds(from_order.out, "\n --> <order>:1:5\n")) << from_order.out;
  EXPECT_TRUE(holds(from_stdin.out, "\n --> <stdin>:1:5\n")) << from_stdin.out;
  EXPECT_TRUE(holds(from_file.out, "\n --> malformed-lf.te:2:5\n")) << from_file.out;
}

TEST(CheckInput, FindsOutItsForm) {
  const auto topology = [](const std::string& text) {
    const json report =
        json::parse(run_capo({"check", "-", "--format", "json"}, {.input = text}).out);
    return report.at("environment").is_null()
               ? ""
               : report.at("environment").at("topology").get<std::string>();
  };
  EXPECT_EQ(topology("[1, -1]"), "independent");
  EXPECT_EQ(topology("# mine\ncapo 1\nplacement loop\nrank 0: F1 B1\n"), "loop");
  EXPECT_EQ(topology("0F0,0B0\n"), "custom");
  EXPECT_EQ(topology("{\"placement\":\"chain\",\"ranks\":[{\"order\":[\"F1\",\"B1\"]}]}"), "chain");
}

TEST(CheckInput, IsReadAsItIsTold) {
  EXPECT_EQ(run_capo({"check", "-", "--form", "csv"}, {.input = "[1, -1]"}).exit_code, 3);
  EXPECT_EQ(run_capo({"check", "-", "--form", "te"}, {.input = "0F0,0B0"}).exit_code, 3);
  EXPECT_EQ(run_capo({"check", "-", "--form", "te"}, {.input = "1 -1"}).exit_code, 0);
}

TEST(CheckInput, MayBeLarge) {
  std::string order = "[1";
  for (int i = 1; i < 200'000; ++i) order += ", 1";
  for (int i = 0; i < 200'000; ++i) order += ", -1";
  const Outcome outcome = run_capo({"check", "-"}, {.input = order + "]"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(holds(outcome.out, "200000 microbatches")) << outcome.out;
}

// --- declarations -------------------------------------------------------------------------------

TEST(CheckDeclarations, AreReadAndReported) {
  const json environment =
      report_of("[1, 2, -2, -2.5, -1]",
                {"--layers-per-chunk", "1,2", "--delayed", "2", "--microbatches", "1"})
          .at("environment");
  EXPECT_EQ(environment.at("layers_per_chunk"), (json{1, 2}));
  EXPECT_EQ(environment.at("delayed"), json::array({2}));
  EXPECT_EQ(environment.at("microbatches"), 1);
  EXPECT_EQ(environment.at("assumed"), json::array({"topology"}));
}

TEST(CheckDeclarations, ChangeTheVerdict) {
  EXPECT_EQ(check_order("[1, -1]", {"--microbatches", "2"}).exit_code, 1);
  EXPECT_EQ(check_order("[1, -1]", {"--delayed", "all"}).exit_code, 1);
  EXPECT_EQ(check_order("[1, -1, -1.5]", {"--delayed", "none"}).exit_code, 1);
  EXPECT_EQ(check_order("[1, -1]", {"--layers-per-chunk", "1,1"}).exit_code, 1);
  EXPECT_EQ(check_order("[1, -1]", {"--layers-per-chunk", "none"}).exit_code, 0);
  EXPECT_EQ(check_order("[1, -1]", {"--layers-per-chunk", "[2]"}).exit_code, 0);
  EXPECT_EQ(check_order("[1, 2, -2, -1]", {"--layers-per-chunk", "1"}).exit_code, 0) << "of every";
  EXPECT_EQ(check_order("[1, 2, -2, -1]", {"--layers-per-chunk", "[1]"}).exit_code, 1) << "of one";
  EXPECT_EQ(check_order("0F0,0B0", {"--microbatches", "2"}).exit_code, 1);
  EXPECT_EQ(check_order("0F0,0B0", {"--stages", "2"}).exit_code, 1);
  EXPECT_EQ(check_order("0F0,0B0\n1F0,1B0", {"--stage-to-rank", "0,1"}).exit_code, 0);
  EXPECT_EQ(check_order("0F0,0B0\n1F0,1B0", {"--stage-to-rank", "1,0"}).exit_code, 1);
  EXPECT_EQ(check_order("0F0,0SEND_F0,0B0", {"--csv", "compute"}).exit_code, 1);
}

// A list as Python prints it.
TEST(CheckDeclarations, ListsMayHoldBlanks) {
  EXPECT_EQ(check_order("[1, 2, -2, -1]", {"--layers-per-chunk", "[1, 2]"}).exit_code, 0);
  EXPECT_EQ(check_order("0F0,0B0\n1F0,1B0", {"--stage-to-rank", "0, 1"}).exit_code, 0);
}

TEST(CheckDeclarations, MalformedOnesAreUsageErrors) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad{
      {"--layers-per-chunk", {"x", "1,", ",1", "1,,2", "[1", "1]", "1.5", "99999999999"}},
      {"--delayed", {"0", "-1", "1,", "x", "99999999999"}},
      {"--microbatches", {"0", "-1", "x", "1.5", "99999999999"}},
      {"--stage-to-rank", {"-1", "x", "0,", "99999999999"}},
      {"--stages", {"0", "-1", "x"}},
  };
  for (const auto& [flag, values] : bad) {
    const std::string order = flag.starts_with("--stage") ? "0F0,0B0" : "[1, -1]";
    for (const std::string& value : values) {
      SCOPED_TRACE(flag + " " + value);
      const Outcome outcome = check_order(order, {flag + "=" + value});
      EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
      EXPECT_TRUE(holds(outcome.err, flag)) << outcome.err;
    }
  }
}

// The message about a number that is too large does not call it too small.
TEST(CheckDeclarations, TooLargeIsNotCalledTooSmall) {
  const Outcome outcome = check_order("[1, -1]", {"--layers-per-chunk", "99999999999"});
  EXPECT_FALSE(holds(outcome.err, "at least")) << outcome.err;
}

// What the input's form cannot use would be ignored in silence.
TEST(CheckDeclarations, ThoseOfAnotherFormAreUsageErrors) {
  const std::string table = "0F0,0B0";
  const std::string list = "[1, -1]";
  const std::string file = "capo 1\nrank 0: F1 B1\n";
  const std::string json_te = R"({"order":[1,-1]})";
  const std::string json_csv = R"({"csv":["0F0,0B0"]})";
  const std::string json_ranks = R"({"ranks":[{"order":["F1","B1"]}]})";
  const std::vector<std::pair<std::string, std::vector<std::string>>> unused{
      {"--layers-per-chunk=1", {table, file, json_csv, json_ranks}},
      {"--delayed=none", {table, file, json_csv, json_ranks}},
      {"--stage-to-rank=0", {list, file, json_te, json_ranks}},
      {"--csv=compute", {list, file, json_te, json_ranks}},
      {"--stages=1", {list, file, json_te, json_ranks}},
      {"--microbatches=1", {file, json_ranks}},
  };
  for (const auto& [flag, orders] : unused) {
    for (const std::string& order : orders) {
      SCOPED_TRACE(flag + " with " + order);
      const Outcome outcome = check_order(order, {flag});
      EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
      EXPECT_TRUE(holds(outcome.err, flag.substr(0, flag.find('=')))) << outcome.err;
    }
  }
}

}  // namespace
}  // namespace capo
