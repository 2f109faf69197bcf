// Every number on the command line, of every command: decimal, finite, and refused in few words.
// The options are those that help lists, so that none is forgotten.

#include "tests/support/run_capo.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;

using Words = std::vector<std::string>;

struct NumberOption {
  Words command;
  std::string name;
  std::string type;     ///< INT, UINT or FLOAT
  bool listed = false;  ///< takes several, with commas between them
};

std::vector<NumberOption> number_options() {
  const std::regex line(R"(^\s+(?:-\w,)?(--[a-z-]+)\S* (UINT|INT|FLOAT)\b( \.\.\.)?.*)");
  std::vector<NumberOption> options;
  for (const Words& command : std::vector<Words>{{"check"},
                                                 {"convert"},
                                                 {"generate"},
                                                 {"generate", "megatron"},
                                                 {"simulate"},
                                                 {"compare"},
                                                 {"sweep"},
                                                 {"run"},
                                                 {"measure"},
                                                 {"graph"},
                                                 {"minimise"}}) {
    Words help = command;
    help.emplace_back("--help");
    std::istringstream lines(run_capo(help).out);
    std::smatch found;
    for (std::string text; std::getline(lines, text);) {
      if (!std::regex_match(text, found, line)) continue;
      options.push_back(
          {.command = command, .name = found[1], .type = found[2], .listed = found[3].matched});
    }
  }
  return options;
}

TEST(Numbers, OfEveryCommandAreDecimalAndFinite) {
  const std::vector<NumberOption> options = number_options();
  ASSERT_GT(options.size(), 50U);
  for (const NumberOption& option : options) {
    for (const std::string text :
         {"0x10", "nan", "inf", "1e400", "1_0", "", "ten", "0b1", "-0x1", "1,000"}) {
      if (option.listed && text == "1,000") continue;  // these are two
      Words arguments = option.command;
      arguments.push_back(option.name + "=" + text);
      const Outcome outcome = run_capo(arguments);
      SCOPED_TRACE(option.command.back() + " " + arguments.back());
      EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
      EXPECT_TRUE(holds(outcome.err, option.name)) << outcome.err;
    }
  }
}

TEST(Numbers, ThatDoNotFitAreRefusedInFewWords) {
  for (const NumberOption& option : number_options()) {
    for (const std::size_t digits : {20, 400}) {
      if (option.type == "FLOAT" && digits == 20) continue;  // that is a number like any other
      Words arguments = option.command;
      arguments.push_back(option.name + "=" + std::string(digits, '9'));
      const Outcome outcome = run_capo(arguments);
      SCOPED_TRACE(option.command.back() + " " + option.name + "=9...");
      EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
      EXPECT_TRUE(holds(outcome.err, option.name)) << outcome.err;
      EXPECT_LT(outcome.err.size(), 250U) << outcome.err;
    }
  }
}

TEST(Numbers, ZerosInFrontChangeNothing) {
  const Outcome ten = run_capo({"generate", "1f1b", "--ranks", "010", "--microbatches", "0012"});
  EXPECT_EQ(ten.exit_code, 0) << ten.err;
  EXPECT_TRUE(ten.out.starts_with("capo 1\nranks 10\nmicrobatches 12\n")) << ten.out;
  EXPECT_EQ(run_capo({"check", "--order", "[1, -1]", "--max-entries", "08"}).exit_code, 0);
  EXPECT_EQ(run_capo({"check", "--order", "[1, -1]", "--microbatches", "01"}).exit_code, 0);
}

TEST(Numbers, OfMemoryAreAboveZeroAndFinite) {
  const auto generate = [](const std::string& memory) {
    return run_capo(
        {"generate", "zb", "--ranks", "2", "--microbatches", "4", "--memory=" + memory});
  };
  const auto sweep = [](const std::string& memory) {
    return run_capo({"sweep", "zb", "--ranks", "2", "--microbatches", "4", "--memory=" + memory});
  };
  for (const char* sound : {"2", "2.5", "02.0", "1e1"}) {
    EXPECT_EQ(generate(sound).exit_code, 0) << sound;
    EXPECT_EQ(sweep(sound).exit_code, 0) << sound;
  }
  for (const std::string bad : {"0", "-1", "nan", "inf", "0x2"}) {
    EXPECT_EQ(generate(bad).exit_code, 2) << bad;
    for (const std::string& list : {bad, "4," + bad, bad + ",4"}) {
      const Outcome outcome = sweep(list);
      EXPECT_EQ(outcome.exit_code, 2) << list;
      EXPECT_TRUE(holds(outcome.err, "--memory: `" + bad + "` is no number")) << outcome.err;
    }
  }
  EXPECT_EQ(sweep("4,").exit_code, 2);
}

}  // namespace
}  // namespace capo
