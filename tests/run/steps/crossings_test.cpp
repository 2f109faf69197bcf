// Rows that ranks of a group send each other: every block travels to its member and back, what
// comes out is what went in, and a block that does not travel shows.

#include "tests/run/exchanging.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

// A rank whose first chunk hands on to its second: rows that go out behind a layer are read there,
// and gradients go out in front of one.
constexpr const char* kTwoChunks =
    "capo 1\nranks 1\nmicrobatches 2\nplacement loop\n"
    "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 F2.0 F2.1 "
    "B2.0 B2.1 combine-B1.0 dispatch-B1.0 B1.0 combine-B1.1 dispatch-B1.1 B1.1\n";
constexpr const char* kOneMicrobatch =
    "capo 1\nranks 1\nmicrobatches 1\nplacement loop\n"
    "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F2.0 B2.0 combine-B1.0 dispatch-B1.0 B1.0\n";

TEST(Crossings, BringBackWhatTheySent) {
  for (const ModuleKind kind : {ModuleKind::Linear, ModuleKind::GroupedMlp, ModuleKind::MoeLayer}) {
    for (const std::int32_t ranks : {2, 3}) {
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(fmt::format("{} of {} ranks", capo::name_of(kind), ranks));
        std::set<Message> crossed;
        const Replicas copies = copies_of(kTwoChunks, exchanged_over(of_rows(kind, 7), {0}), ranks);
        const RunReport report =
            run_verified(copies.input, copies.options,
                         {.graphs = graphs, .replays = 3, .transport = losing(crossed)});
        EXPECT_TRUE(report.bit_equal);
        EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
        // Two microbatches, forwards and backwards, out and back, to each other rank.
        EXPECT_EQ(report.program.crossings.size(), 8U);
        EXPECT_EQ(crossed.size(), static_cast<std::size_t>(8 * ranks * (ranks - 1)));
      }
    }
  }
}

// Megatron-LM's overlap takes layers apart, which go out in front of them.
TEST(Crossings, OfLayersApartBringBackWhatTheySent) {
  for (const std::int32_t ranks : {2, 3}) {
    for (const Granularity graphs : kGranularities) {
      std::vector<std::int32_t> members{0, 1};
      if (ranks == 3) members.push_back(2);
      CheckOptions options = exchanged_over(small(ModuleKind::LayerNormMlp), members);
      options.environment.ep_overlap = true;
      options.environment.p2p = MegatronCalls::Batch;
      std::set<Message> crossed;
      const RunReport report =
          run_verified(typed(of_alike_ranks(ranks, "F1.0 F1.1 B1.0 B1.1")), options,
                       {.graphs = graphs, .transport = losing(crossed)});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
      EXPECT_EQ(report.program.crossings.size(), 8U);
      EXPECT_EQ(crossed.size(), static_cast<std::size_t>(8 * ranks * (ranks - 1)));
    }
  }
}

// A place holds what the other ranks sent there.
TEST(Crossings, PutRowsWhereTheyGo) {
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> arrived;
  std::vector<std::vector<std::byte>> back;
  std::int64_t row_bytes = 0;
  RunOptions options{.replays = 1};
  options.inspect = [&](const Inspection& at) {
    for (auto* const all : {&sent, &arrived, &back}) all->clear();
    for (const std::uint32_t exchange : {0U, 1U}) {
      const StepInputs::Route& route = at.inputs.route(exchange);
      row_bytes = route.row_bytes;
      const auto read = [&](const std::byte* from) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(7 * row_bytes));
        at.engine.read(bytes.data(), from, 7 * row_bytes);
        return bytes;
      };
      EXPECT_EQ(route.row_count, 7);
      EXPECT_NE(route.rows, route.arrived);
      sent.push_back(read(route.rows));
      arrived.push_back(read(route.arrived));
      back.push_back(read(route.back));
    }
  };
  const RunReport report = run_verified(
      typed(of_alike_ranks(2, "F1.0 dispatch-F1.0 combine-F1.0 combine-B1.0 dispatch-B1.0 B1.0")),
      exchanged_over(of_rows(ModuleKind::Linear, 7), {0, 1}), options);
  ASSERT_EQ(report.program.exchanges.size(), 4U);
  EXPECT_EQ(report.program.exchanges[0].among, (std::vector<std::uint32_t>{0, 1}));
  ASSERT_EQ(arrived.size(), 2U);
  EXPECT_NE(sent[0], sent[1]);
  EXPECT_EQ(back, sent);
  const auto rows = [&](std::size_t of, std::int64_t first, std::int64_t end) {
    return std::vector<std::byte>(sent[of].begin() + first * row_bytes,
                                  sent[of].begin() + end * row_bytes);
  };
  const auto both = [](std::vector<std::byte> a, const std::vector<std::byte>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  EXPECT_EQ(arrived[0], both(rows(0, 0, 3), rows(1, 3, 7)));
  EXPECT_EQ(arrived[1], both(rows(1, 0, 3), rows(0, 3, 7)));
}

TEST(Crossings, ShowEveryBlockThatDoesNotTravel) {
  EXPECT_EQ(blocks_that_show(
                copies_of(kOneMicrobatch, exchanged_over(small(ModuleKind::Linear), {0}), 3)),
            24U);
}

// More ranks than rows: some blocks are empty.
TEST(Crossings, OfFewRowsSendNoEmptyBlock) {
  std::set<Message> crossed;
  const Replicas copies =
      copies_of(kOneMicrobatch, exchanged_over(of_rows(ModuleKind::Linear, 2), {0}), 3);
  const RunReport report =
      run_verified(copies.input, copies.options, {.replays = 2, .transport = losing(crossed)});
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(std::none_of(crossed.begin(), crossed.end(),
                           [](const Message& message) { return message.bytes == 0; }));
  // Each rank has two blocks with a row. The first rank keeps its empty one, the others keep a row.
  EXPECT_EQ(crossed.size(), 16U);
}

// A rank of experts is a data-parallel one: those of all copies of a pipeline exchange together.
TEST(Crossings, AreThoseOfAllCopies) {
  constexpr const char* kPipeline =
      "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 B1.0 B1.1 reduce1\n"
      "rank 1: F1.0 combine-B1.0 dispatch-B1.0 B1.0 F1.1 combine-B1.1 dispatch-B1.1 B1.1 reduce1\n";
  for (const Granularity graphs : kGranularities) {
    CheckOptions options = exchanged_over(small(ModuleKind::LayerNormMlp), {0});
    options.groups.push_back(experts_of({1}));
    const Replicas copies = copies_of(kPipeline, options, 2);
    const RunReport report =
        run_verified(copies.input, copies.options, {.graphs = graphs, .replays = 3});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
    ASSERT_EQ(report.program.crossings.size(), 8U);
    std::set<std::vector<std::int32_t>> over;
    for (const Crossing& crossing : report.program.crossings) over.insert(crossing.ranks);
    EXPECT_EQ(over, (std::set<std::vector<std::int32_t>>{{0, 2}, {1, 3}}));
  }
}

// The members of a composite meet those of other ranks each at a point of its own, whether these
// list them together or one by one.
TEST(Crossings, OfCompositesAreThoseOfEachMember) {
  constexpr const char* kTogether =
      "F1.0 F1.1 (dispatch-F1.0 dispatch-F1.1) (combine-F1.0 combine-F1.1) "
      "(combine-B1.0 combine-B1.1) (dispatch-B1.0 dispatch-B1.1) B1.0 B1.1";
  constexpr const char* kOneByOne =
      "F1.0 dispatch-F1.0 F1.1 dispatch-F1.1 combine-F1.0 combine-F1.1 "
      "combine-B1.0 combine-B1.1 dispatch-B1.0 dispatch-B1.1 B1.0 B1.1";
  for (const char* other : {kTogether, kOneByOne}) {
    for (const Granularity graphs : kGranularities) {
      const RunReport report = run_verified(
          typed(fmt::format("capo 1\nranks 2\nmicrobatches 2\nrank 0: {}\nrank 1: {}\n", kTogether,
                            other)),
          exchanged_over(small(ModuleKind::LayerNormMlp), {0, 1}),
          {.graphs = graphs, .replays = 2});
      EXPECT_TRUE(report.bit_equal);
      EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
      EXPECT_EQ(report.program.crossings.size(), 8U);
      ASSERT_EQ(report.program.exchanges.size(), 8U);
      for (const Exchange& exchange : report.program.exchanges) {
        ASSERT_EQ(exchange.among.size(), 2U);
        // Cells are numbered by rank, then by microbatch.
        const std::uint32_t first = report.program.exchanges[exchange.among[0]].cell;
        EXPECT_EQ(first + 2, report.program.exchanges[exchange.among[1]].cell);
      }
    }
  }
}

std::string why_not_run(const std::string& order, const CheckOptions& options) {
  const auto report = attempt(verified(typed(order), options), {.float64 = Float64::LeftOut});
  if (report) return "it ran";
  EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
  return report.error().message;
}

TEST(Crossings, NeedRowsThatAreAlike) {
  const auto why = [](const Module& one, const Module& other, std::string_view actions) {
    CheckOptions options;
    options.modules = {.list = {one, other}, .layers = {{{0}}, {{1}}}};
    options.groups = {experts_of({0, 1})};
    return why_not_run(of_alike_ranks(2, actions), options);
  };
  constexpr std::string_view kForward = "F1.0 dispatch-F1.0 combine-F1.0 B1.0";
  constexpr std::string_view kBackward = "F1.0 combine-B1.0 dispatch-B1.0 B1.0";
  const Module module = small(ModuleKind::Linear);
  Module wider = module;
  wider.shape.ffn = 32;
  Module typed_otherwise = module;
  typed_otherwise.dtype = DataType::Fp32;
  const auto sentence = [](const char* way) {
    return fmt::format(
        "rank 0 exchanges rows of the {} of chunk 1 with rank 1, whose rows are others: those that "
        "ranks exchange need to be as many, of one width and of one type on all of them",
        way);
  };
  for (const Module& other : {wider, typed_otherwise, of_rows(ModuleKind::Linear, 6)}) {
    EXPECT_EQ(why(module, other, kForward), sentence("forward"));
    EXPECT_EQ(why(other, module, kBackward), sentence("backward"));
  }
  EXPECT_EQ(why(module, module, kForward), "it ran");
}

TEST(Crossings, AreRefusedWhereRowsStayAway) {
  EXPECT_EQ(why_not_run(of_alike_ranks(2, "F1.0 combine-B1.0 B1.0"),
                        exchanged_over(small(ModuleKind::Linear), {0, 1})),
            "rank 0 sends rows of the backward of chunk 1, microbatch 0, to other ranks and never "
            "brings them back: whoever reads them would read rows of other ranks in their place");
}

TEST(Crossings, AreRefusedWhereRowsComeBackFromOtherRanks) {
  CheckOptions options = every_layer(small(ModuleKind::Linear));
  options.groups = {experts_of({0, 1}), experts_of({0}), experts_of({1})};
  options.groups[0].actions = {Kind::DispatchForward};
  options.groups[1].actions = options.groups[2].actions = {Kind::CombineForward};
  const auto report = attempt(
      verified(typed(of_alike_ranks(2, "F1.0 dispatch-F1.0 combine-F1.0 B1.0")), options), {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
  EXPECT_EQ(report.error().message,
            "rank 0 performs dispatch-F over ranks 0, 1 and combine-F over ranks 0: the rows that "
            "a run sends come back from where they went, so one group has both");
}

}  // namespace
}  // namespace capo::run
