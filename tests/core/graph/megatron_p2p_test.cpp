// Megatron's calls that finish, cell by cell: way of calling, communicators, number of ranks
// and of chunks, with the overlap of expert-parallel communication and without.
//
// The table that is reproduced was found with a model of its own, on Megatron-LM d98e8a64dd:
//
//   batch     PP > 2 finishes; PP 2 with model chunks pairs messages wrongly, which is why Megatron
//             asserts PP > 2
//   overlap   finishes, with one communicator a pair and with one a rank
//   flush     finishes with one a pair; with one a rank it is a cycle for PP 4, 6 and 8; with one
//             chunk a rank the last rank asserts a receive that nobody posted

#include "core/frameworks/megatron/orders.h"
#include "core/rules/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace capo {
namespace {

using enum MegatronCalls;
using enum Communicators;
using Numbers = std::vector<std::int64_t>;

// The rules that a schedule breaks under Megatron's calls: "R02", "D04 R02"; "accepted" if none.
std::string outcome(const mcore::Configuration& configuration, MegatronCalls calls,
                    Communicators layout) {
  const auto made =
      megatron::orders_of({.configuration = configuration, .which = megatron::Which::Runtime});
  const Input input{.form = Form::OrderFile, .schedule = megatron::schedule_of(made.value())};
  const CheckResult result = check(
      input, {.environment = {
                  .communicators = layout, .p2p = calls, .ep_overlap = configuration.ep_overlap}});
  std::set<std::string_view> rules;
  for (const Diagnostic& finding : result.diagnostics.kept()) rules.insert(finding.rule);
  std::string text;
  for (const std::string_view rule : rules) text += (text.empty() ? "" : " ") + std::string(rule);
  return text.empty() ? "accepted" : text;
}

std::string name_of(const mcore::Configuration& c) {
  return fmt::format("PP {} VP {} M {} G {}{}", c.pipeline, c.virtual_stages.value_or(0),
                     c.microbatches, c.group_size.value_or(c.pipeline),
                     c.ep_overlap ? " with EP overlap" : "");
}

enum class Experts { Apart, Overlapped, Both };  // how their communication runs

// Configurations with a few numbers of microbatches and sizes of groups for each PP and VP.
std::vector<mcore::Configuration> configurations(const Numbers& pipelines,
                                                 const Numbers& virtual_stages, Experts experts) {
  std::vector<mcore::Configuration> all;
  for (const std::int64_t pp : pipelines) {
    for (const std::int64_t vp : virtual_stages) {
      for (const std::int64_t m : {pp, pp + 1, 2 * pp, 2 * pp + 2, 3 * pp}) {
        for (const std::int64_t g : {pp, pp + 1, pp + 2, 2 * pp}) {
          for (const bool ep : {false, true}) {
            if (ep ? experts == Experts::Apart : experts == Experts::Overlapped) continue;
            all.push_back({.pipeline = pp,
                           .virtual_stages = vp,
                           .microbatches = m,
                           .group_size = g,
                           .ep_overlap = ep});
          }
        }
      }
    }
  }
  std::erase_if(all, [](const mcore::Configuration& c) { return mcore::refusal(c).has_value(); });
  return all;
}

using Outcomes = std::map<std::string, std::size_t>;

Outcomes outcomes(const std::vector<mcore::Configuration>& all, MegatronCalls calls,
                  Communicators layout) {
  Outcomes counts;
  for (const mcore::Configuration& one : all) ++counts[outcome(one, calls, layout)];
  return counts;
}

void print(const std::string& cell, const Outcomes& counts) {
  std::printf("%s:", cell.c_str());
  for (const auto& [what, count] : counts) std::printf(" %s %zu", what.c_str(), count);
  std::printf("\n");
}

struct Cell {
  std::string name;
  MegatronCalls calls;
  std::vector<Communicators> layouts;
  Numbers pipelines;
  Numbers virtual_stages;
  Experts experts;
  std::string outcome;  // of every configuration
};

void PrintTo(const Cell& cell, std::ostream* out) {
  *out << cell.name;
}

class MegatronP2p : public ::testing::TestWithParam<Cell> {};

TEST_P(MegatronP2p, HoldsForEveryConfiguration) {
  const Cell& cell = GetParam();
  const auto all = configurations(cell.pipelines, cell.virtual_stages, cell.experts);
  for (const Communicators layout : cell.layouts) {
    const Outcomes counts = outcomes(all, cell.calls, layout);
    print(cell.name + ", " + std::string(name_of(layout)), counts);
    EXPECT_EQ(counts, (Outcomes{{cell.outcome, all.size()}}));
    EXPECT_GT(all.size(), 0U);
  }
}

const std::vector<Communicators> kBoth{PerPair, PerRank};
const Numbers kWithChunks{2, 3, 4};
const Numbers kAll{1, 2, 3, 4};

INSTANTIATE_TEST_SUITE_P(
    Cells, MegatronP2p,
    ::testing::Values(
        Cell{"batch, PP > 2", Batch, kBoth, {3, 4, 5, 6}, kAll, Experts::Both, "accepted"},
        Cell{"batch, PP 7 and 8", Batch, kBoth, {7, 8}, {2}, Experts::Both, "accepted"},
        Cell{"batch, PP 2, VP 1", Batch, kBoth, {2}, {1}, Experts::Both, "accepted"},
        Cell{"overlap", Overlap, kBoth, {2, 3, 4, 5, 6}, kAll, Experts::Both, "accepted"},
        Cell{"overlap, PP 7 and 8", Overlap, kBoth, {7, 8}, {2}, Experts::Both, "accepted"},
        Cell{"flush, VP > 1",
             Flush,
             {PerPair},
             {2, 3, 4, 5, 6},
             kWithChunks,
             Experts::Both,
             "accepted"},
        Cell{"flush, PP 7 and 8", Flush, {PerPair}, {7, 8}, {2}, Experts::Both, "accepted"},
        Cell{"flush, PP 4 and 6", Flush, {PerRank}, {4, 6}, kWithChunks, Experts::Both, "T09"},
        Cell{"flush, PP 8", Flush, {PerRank}, {8}, {2}, Experts::Both, "T09"},
        Cell{"flush, PP 2, 3 and 5",
             Flush,
             {PerRank},
             {2, 3, 5},
             kWithChunks,
             Experts::Both,
             "accepted"},
        Cell{"flush, PP 7", Flush, {PerRank}, {7}, {2}, Experts::Both, "accepted"},
        Cell{"flush, VP 1", Flush, kBoth, {2, 3, 4, 5, 6}, {1}, Experts::Apart, "R02"},
        Cell{"flush, VP 1, EP overlap",
             Flush,
             kBoth,
             {2, 3, 4, 5, 6},
             {1},
             Experts::Overlapped,
             "accepted"}),
    [](const auto& cell) { return std::to_string(cell.index); });

// Both directions of a step go to the same rank: what is sent on there meets what is received back.
TEST(MegatronP2p, BatchOfTwoRanksWithChunksPairsMostMessagesWrongly) {
  std::vector<mcore::Configuration> all;
  for (const std::int64_t vp : kWithChunks) {
    for (std::int64_t m = 2; m <= 10; ++m) {
      for (std::int64_t g = 2; g <= m; ++g) {
        for (const bool ep : {false, true}) {
          const mcore::Configuration one{.pipeline = 2,
                                         .virtual_stages = vp,
                                         .microbatches = m,
                                         .group_size = g,
                                         .ep_overlap = ep};
          if (!mcore::refusal(one)) all.push_back(one);
        }
      }
    }
  }
  for (const Communicators layout : kBoth) {
    const Outcomes counts = outcomes(all, Batch, layout);
    print("batch, PP 2, VP > 1, " + std::string(name_of(layout)), counts);
    EXPECT_EQ(counts.size(), 2U);
    EXPECT_GT(counts.at("T08"), 9 * counts.at("accepted"));
  }
}

TEST(MegatronP2p, WithoutModelChunksBatchIsAccepted) {
  std::size_t accepted = 0;
  for (std::int64_t pp = 2; pp <= 8; ++pp) {
    for (const std::int64_t m : {std::int64_t{1}, pp - 1, pp, 2 * pp + 1}) {
      for (const Communicators layout : kBoth) {
        const mcore::Configuration plain{.pipeline = pp, .microbatches = m};
        EXPECT_EQ(outcome(plain, Batch, layout), "accepted") << name_of(plain);
        ++accepted;
      }
    }
  }
  std::printf("without model chunks, batch: %zu accepted\n", accepted);
}

// Settings that Megatron refuses because of its groups are not only slow. With several chunks they
// cannot run.
TEST(MegatronP2p, GroupsSmallerThanThePipelineCannotRunWithModelChunks) {
  std::size_t smaller = 0;
  std::size_t last = 0;
  for (std::int64_t pp = 2; pp <= 6; ++pp) {
    for (const std::int64_t vp : kWithChunks) {
      for (const std::int64_t g : {std::int64_t{1}, pp - 1, pp, pp + 1}) {
        for (const std::int64_t m : {g + 1, 2 * g, 2 * g + pp - 1}) {
          const bool small = g < pp && g <= m;
          const bool short_last = g >= pp && g <= m && m % g > 0 && m % g < pp;
          if (!small && !short_last) continue;
          ++(small ? smaller : last);
          const bool ep = (m + vp) % 2 == 0;
          const mcore::Configuration one{.pipeline = pp,
                                         .virtual_stages = vp,
                                         .microbatches = m,
                                         .group_size = g,
                                         .ep_overlap = ep};
          ASSERT_TRUE(mcore::refusal(one));
          for (const MegatronCalls calls : {Batch, Overlap, Flush}) {
            EXPECT_NE(outcome(one, calls, PerPair).find("R02"), std::string::npos)
                << name_of(one) << " " << capo::name_of(calls);
          }
          const mcore::Configuration single{.pipeline = pp,
                                            .virtual_stages = 1,
                                            .microbatches = m,
                                            .group_size = g,
                                            .ep_overlap = ep};
          EXPECT_EQ(outcome(single, Batch, PerPair), "accepted") << name_of(single);
        }
      }
    }
  }
  std::printf(
      "%zu configurations with groups smaller than PP and %zu with a short last group: no input "
      "with several chunks, accepted in batches with one\n",
      smaller, last);
  EXPECT_GT(smaller, 50U);
  EXPECT_GT(last, 20U);
}

// Two layers a chunk, each with its exchanges on a stream of their own beside the transfers.
TEST(MegatronP2p, FinishesAlsoWithLayersTakenApart) {
  std::size_t accepted = 0;
  for (const std::int64_t pp : {3, 5}) {
    for (const std::int64_t vp : kAll) {
      const megatron::Request request{.configuration = {.pipeline = pp,
                                                        .virtual_stages = vp,
                                                        .microbatches = 2 * pp,
                                                        .ep_overlap = true},
                                      .which = megatron::Which::Runtime,
                                      .layers_per_chunk = Numbers(static_cast<std::size_t>(vp), 2)};
      const Input input{.form = Form::OrderFile,
                        .schedule = megatron::schedule_of(megatron::orders_of(request).value())};
      std::vector<CollectiveGroup> experts;
      for (std::int32_t rank = 0; rank < pp; ++rank) {
        experts.push_back({.name = std::to_string(rank),
                           .members = {rank},
                           .actions = {Kind::DispatchForward, Kind::CombineForward,
                                       Kind::DispatchBackward, Kind::CombineBackward},
                           .streams = {}});
      }
      for (const MegatronCalls calls : {Batch, Overlap, Flush}) {
        for (const Communicators layout : kBoth) {
          const CheckResult result = check(
              input, {.environment = {.communicators = layout, .p2p = calls, .ep_overlap = true},
                      .groups = experts});
          EXPECT_EQ(result.verdict, Verdict::Accepted) << name_of(request.configuration);
          EXPECT_EQ(result.finishes, true);
          ++accepted;
        }
      }
    }
  }
  std::printf("with layers taken apart: %zu accepted\n", accepted);
}

}  // namespace
}  // namespace capo
