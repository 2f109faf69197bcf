// `capo generate megatron`: what it prints, that every form of it can be read again and is right,
// what it warns of, and what it refuses.

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

void expect_usage_error(const std::string& flags, const std::string& message) {
  const Outcome outcome = generate(flags);
  EXPECT_EQ(outcome.exit_code, 2) << flags << "\n" << outcome.out;
  EXPECT_EQ(outcome.out, "") << flags;
  EXPECT_EQ(outcome.err,
            "error: " + message +
                "\n  help: `capo --help` and `capo COMMAND --help` tell what there is\n")
      << flags;
}

constexpr const char* kLayered =
    "--pp 2 --vp 2 --microbatches 4 --rank all --overlap --layers 1,2 --delayed-wgrad";

// --- what is printed ----------------------------------------------------------------------------

TEST(GenerateTe, IsAListPerRank) {
  const std::string first = "[1, 1, 2, 2, 1, -2, 1, -2, 2, -1, 2, -1, -2, -2, -1, -1]\n";
  const std::string second = "[1, 1, 2, -2, 2, -2, 1, -1, 1, -1, 2, -2, 2, -2, -1, -1]\n";
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank all"), first + second);
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank 0"), first);
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank 1 --group-size 2"), second);
  EXPECT_EQ(generated("--pp 2 --microbatches 3 --rank 0"), "[1, 1, -1, 1, -1, -1]\n");
}

TEST(GenerateTe, HasHalvesForDelayedWeightGradients) {
  EXPECT_EQ(generated("--pp 1 --microbatches 2 --rank 0 --overlap --delayed-wgrad"),
            "[1, 1, -1, -1.5, -1, -1.5]\n");
  EXPECT_EQ(generated("--pp 1 --microbatches 2 --rank 0 --overlap"), "[1, 1, -1, -1]\n");
}

// One forward more before the first backward, and no layers.
TEST(GenerateTe, IsTheRuntimesOrderIfAskedForIt) {
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 2 --rank 1 --overlap"),
            "[1, 1, 2, 2, -2, -2, -1, -1]\n");
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank 1 --overlap --which runtime"),
            "[1, 1, 2, 2, -2, 1, -2, 1, -1, 2, -1, 2, -2, -2, -1, -1]\n");
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank 1 --which runtime"),
            generated("--pp 2 --vp 2 --microbatches 4 --rank 1 --which capture"));
}

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

// --- the whole schedule -------------------------------------------------------------------------

TEST(GenerateSchedule, AsAnOrderFileDeclaresPlacementLayersAndDelays) {
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 2 --rank all --layers 2 --format order"),
            "capo 1\nranks 2\nmicrobatches 2\nplacement loop\n"
            "rank 0 chunks 2\nrank 0 layers 2,2\nrank 0 delayed none\n"
            "rank 0: F1 F1 F2 F2 B2 B2 B1 B1\n"
            "rank 1 chunks 2\nrank 1 layers 2,2\nrank 1 delayed none\n"
            "rank 1: F1 F1 F2 B2 F2 B2 B1 B1\n");
}

TEST(GenerateSchedule, AsATableNamesStages) {
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 2 --rank all --format csv"),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
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

// --- warnings, notes and what needs --force -----------------------------------------------------

TEST(GenerateWarning, NamesWhyTheRuntimeRefusesAndPrintsTheOrder) {
  const std::vector<std::pair<std::string, std::string>> reasons{
      {"--pp 2 --vp 2 --microbatches 5 --rank 0", "last microbatch group is smaller than PP"},
      {"--pp 4 --vp 2 --microbatches 8 --rank 0 --group-size 2",
       "interleaved schedule needs PP <= group_size <= num_microbatches"},
      {"--pp 2 --microbatches 4 --rank 0 --overlap", "EP overlap needs VP when PP>1"},
      {"--pp 1 --vp 1 --microbatches 4 --rank 0 --overlap",
       "parallel_state needs PP>1 when VP is set"}};
  for (const auto& [flags, reason] : reasons) {
    for (const char* force : {"", " --force"}) {
      const Outcome outcome = generate(flags + force);
      EXPECT_EQ(outcome.exit_code, 0) << flags;
      EXPECT_TRUE(outcome.out.starts_with("[1, ")) << outcome.out;
      EXPECT_EQ(outcome.err,
                "warning: Megatron's runtime refuses this configuration: " + reason + "\n");
    }
  }
}

// What cannot be written is not warned of.
TEST(GenerateWarning, IsNotSaidOfWhatIsRefusedAnyway) {
  const Outcome outcome =
      generate("--pp 2 --vp 2 --microbatches 5 --rank all --max-entries 39 --format json");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_FALSE(holds(outcome.err, "warning")) << outcome.err;
}

TEST(GenerateNote, SaysThatOneMicrobatchIsCapturedForAll) {
  const Outcome outcome = generate("--pp 1 --microbatches 8 --rank 0");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "[1, -1]\n");
  EXPECT_EQ(outcome.err,
            "note: without a pipeline Megatron captures one microbatch, and replays it for all "
            "8\n");
  EXPECT_EQ(generated("--pp 1 --microbatches 1 --rank 0"), "[1, -1]\n");
  EXPECT_EQ(generated("--pp 1 --microbatches 2 --rank 0 --which runtime"), "[1, -1, 1, -1]\n");
}

TEST(GenerateForce, IsNeededForAnOrderThatNothingCanRun) {
  const std::string flags = "--pp 1 --vp 2 --microbatches 1 --rank 0 --which runtime";
  expect_usage_error(flags,
                     "--force: Megatron's functions give an order that nothing can run: rank 0 "
                     "runs -2 at index 1 before the forward that it belongs to; only with --force "
                     "is it written");
  const Outcome outcome = generate(flags + " --force");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "[1, -2, 2, -1]\n");
  EXPECT_EQ(outcome.err,
            "warning: Megatron's runtime refuses this configuration: parallel_state needs PP>1 "
            "when VP is set\n");
}

TEST(GenerateForce, IsNeededForAnOrderOfNothing) {
  const std::string flags = "--pp 1 --microbatches 2 --rank all --overlap --layers 0";
  expect_usage_error(flags,
                     "--force: Megatron's functions give an order that nothing can run: there is "
                     "nothing to order: no chunk has a layer that could be captured; only with "
                     "--force is it written");
  EXPECT_EQ(generated(flags + " --force"), "[]\n");
  EXPECT_EQ(
      run_capo({"check", "-"}, {.input = generated(flags + " --force --format json")}).exit_code,
      0);
  expect_usage_error(flags + " --force --format csv",
                     "--format: a table without a cell is none; take order or json");
}

// --- what Megatron's functions raise ------------------------------------------------------------

TEST(GenerateUsage, NamesTheFlagAndMegatronsOwnException) {
  const std::string empty =
      ": Megatron's convert_schedule_table_to_order raises ValueError: not enough values to unpack "
      "(expected 2, got 0) (rank 0, an empty table)";
  expect_usage_error("--pp 2 --vp 2 --microbatches 0 --rank 0", "--microbatches" + empty);
  expect_usage_error("--pp 2 --vp 2 --microbatches -3 --rank 0", "--microbatches" + empty);
  expect_usage_error("--pp 2 --vp 0 --microbatches 4 --rank 0", "--vp" + empty);
  expect_usage_error("--pp 2 --vp -1 --microbatches 4 --rank 0", "--vp" + empty);
  expect_usage_error("--pp 2 --vp 2 --microbatches 4 --rank 0 --group-size -2",
                     "--group-size" + empty);
  expect_usage_error("--pp 2 --vp 2 --microbatches 4 --rank 0 --group-size 0",
                     "--group-size: Megatron's get_schedule_table raises ValueError: range() arg 3 "
                     "must not be zero (group size 0)");
  expect_usage_error("--pp 2 --vp 3 --microbatches 4 --rank 1 --overlap --layers 1,2",
                     "--layers: Megatron's get_overlap_moe_expert_parallel_comm_order raises "
                     "IndexError: list index out of range (rank 1, index 4 of the chunk order: "
                     "chunk 3 of 2)");
  expect_usage_error("--pp 1 --vp 2 --microbatches 4 --rank 0",
                     "--vp: Megatron's _get_cuda_graph_input_data raises AssertionError: If PP is "
                     "not enabled, there should be only one model chunk. (2 virtual stages without "
                     "a pipeline)");
}

// --- usage --------------------------------------------------------------------------------------

TEST(GenerateUsage, ARankIsOneOfThePipelineOrAll) {
  for (const char* rank : {"2", "-1", "x", "1x", "99999999999999999999", "ALL"}) {
    expect_usage_error(
        fmt::format("--pp 2 --microbatches 4 --rank {}", rank),
        fmt::format("--rank: `{}` is neither `all` nor one of the ranks 0 to 1", rank));
  }
}

TEST(GenerateUsage, AFlagWithoutAUseIsRefused) {
  expect_usage_error("--pp 2 --microbatches 4 --rank 0 --group-size 2",
                     "--group-size: needs --vp: without virtual stages it has no use");
  expect_usage_error("--pp 2 --vp 2 --microbatches 4 --rank 0 --delayed-wgrad",
                     "--delayed-wgrad: needs --overlap: Megatron captures weight gradients layer "
                     "by layer");
  expect_usage_error(
      "--pp 2 --vp 2 --microbatches 4 --rank 0 --overlap --delayed-wgrad --which runtime",
      "--delayed-wgrad: the runtime's order is one of chunks, which has no entry for it");
  for (const char* format : {"te", "csv"}) {
    for (const char* flags : {"", " --overlap --which runtime"}) {
      expect_usage_error(
          fmt::format("--pp 2 --vp 2 --microbatches 4 --rank all --layers 2 --format {}{}", format,
                      flags),
          fmt::format("--layers: an order of chunks only declares its layers, and {} has no "
                      "notation for that; take --format order or json",
                      format));
    }
  }
  for (const char* format : {"order", "csv", "json"}) {
    expect_usage_error(
        fmt::format("--pp 2 --microbatches 4 --rank 0 --format {}", format),
        fmt::format("--rank: {} holds the whole schedule: take --rank all, and `capo convert "
                    "--rank` for one rank of it",
                    format));
  }
}

TEST(GenerateUsage, LayersAreCountedForEveryChunk) {
  expect_usage_error("--pp 2 --vp 2 --microbatches 4 --rank 0 --overlap --layers 1,2,3",
                     "--layers: there are 3 counts for 2 chunks");
  expect_usage_error("--pp 2 --vp 3 --microbatches 4 --rank all --format order --layers 1,2",
                     "--layers: there are 2 counts for 3 chunks");
  expect_usage_error("--pp 2 --vp 2 --microbatches 4 --rank 0 --overlap --layers 1,-2",
                     "--layers: `-2` is no whole number of at least 0");
  EXPECT_EQ(generated("--pp 2 --vp 2 --microbatches 4 --rank 0 --overlap --layers 2"),
            generated("--pp 2 --vp 2 --microbatches 4 --rank 0 --overlap --layers 2,2"));
}

TEST(GenerateUsage, WhatIsMissingIsNamed) {
  expect_usage_error("--vp 2 --microbatches 4 --rank 0", "--pp is required");
  expect_usage_error("--pp 2 --rank 0", "--microbatches is required");
  expect_usage_error("--pp 2 --microbatches 4", "--rank is required");
  expect_usage_error("--pp 1 --microbatches 0 --rank 0", "--microbatches: a step has at least one");
  const Outcome no_framework = run_capo({"generate"});
  EXPECT_EQ(no_framework.exit_code, 2);
  EXPECT_TRUE(holds(no_framework.err, "megatron")) << no_framework.err;
  for (const char* word : {"jax", "--no-such-option"}) {
    const Outcome unknown = run_capo({"generate", word});
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_TRUE(holds(unknown.err, word)) << unknown.err;
  }
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

// --- limits -------------------------------------------------------------------------------------

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
