// Plans that others made: what is read of them, which of them fit an order, and how they are
// judged. tests/schema/certificate_test.py reads back what --plan-out writes, and
// tests/corpus/cli/check/plan-in.txt has the words.

#include "core/rules/given_plan.h"

#include "core/input/load.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "tests/support/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace capo {
namespace {

using Rules = std::multiset<std::string>;

std::shared_ptr<const GivenPlan> plan_in(const std::string& text) {
  auto plan = read_given_plan(text, {});
  if (!plan) ADD_FAILURE() << plan.error().finding.message;
  return std::make_shared<const GivenPlan>(plan ? *std::move(plan) : GivenPlan{});
}

std::string refusal_of(const std::string& text) {
  const auto plan = read_given_plan(text, {});
  return plan ? "" : plan.error().finding.message;
}

// An order with a plan for it.
struct Subject {
  Subject(const std::string& order, const std::string& plan, ModuleTable modules = {})
      : input(*load({.name = "order", .text = order}, {})),
        options{.environment = {.weight_stream = false, .assume_defaults = true},
                .modules = std::move(modules),
                .plan = {.kind = PlanKind::Given},
                .given = plan_in(plan)} {}

  [[nodiscard]] Rules errors() const {
    Rules rules;
    const CheckResult result = check(input, options);
    for (const Diagnostic& finding : result.diagnostics.kept()) {
      if (finding.severity == Severity::Error) rules.emplace(finding.rule);
    }
    return rules;
  }
  [[nodiscard]] std::string misfit() const {
    const auto refusal = misfit_of_given_plan(Context(input, options));
    return refusal ? refusal->finding.message : "";
  }

  Input input;
  CheckOptions options;
};

constexpr const char* kTwoStages =
    "capo 1\nplacement chain\nrank 0: F1 F1 B1 B1\nrank 1: F1 B1 F1 B1\n";

std::string slots(const std::string& ranks) {
  return R"({"slots": {)" + ranks + "}}";
}

// --- slots ---------------------------------------------------------------------------------------

TEST(GivenSlots, AreSoundIfActivationsOfOneAreNeverAliveTogether) {
  EXPECT_EQ(Subject(kTwoStages, slots(R"("0": {"0": [0, 1]}, "1": {"1": [0, 0]})")).errors(),
            Rules());
  EXPECT_EQ(Subject(kTwoStages, slots(R"("0": {"0": [7, 3]}, "1": {"1": [5, 5]})")).errors(),
            Rules());
  EXPECT_EQ(Subject(kTwoStages, slots(R"("0": {"0": [0, 0]}, "1": {"1": [0, 0]})")).errors(),
            Rules{"B01"});
}

// check() tells what is wrong with the order, and the plan is not held against it.
TEST(GivenSlots, HaveNoMisfitWhereTheOrderIsWrongOrTooLong) {
  const std::string one = R"("0": {"0": [0, 1]})";
  EXPECT_EQ(Subject("capo 1\nplacement chain\nrank 0: B1 F1\nrank 1: F1 B1\n", slots(one)).misfit(),
            "");
  Subject many(kTwoStages, slots(one));
  EXPECT_NE(many.misfit(), "");
  many.options.plan.max_buffers = 1;
  EXPECT_EQ(many.misfit(), "");
}

TEST(GivenPlans, AreJson) {
  EXPECT_NE(refusal_of("{"), "");
  EXPECT_NE(refusal_of(""), "");
}

// torch: "Input-backward alone does not end the lifetime".
TEST(GivenSlots, LastToTheWeightGradient) {
  const std::string order = "capo 1\nplacement chain\nrank 0: F1.0 B1.0 F1.1 W1.0 B1.1 W1.1\n";
  EXPECT_EQ(Subject(order, slots(R"("0": {"0": [0, 1]})")).errors(), Rules());
  EXPECT_EQ(Subject(order, slots(R"("0": {"0": [0, 0]})")).errors(), Rules{"B01"});
  const std::string early = "capo 1\nplacement chain\nrank 0: F1.0 B1.0 W1.0 F1.1 B1.1 W1.1\n";
  EXPECT_EQ(Subject(early, slots(R"("0": {"0": [0, 0]})")).errors(), Rules());
}

Module linear(const char* name, std::int64_t hidden) {
  return {.name = name,
          .kind = ModuleKind::Linear,
          .dtype = DataType::Bf16,
          .shape = {.tokens = 32, .hidden = hidden, .ffn = 64}};
}

TEST(GivenSlots, HoldActivationsOfTwoSizes) {
  const std::string order = "capo 1\nchunks 2\nplacement loop\nrank 0: F1 F2 B2 B1\n";
  for (const bool input : {true, false}) {
    const auto errors = [&](const std::string& ranks) {
      Subject subject(order, slots(ranks),
                      {.list = {linear("a", 64), linear("b", 96)}, .layers = {{{0}, {1}}}});
      subject.options.plan.aliases = Aliases{.input = input, .grad_output = input};
      return subject.errors();
    };
    EXPECT_EQ(errors(R"("0": {"0": [0], "1": [1]})"), Rules());
    EXPECT_FALSE(errors(R"("0": {"0": [0], "1": [0]})").empty()) << input;
  }
}

TEST(GivenSlots, AreThoseOfTheOrdersStages) {
  const auto misfit = [](const std::string& ranks) {
    return Subject(kTwoStages, slots(ranks)).misfit();
  };
  EXPECT_EQ(misfit(R"("0": {"0": [0, 1]}, "1": {"1": [0, 0]})"), "");
  EXPECT_EQ(misfit(R"("0": {"0": [0, 1]})"), "stage 1 of rank 1 has no slots here");
  EXPECT_EQ(misfit(R"("1": {"1": [0, 1]})"), "stage 0 of rank 0 has no slots here");
  EXPECT_EQ(misfit(R"("0": {"1": [0, 1]})"), "rank 0 has no stage 1");
  EXPECT_EQ(misfit(R"("2": {"0": [0, 1]})"), "rank 2 has no stage 0");
  EXPECT_EQ(misfit(R"("0": {"2": [0, 1]})"), "rank 0 has no stage 2");
  EXPECT_EQ(misfit(R"("0": {"0": [0]})"),
            "stage 0 has 1 slot here, and 2 microbatches in the orders");
}

// The tables that torch 2.15's passes lower by default, and its slots of each.
template <typename Visit>
void for_each_table_of_torch(Visit visit) {
  const nlohmann::json tables = testing_support::read_data("torch215_lowered.json").at("rows");
  const nlohmann::json slots_of = testing_support::read_data("torch215_slots.json").at("rows");
  ASSERT_EQ(slots_of.size(), 88U);
  ASSERT_EQ(tables.size(), slots_of.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const auto& table = tables.at(i);
    ASSERT_EQ(table.at("id"), slots_of.at(i).at("id"));
    SCOPED_TRACE(table.at("id").get<std::string>());
    const auto rows = table.at("compute").get<std::vector<std::string>>();
    visit(fmt::format("{}\n", fmt::join(rows, "\n")), slots_of.at(i).at("slots"));
  }
}

TEST(GivenSlots, AsTorch215MakesThemAreSound) {
  for_each_table_of_torch([](const std::string& order, const nlohmann::json& slots_of) {
    const Subject subject(order, nlohmann::json{{"slots", slots_of}}.dump());
    EXPECT_EQ(subject.misfit(), "");
    EXPECT_EQ(check(subject.input, subject.options).verdict, Verdict::Accepted);
  });
}

// torch takes as few slots as there are, so that rank 0 has too few with one fewer.
TEST(GivenSlots, AsTorch215MakesThemAreNoneTooMany) {
  std::size_t fewer = 0;
  for_each_table_of_torch([&](const std::string& order, const nlohmann::json& slots_of) {
    nlohmann::json merged = slots_of;
    int last = 0;
    for (const auto& stage : merged.at("0"))
      for (const int slot : stage) last = std::max(last, slot);
    if (last == 0) return;
    for (auto& stage : merged.at("0"))
      for (auto& slot : stage) slot = slot.get<int>() % last;
    EXPECT_TRUE(Subject(order, nlohmann::json{{"slots", merged}}.dump()).errors().contains("B01"));
    ++fewer;
  });
  std::printf("%zu of torch's tables have a slot too few on rank 0\n", fewer);
  EXPECT_GT(fewer, 80U);
}

// --- slots of graphs
// ------------------------------------------------------------------------------

// The seven numbers of each graph of a rank: {saved arena, physical slot, arena of user gradients}.
std::string graphs(const std::string& rank, const std::vector<std::array<int, 3>>& all) {
  std::vector<std::string> rows;
  int branch = 0;
  for (const auto& [saved, physical, grad] : all) {
    rows.push_back(fmt::format("[{}, {}, {}, 0, 0, 0, {}]", saved, physical, branch, grad));
    ++branch;
  }
  return fmt::format("\"{}\": [{}]", rank, fmt::join(rows, ", "));
}

std::string graph_slots(const std::string& ranks) {
  return R"({"graph_memory_slots": {)" + ranks + "}}";
}

Rules errors_of_graphs(const std::string& order, const std::vector<std::array<int, 3>>& all) {
  return Subject(order, graph_slots(graphs("0", all))).errors();
}

TEST(GivenGraphSlots, ShareWhatAForwardKeepsByTheirSavedArena) {
  EXPECT_EQ(errors_of_graphs("[1, 1, -1, -1]", {{0, 0, 0}, {1, 1, 1}}), Rules());
  EXPECT_EQ(errors_of_graphs("[1, 1, -1, -1]", {{0, 0, 0}, {0, 1, 1}}), Rules{"B01"});
  EXPECT_EQ(errors_of_graphs("[1, -1, 1, -1]", {{0, 0, 0}, {0, 1, 1}}), Rules());
}

TEST(GivenGraphSlots, ShareOutputsByTheirPhysicalSlotChunkAndLayer) {
  const std::string order =
      "capo 1\nchunks 2\nplacement loop\nrank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B1.0 B2.1 B1.1\n";
  const auto errors = [&](int second, int chunk) {
    std::vector<std::string> rows;
    for (int graph = 0; graph < 4; ++graph)
      rows.push_back(fmt::format("[{0}, {1}, {0}, {2}, 0, 0, {0}]", graph,
                                 graph == 1 ? second : graph, graph == 1 ? chunk : 0));
    return Subject(order, graph_slots(fmt::format("\"0\": [{}]", fmt::join(rows, ", ")))).errors();
  };
  EXPECT_EQ(errors(1, 0), Rules());
  EXPECT_TRUE(errors(0, 0).contains("B03")) << "F2.0 reads what F1.1 has overwritten";
  EXPECT_EQ(errors(0, 1), Rules()) << "another chunk is another family";
}

TEST(GivenGraphSlots, ShareGradInputsByTheirArena) {
  const std::string order =
      "capo 1\nchunks 2\nplacement loop\nrank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\n";
  EXPECT_EQ(errors_of_graphs(order, {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}}), Rules());
  EXPECT_EQ(errors_of_graphs(order, {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 2}}), Rules{"B03"});
}

TEST(GivenGraphSlots, NameMutuallyExclusiveBranches) {
  const std::string two =
      "[1, -1, 2, -2]";  // each branch's graphs run when those of the other do not
  EXPECT_EQ(errors_of_graphs(two, {{0, 0, 0}, {0, 0, 0}}), Rules());
  EXPECT_NE(errors_of_graphs("[1, 2, -2, -1]", {{0, 0, 0}, {0, 0, 0}}), Rules());
}

TEST(GivenGraphSlots, CountLayers) {
  const std::string order = "capo 1\nlayers 2\nplacement chain\nrank 0: F1.0 F1.1 B1.0 B1.1\n";
  const std::vector<std::array<int, 3>> apart{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}};
  EXPECT_EQ(errors_of_graphs(order, apart), Rules());
  auto shared = apart;
  shared[2] = shared[0];  // the first layer of both microbatches
  EXPECT_EQ(errors_of_graphs(order, shared).count("B01"), 1U);
}

TEST(GivenGraphSlots, AreThoseOfTheOrdersGraphs) {
  const auto misfit = [](const std::string& ranks) {
    return Subject(kTwoStages, graph_slots(ranks)).misfit();
  };
  const std::vector<std::array<int, 3>> two{{0, 0, 0}, {1, 1, 1}};
  EXPECT_EQ(misfit(graphs("0", two) + ", " + graphs("1", two)), "");
  EXPECT_EQ(misfit(graphs("0", two)), "rank 1 has no slots here");
  EXPECT_EQ(misfit(graphs("1", two)), "rank 0 has no slots here");
  EXPECT_EQ(misfit(graphs("2", two)), "there is no rank 2");
  EXPECT_EQ(misfit(graphs("0", {{0, 0, 0}})), "rank 0 has 1 slot here, and 2 graphs in the orders");
}

// --- buffers -------------------------------------------------------------------------------------

std::string buffer(const std::string& kind, std::int64_t offset, std::int64_t bytes = 1,
                   const std::string& region = "pool") {
  return fmt::format(R"({{"rank": 0, "chunk": 1, "layer": 0, "microbatch": 0, "kind": "{}", )"
                     R"("region": "{}", "offset": {}, "bytes": {}}})",
                     kind, region, offset, bytes);
}

std::string buffers(const std::vector<std::string>& all) {
  return fmt::format(R"({{"buffers": [{}]}})", fmt::join(all, ", "));
}

// The four that [1, -1] uses.
std::string placed(std::int64_t input, std::int64_t output, std::int64_t grad_output,
                   std::int64_t grad_input, const std::string& region = "pool") {
  return buffers({buffer("static input", input), buffer("output", output),
                  buffer("grad output", grad_output, 1, region), buffer("grad input", grad_input)});
}

TEST(GivenBuffers, MayShareWhatIsNotAliveTogether) {
  EXPECT_EQ(Subject("[1, -1]", placed(0, 1, 2, 3)).errors(), Rules());
  EXPECT_EQ(Subject("[1, -1]", placed(3, 0, 9, 1)).errors(), Rules());
  EXPECT_EQ(Subject("[1, -1]", placed(0, 1, 0, 3)).errors(), Rules{"B01"});
  EXPECT_EQ(Subject("[1, -1]", placed(0, 1, 2, 2)).errors(), Rules{"B02"});
  EXPECT_EQ(Subject("[1, -1]", placed(0, 1, 0, 3, "scratch")).errors(), Rules())
      << "regions share nothing";
}

TEST(GivenBuffers, FitTheOrders) {
  const auto misfit = [](const std::string& plan) { return Subject("[1, -1]", plan).misfit(); };
  const std::string of = " of rank 0, chunk 1, layer 0, microbatch 0";
  EXPECT_EQ(misfit(placed(0, 1, 2, 3)), "");
  EXPECT_EQ(misfit(buffers({buffer("output", 0), buffer("output", 1)})),
            "a second place for the output" + of);
  EXPECT_EQ(misfit(buffers({buffer("output", 0, 2)})),
            "2 units for the output" + of + " here, and 1 unit by the model");
  EXPECT_EQ(misfit(buffers({buffer("output", 0, 0)})),
            "0 units for the output" + of + " here, and 1 unit by the model");
  EXPECT_EQ(misfit(buffers({buffer("scratch", 0)})), "the orders never use the scratch" + of);
  EXPECT_EQ(misfit(buffers({})),
            "no place for the static input" + of + " here, and the orders use it");
}

TEST(GivenBuffers, AreBuffersThatThereAre) {
  const std::string good = buffer("output", 0);
  const auto misfit = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return Subject("[1, -1]", buffers({text})).misfit();
  };
  for (const char* member : {"rank", "layer", "microbatch"}) {
    const std::string key = fmt::format("\"{}\": ", member);
    EXPECT_TRUE(misfit(key + "0", key + "1").starts_with("there is no output of rank ")) << member;
  }
  EXPECT_TRUE(misfit("\"chunk\": 1", "\"chunk\": 2").starts_with("there is no output of rank 0"));
}

// A plan that does not fit an edited order is no ground for a verdict on it.
TEST(GivenBuffers, ThatDoNotFitLeaveNoVerdict) {
  const Subject subject("[1, -1]", buffers({}));
  const CheckResult result = check(subject.input, subject.options);
  EXPECT_EQ(result.verdict, Verdict::NoVerdict);
  ASSERT_EQ(result.diagnostics.kept().size(), 1U);
  EXPECT_TRUE(result.diagnostics.kept()[0].message.starts_with(
      "the given plan does not fit the orders: no place for the static input"));
  EXPECT_FALSE(result.plan);
}

TEST(GivenBuffers, FitTheOrdersInBytesWhereSizesAreKnown) {
  const Subject subject(
      "[1, -1]", buffers({buffer("output", 0, 1)}),
      {.list = {{.bytes = {.input = 8, .output = 8, .activations = 8, .operands = 8}}},
       .layers = {{{0}}}});
  EXPECT_EQ(subject.misfit(),
            "1 byte for the output of rank 0, chunk 1, layer 0, microbatch 0 here, and 8 bytes by "
            "the model");
}

// The static input and the grad input are as large as what the module reads.
TEST(GivenBuffers, WithoutBytesTakeNoMemory) {
  const ModuleTable modules{
      .list = {{.bytes = {.input = 0, .output = 8, .activations = 34, .operands = 0}}},
      .layers = {{{0}}}};
  const std::vector<std::string> others{buffer("output", 0, 8), buffer("grad output", 8, 8),
                                        buffer("activations", 16, 34)};
  const auto taken = [&](const std::vector<std::string>& empty) {
    std::vector<std::string> all = others;
    all.insert(all.end(), empty.begin(), empty.end());
    const Subject subject("[1, -1]", buffers(all), modules);
    EXPECT_EQ(subject.errors(), Rules());
    const auto plan = check(subject.input, subject.options).plan;
    return plan ? plan->ranks.at(0).pool : -1;
  };
  EXPECT_EQ(taken({buffer("static input", 4096, 0), buffer("grad input", 4, 0)}), 50);
  EXPECT_EQ(taken({}), 50) << "they need no place";
}

// check() says why no plan has addresses, and the given one is not held against the orders.
TEST(GivenBuffers, HaveNoMisfitWhereSizesAreBeyondAddresses) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 56;
  const Subject subject(
      "[1, -1]", buffers({}),
      {.list = {{.bytes = {.input = kHuge, .output = 8, .activations = 8, .operands = 8}}},
       .layers = {{{0}}}});
  EXPECT_EQ(subject.misfit(), "");
  const CheckResult result = check(subject.input, subject.options);
  EXPECT_EQ(result.verdict, Verdict::NoVerdict);
  ASSERT_EQ(result.diagnostics.kept().size(), 1U);
  EXPECT_EQ(result.diagnostics.kept()[0].message,
            "the buffers and weights of rank 0 take more than 64 PiB, beyond which plans have no "
            "addresses");
}

// --- reading -------------------------------------------------------------------------------------

TEST(GivenPlans, AreReadOrRefused) {
  EXPECT_EQ(refusal_of("[]"), "the plan is an array, not an object");
  EXPECT_EQ(refusal_of("{}"), "a plan has one of `buffers`, `slots` and `graph_memory_slots`");
  EXPECT_EQ(refusal_of(R"({"buffers": [], "slots": {}})"),
            "a plan has one of `buffers`, `slots` and `graph_memory_slots`");
  EXPECT_NE(refusal_of(R"({"schema": 2, "buffers": []})"), "");
  EXPECT_NE(refusal_of(R"({"buffers": [], "slot": {}})"), "");
  EXPECT_NE(refusal_of(R"({"buffers": {}})"), "");
  EXPECT_EQ(refusal_of(R"({"buffers": [], "graph_memory_slots": {}})"), refusal_of("{}"));
  EXPECT_NE(refusal_of(R"({"slots": []})"), "");
  EXPECT_NE(refusal_of(R"({"slots": {"0": []}})"), "");
  EXPECT_NE(refusal_of(R"({"slots": {"0": {"0": 0}}})"), "");
  EXPECT_NE(refusal_of(R"({"slots": {"0": {"0": [-1]}}})"), "");
  for (const char* key : {"", "x", "-1", "01", "0x1", "1 ", "2147483648"}) {
    EXPECT_EQ(refusal_of(slots(fmt::format(R"("{}": {{}})", key))),
              "the number of a rank should stand here")
        << key;
    EXPECT_EQ(refusal_of(slots(fmt::format(R"("0": {{"{}": []}})", key))),
              "the number of a stage should stand here")
        << key;
  }
  EXPECT_EQ(refusal_of(slots(R"("2147483647": {})")), "");
}

TEST(GivenPlans, HaveGraphsWithSevenNumbers) {
  const auto refusal = [](const std::string& rank) {
    return refusal_of(graph_slots("\"0\": " + rank));
  };
  EXPECT_EQ(refusal("[[0, 1, 2, 3, 4, 5, 6]]"), "");
  EXPECT_EQ(refusal("[[0, 1, 2, 3, 4, 5]]"), "a slot has seven numbers, and here are 6");
  EXPECT_EQ(refusal("[[0, 1, 2, 3, 4, 5, 6, 7]]"), "a slot has seven numbers, and here are 8");
  EXPECT_NE(refusal("[[0, 1, 2, 3, 4, 5, -1]]"), "");
  EXPECT_NE(refusal("[0]"), "");
  EXPECT_NE(refusal("{}"), "");
  EXPECT_NE(refusal_of(R"({"graph_memory_slots": []})"), "");
  EXPECT_EQ(refusal_of(graph_slots(R"("x": [])")), "the number of a rank should stand here");
}

TEST(GivenPlans, HaveBuffersWithWholeNumbers) {
  const std::string good = buffer("output", 0);
  for (const std::string member : {"rank", "chunk", "layer", "microbatch"}) {
    const std::string key = "\"" + member + "\": ";
    const std::size_t at = good.find(key) + key.size();
    const auto refusal = [&](const std::string& number) {
      return refusal_of(buffers({std::string(good).replace(at, 1, number)}));
    };
    EXPECT_EQ(refusal("2147483647"), "");
    EXPECT_EQ(refusal("1"), "");
    EXPECT_EQ(refusal("0").empty(), member != "chunk") << "chunks are counted from 1";
    for (const char* number : {"-1", "2147483648", "0.5", "\"0\""}) {
      EXPECT_NE(refusal(number).find("`" + member + "`"), std::string::npos)
          << member << ": " << number;
    }
  }
}

TEST(GivenPlans, HaveBuffersWithAllMembers) {
  const std::string good = buffer("output", 0);
  EXPECT_EQ(refusal_of(buffers({good})), "");
  for (const std::string key :
       {"rank", "chunk", "layer", "microbatch", "kind", "region", "offset", "bytes"}) {
    std::string text = good;
    text.replace(text.find('"' + key + '"') + 1, key.size(), key == "rank" ? "uses" : "paths");
    EXPECT_EQ(refusal_of(buffers({text})), "a buffer has no `" + key + "`");
  }
  EXPECT_NE(refusal_of(buffers({buffer("outputs", 0)})), "");
  EXPECT_NE(refusal_of(buffers({buffer("output", 0, 1, "heap")})), "");
  EXPECT_NE(refusal_of(buffers({buffer("output", -1)})), "");
  EXPECT_EQ(refusal_of(buffers({buffer("output", (std::int64_t{1} << 53) - 1)})), "");
  EXPECT_NE(refusal_of(buffers({buffer("output", std::int64_t{1} << 53)})), "");
  EXPECT_NE(refusal_of(R"({"buffers": [1]})"), "");
}

// --- buffers that are one tensor -----------------------------------------------------------------

// Two layers of one microbatch; what lies between them is one tensor each way, as `also` says.
std::string two_layers(const std::string& output_also, const std::string& gradient_also) {
  const auto buffer = [](int layer, const char* kind, int offset, const std::string& also = "") {
    return fmt::format(R"({{"rank": 0, "chunk": 1, "layer": {}, "microbatch": 0, "kind": "{}", )"
                       R"("region": "pool", "offset": {}, "bytes": 1{}}})",
                       layer, kind, offset, also.empty() ? "" : R"(, "also": [)" + also + "]");
  };
  return fmt::format(
      R"({{"buffers": [{}]}})",
      fmt::join(std::vector{buffer(0, "static input", 0), buffer(0, "output", 1, output_also),
                            buffer(1, "output", 2), buffer(1, "grad output", 3),
                            buffer(1, "grad input", 4, gradient_also), buffer(0, "grad input", 5)},
                ", "));
}

std::string named(int layer, const char* kind) {
  return fmt::format(R"({{"rank": 0, "chunk": 1, "layer": {}, "microbatch": 0, "kind": "{}"}})",
                     layer, kind);
}

constexpr const char* kTwoLayers = "capo 1\nlayers 2\nrank 0: F1 B1\n";

TEST(GivenTensors, AreReadWhereTheirNeighbourMadeThem) {
  const Subject subject(kTwoLayers, two_layers(named(1, "static input"), named(0, "grad output")));
  EXPECT_EQ(subject.misfit(), "");
  EXPECT_EQ(subject.errors(), Rules());
}

TEST(GivenTensors, AreOfANeighbourAndNobodyElse) {
  const std::string back = named(0, "grad output");
  EXPECT_NE(Subject(kTwoLayers, two_layers(named(1, "grad output"), back)).misfit(), "");
  EXPECT_NE(Subject(kTwoLayers, two_layers(named(0, "static input"), back)).misfit(), "");
  EXPECT_EQ(Subject(kTwoLayers, two_layers("", back)).misfit(),
            "no place for the static input of rank 0, chunk 1, layer 1, microbatch 0 here, and the "
            "orders use it");
  EXPECT_NE(refusal_of(two_layers(R"({"rank": 0})", back)), "");
  EXPECT_NE(refusal_of(two_layers("3", back)), "");
}

// The reader passes over the place in which a graph makes what is then copied.
TEST(GivenTensors, HaveTheirPlaceWhereTheyAreCopiedTo) {
  std::string text = two_layers(named(1, "static input"), named(0, "grad output"));
  text.insert(text.find('[') + 1,
              R"({"rank": 0, "chunk": 1, "layer": 1, "microbatch": 0, "kind": "output", )"
              R"("region": "pool", "offset": 0, "bytes": 1, "made": true}, )");
  EXPECT_EQ(Subject(kTwoLayers, text).misfit(), "");
}

}  // namespace
}  // namespace capo
