// `capo generate megatron`: its orders are those of Megatron's own functions, and every form of
// them can be read again and is right. Its words are cases of tests/corpus/cli/generate.

#include "tests/support/data.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::read_data;
using testing_support::run_capo;
using testing_support::RunOptions;

// The words of `capo generate megatron ...`, split at blanks.
Outcome generate(const std::string& flags, const RunOptions& options = {}) {
  std::vector<std::string> arguments{"generate", "megatron"};
  std::istringstream in(flags);
  for (std::string word; in >> word;) arguments.push_back(word);
  return run_capo(arguments, options);
}

std::string generated(const std::string& flags) {
  const Outcome outcome = generate(flags);
  EXPECT_EQ(outcome.exit_code, 0) << flags << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "") << flags;
  return outcome.out;
}

constexpr const char* kLayered =
    "--pp 2 --vp 2 --microbatches 4 --rank all --overlap --layers 1,2 --delayed-wgrad";

// Every schedule that was recorded, with a flag for each of its inputs.
TEST(GenerateTe, IsWhatMegatronsOwnFunctionsMade) {
  const json data = read_data("megatron_orders.json");
  std::size_t rows = 0;
  for (const json& row : data.at("rows")) {
    if (row.at("kind") != "schedule") continue;
    ++rows;
    const json& in = row.at("inputs");
    std::string flags = fmt::format("--pp {} --microbatches {} --rank {}", in.at("pp").dump(),
                                    in.at("num_microbatches").dump(), in.at("rank").dump());
    if (!in.at("vp").is_null()) {
      flags +=
          fmt::format(" --vp {} --group-size {}", in.at("vp").dump(), in.at("group_size").dump());
    }
    const bool overlap = in.at("overlap");
    if (overlap) {
      const auto layers = in.at("layers_per_chunk").get<std::vector<int>>();
      flags += fmt::format(" --overlap --layers {}{}", fmt::join(layers, ","),
                           in.at("wgrad") ? " --delayed-wgrad" : "");
    }
    const Outcome outcome = generate(flags + " --force");
    EXPECT_EQ(outcome.exit_code, 0) << flags << outcome.err;
    EXPECT_EQ(json::parse(outcome.out), row.at(overlap ? "layer_order" : "chunk_order")) << flags;
    const std::string verdict = row.at("runtime").at(0);
    EXPECT_EQ(outcome.err, verdict == "accepted"
                               ? ""
                               : "warning: Megatron's runtime refuses this configuration: " +
                                     verdict.substr(std::string("rejected: ").size()) + "\n")
        << flags;
  }
  std::printf("%zu schedules were generated\n", rows);
  EXPECT_EQ(rows, 272U);
}

// Each form is read again, is right, and holds the lists that were printed as such.
TEST(GenerateSchedule, EveryFormIsReadAgainAndHoldsTheSameLists) {
  for (const std::string flags :
       {kLayered, "--pp 2 --vp 2 --microbatches 4 --rank all", "--pp 3 --microbatches 5 --rank all",
        "--pp 2 --vp 3 --microbatches 4 --rank all --overlap --which runtime",
        "--pp 1 --microbatches 3 --rank all --overlap --delayed-wgrad --layers 2"}) {
    std::istringstream lists(generated(flags));
    std::vector<std::string> of_rank;
    for (std::string line; std::getline(lists, line);) of_rank.push_back(line + "\n");
    for (const std::string form : {"order", "csv", "json"}) {
      SCOPED_TRACE(flags + " as " + form);
      const RunOptions text{.input = generated(flags + " --format " + form)};
      const Outcome checked = run_capo({"check", "-", "--form", form}, text);
      EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
      for (std::size_t r = 0; r < of_rank.size(); ++r) {
        const Outcome list = run_capo(
            {"convert", "-", "--form", form, "--to", "te", "--rank", std::to_string(r)}, text);
        EXPECT_EQ(list.out, of_rank[r]) << list.err;
      }
      if (form == "csv") continue;  // a table declares less than is known
      EXPECT_EQ(run_capo({"convert", "-", "--form", form, "--to", form}, text).out, text.input);
    }
    for (const std::string& list : of_rank) {
      const Outcome checked =
          run_capo({"check", "-", "--form", "te", "--profile", "sound,te,mcore"}, {.input = list});
      EXPECT_EQ(checked.exit_code, 0) << checked.out;
      EXPECT_TRUE(holds(checked.out, "profile te: accepts")) << checked.out;
      EXPECT_TRUE(holds(checked.out, "profile mcore: accepts")) << checked.out;
    }
  }
}

TEST(GenerateSchedule, IsWrittenToAFile) {
  const testing_support::ScratchFolder folder;
  const std::string path = (folder.path() / "generated.order").string();
  EXPECT_EQ(generated(std::string(kLayered) + " --format order -o " + path), "");
  EXPECT_EQ(folder.read("generated.order"), generated(std::string(kLayered) + " --format order"));
  const Outcome nowhere = generate(std::string(kLayered) + " -o /nowhere/at/all");
  EXPECT_EQ(nowhere.exit_code, 5);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_EQ(generate(kLayered, {.stdout_path = "/dev/full"}).exit_code, 5);
}

TEST(GenerateUsage, AnUnknownOptionOrValueIsRefused) {
  const Outcome unknown = run_capo({"generate", "--no-such-option"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(holds(unknown.err, "--no-such-option")) << unknown.err;
  for (const char* flags : {"--pp 0", "--pp x", "--which both", "--format yaml", "--max-entries 0",
                            "--max-ranks 0", "--max-count 0", "--vp x", "--ordr"}) {
    const Outcome outcome =
        generate(fmt::format("--vp 2 --microbatches 4 --rank 0 --pp 2 {}", flags));
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(GenerateHelp, NamesEveryOptionAndItsExampleWorks) {
  const Outcome outer = run_capo({"generate", "--help"});
  EXPECT_EQ(outer.exit_code, 0);
  EXPECT_TRUE(
      outer.out.ends_with("Example: capo generate zb-2p --ranks 4 --microbatches 16 --cost "
                          "f=12,b=13,w=9,comm=1\n"))
      << outer.out;
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank 0").substr(0, 4), "[1, ");
  const Outcome help = generate("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* option : {"--pp", "--vp", "--microbatches", "--group-size", "--rank", "--layers",
                             "--overlap", "--delayed-wgrad", "--which", "--force", "--format",
                             "-o,--output", "--max-entries", "--max-ranks", "--max-count"}) {
    EXPECT_TRUE(holds(help.out, fmt::format("  {} ", option))) << option;
  }
  const std::string lead = "Example: capo generate megatron ";
  const std::size_t example = help.out.rfind(lead);
  ASSERT_NE(example, std::string::npos);
  EXPECT_FALSE(generated(help.out.substr(example + lead.size())).empty());
}

void expect_both_sides(const std::string& flags, const std::string& flag, std::size_t needs) {
  SCOPED_TRACE(flags + " " + flag);
  EXPECT_EQ(generate(fmt::format("{} {} {}", flags, flag, needs)).exit_code, 0);
  const Outcome beyond = generate(fmt::format("{} {} {}", flags, flag, needs - 1));
  EXPECT_EQ(beyond.exit_code, 4) << beyond.err;
  EXPECT_EQ(beyond.out, "");
  EXPECT_TRUE(beyond.err.starts_with("error: ")) << beyond.err;
  EXPECT_TRUE(beyond.err.ends_with("raise the limit with " + flag + "\n")) << beyond.err;
}

TEST(GenerateLimits, HoldOnBothSides) {
  const std::string plain = "--pp 2 --vp 2 --microbatches 4 --rank all";
  for (const char* format : {"te", "order", "csv", "json"}) {
    expect_both_sides(plain + " --format " + format, "--max-entries", 32);
    expect_both_sides(plain + " --format " + format, "--max-ranks", 2);
    expect_both_sides(plain + " --format " + format, "--max-count", 4);
  }
  expect_both_sides("--pp 2 --vp 2 --microbatches 4 --rank 0", "--max-entries", 16);
  expect_both_sides(kLayered, "--max-entries", 72);
  expect_both_sides("--pp 2 --vp 2 --microbatches 2 --rank 0 --overlap --layers 7", "--max-count",
                    7);
  // Six chunks in all, which a reader of the file would count.
  expect_both_sides(std::string(kLayered) + " --format order", "--max-count", 6);
}

TEST(GenerateLimits, HugeNumbersEndAtOnce) {
  for (const char* flags :
       {"--pp 2147483647 --microbatches 4 --rank all", "--pp 2147483647 --microbatches 4 --rank 7",
        "--pp 2 --vp 9223372036854775807 --microbatches 4 --rank 0",
        "--pp 2 --vp 2 --microbatches 9223372036854775807 --rank 0",
        "--pp 2 --vp 4194304 --microbatches 4194304 --rank all",
        "--pp 65536 --microbatches 4194304 --rank all",
        "--pp 2 --vp 2 --microbatches 4 --rank 0 --group-size 9223372036854775807",
        "--pp 2 --vp 2 --microbatches 4 --rank 0 --group-size -9223372036854775807",
        "--pp 2 --vp 2 --microbatches 4 --rank all --overlap --layers 4194304"}) {
    const Outcome outcome = generate(flags, {.seconds = 20});
    EXPECT_EQ(outcome.exit_code, 4) << flags << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace capo
