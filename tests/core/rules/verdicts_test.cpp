// The fast interface says what check() says: verdict, rule and place of the first error, whatever
// was judged before in the same memory. All short strings are compared by tests/exhaustive.

#include "core/rules/verdicts.h"
#include "core/input/load.h"
#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace capo {
namespace {

using List = std::vector<TeEntry>;

List list_of(const std::vector<double>& numbers) {
  List list;
  for (const double value : numbers) {
    const bool whole = std::floor(value) == value;
    list.push_back({.value = value, .type = whole ? NumberType::Integer : NumberType::Float});
  }
  return list;
}

FirstFinding rejected(std::string_view rule, std::size_t index) {
  return {.verdict = Verdict::Rejected, .rule = rule, .place = Place{.rank = 0, .index = index}};
}

FirstFinding rejected_as_a_whole(std::string_view rule) {
  return {.verdict = Verdict::Rejected, .rule = rule, .place = std::nullopt};
}

const FirstFinding kAccepted{.verdict = Verdict::Accepted, .rule = {}, .place = std::nullopt};

// Of check(), entries standing where they are counted.
FirstFinding by_check(const List& list, const Verdicts::Declared& declared) {
  Input input{.te_list = {list}};
  for (std::size_t at = 0; at < list.size(); ++at) {
    input.te_list.entries[at].offset = static_cast<std::uint32_t>(at);
    input.te_list.entries[at].length = 1;
  }
  TeReading reading = from_te_list(input.te_list, declared.list);
  input.schedule = std::move(reading.schedule);
  input.schedule.topology = declared.topology;
  place_stages(input.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  const CheckResult result = check(input, declared.options);
  FirstFinding first{.verdict = result.verdict};
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity != Severity::Error) continue;
    first.rule = finding.rule;
    if (!finding.labels.empty())
      first.place = Place{.rank = 0, .index = finding.labels.front().span.offset};
    break;
  }
  return first;
}

TEST(Verdicts, NameTheFirstErrorOfAList) {
  Verdicts verdicts({});
  EXPECT_EQ(verdicts.of(list_of({1, -1})), kAccepted);
  EXPECT_EQ(verdicts.of(list_of({1, -1, -1, 1})), rejected("S23", 2));
  EXPECT_EQ(verdicts.of(list_of({1, -1.5, -1})), rejected("S24", 1));
  EXPECT_EQ(verdicts.of(list_of({1, 2, -1, -1})), rejected("S15", 3));
  EXPECT_EQ(verdicts.of(list_of({1, 0, -1})), rejected("S04", 1));
  EXPECT_EQ(verdicts.of(list_of({2, -2})), rejected("S13", 0));
  EXPECT_EQ(verdicts.of(List{}), rejected_as_a_whole("S06"));
  EXPECT_EQ(verdicts.of(list_of({1, 1, -1, -1})), kAccepted);
}

TEST(Verdicts, OfAMissingChunkStandAtTheLargestThatIsKnown) {
  Verdicts verdicts({});
  EXPECT_EQ(verdicts.of(list_of({4, 2, -2})), rejected("S12", 0));
  EXPECT_EQ(verdicts.of(list_of({2, -2, 4})), rejected("S13", 0)) << "not at 4, which is unknown";
}

TEST(Verdicts, FollowWhatIsDeclared) {
  const List list = list_of({2, 1, -1, -2});
  EXPECT_EQ(Verdicts({}).of(list), kAccepted);
  EXPECT_EQ(Verdicts({.topology = Topology::Chain}).of(list), rejected("D03", 0));
  EXPECT_EQ(Verdicts({.list = {.microbatches = 2}}).of(list), rejected("S14", 0));
  EXPECT_EQ(Verdicts({.list = {.layers = {.form = Layers::Form::List, .values = {1}}}}).of(list),
            rejected("S12", 0));
  EXPECT_EQ(Verdicts({.list = {.need_wgrad = {{true, false}}}}).of(list), rejected("S16", 2));
  Verdicts::Declared planned;
  planned.options.plan = {.kind = PlanKind::Te,
                          .aliases = Aliases{.input = true, .grad_output = true}};
  EXPECT_EQ(Verdicts(planned).of(list_of({1, -1, 1, -1.5, -1, -1.5})), rejected("B01", 3));
  planned.options.plan.max_buffers = 10;
  EXPECT_EQ(Verdicts(planned).of(list).verdict, Verdict::NoVerdict);
  EXPECT_EQ(Verdicts(planned).of(list_of({1, -1, -1, 1})), rejected_as_a_whole("I02"));
}

TEST(Verdicts, AreNoneOfMemoryBeyondAddresses) {
  Verdicts::Declared declared;
  declared.options.plan.kind = PlanKind::Te;
  Module& module = declared.options.modules.list.emplace_back();
  module.bytes = {.input = std::int64_t{1} << 54, .output = 0, .activations = 0, .operands = 0};
  declared.options.modules.layers = {{{0}}};
  EXPECT_EQ(Verdicts(declared).of(list_of({1, 1, -1, -1})), kAccepted);
  EXPECT_EQ(Verdicts(declared).of(list_of({1, 1, 1, -1, -1, -1})).verdict, Verdict::NoVerdict);
  EXPECT_EQ(Verdicts(declared).of(list_of({1, 1, -1, -1, 1})).rule, "S15") << "errors come first";
}

TEST(Verdicts, OfUndeclaredReuseAreWarningsAndNoErrors) {
  EXPECT_EQ(Verdicts({}).of(list_of({1, -1, 1, -1.5, -1, -1.5})), kAccepted);
}

TEST(Verdicts, AreThoseOfCheckForOddListsToo) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> lists{{1, nan, -1},
                                               {1, -1.25, -1},
                                               {1.5, -1},
                                               {-0.5, 1},
                                               {1e300, -1e300},
                                               {1, 2147483648.0},
                                               {-1.5},
                                               {1, 1, -1, -1.5, -1},
                                               {40, -40},
                                               {1, -1, -1.5, -1.5},
                                               {1, 1, 3, -3, -1, -1},
                                               {2, 3},
                                               {1, 2, 2, -2, -1},
                                               {3, 1, -1},
                                               {1, -1, 2, -2, -2}};
  std::vector<Verdicts::Declared> all(4);
  all[1].topology = Topology::Chain;
  all[2].list.need_wgrad = {true, false};
  all[3].options.plan = {.kind = PlanKind::Te,
                         .aliases = Aliases{.input = true, .grad_output = true}};
  for (const Verdicts::Declared& declared : all) {
    Verdicts verdicts(declared);
    for (const std::vector<double>& numbers : lists) {
      List list = list_of(numbers);
      EXPECT_EQ(verdicts.of(list), by_check(list, declared)) << ::testing::PrintToString(numbers);
      list.front().type = NumberType::Float;
      EXPECT_EQ(verdicts.of(list), by_check(list, declared)) << ::testing::PrintToString(numbers);
    }
  }
}

TEST(Verdicts, OfMoreChunksThanAreCountedAtOnceAreTheRules) {
  std::vector<double> numbers;
  for (int chunk = 1; chunk <= 40; ++chunk) numbers.push_back(chunk);
  for (int chunk = 40; chunk >= 1; --chunk) numbers.push_back(-chunk);
  Verdicts verdicts({});
  EXPECT_EQ(verdicts.of(list_of(numbers)), kAccepted);
  std::swap(numbers[0], numbers[79]);
  EXPECT_EQ(verdicts.of(list_of(numbers)), rejected("S23", 0));
}

TEST(Verdicts, OfAnInputNameTheRank) {
  const auto input = load(Source{.name = "two ranks",
                                 .text = "capo 1\nranks 2\nplacement chain\n"
                                         "rank 0: F1.0 B1.0\n"
                                         "rank 1: F1.0 B1.0 B1.0\n"},
                          {.form = TextForm::OrderFile});
  const FirstFinding first = Verdicts({}).of(*input);
  EXPECT_EQ(first.verdict, Verdict::Rejected);
  EXPECT_EQ(first.rule, "S20");
  EXPECT_EQ(first.place, (Place{.rank = 1, .index = 2}));
}

// Two ranks that transfer, and nobody says how: the verdict is that under every value.
TEST(Verdicts, OfRanksWhoseCommunicationIsUndeclaredAreThoseOfCheck) {
  const auto first = [](const std::string& orders, const Verdicts::Declared& declared = {}) {
    const auto input = load(Source{.name = "two ranks", .text = "capo 1\nplacement " + orders},
                            {.form = TextForm::OrderFile});
    return Verdicts(declared).of(*input);
  };
  EXPECT_EQ(first("chain\nrank 0: F1 B1\nrank 1: F1 B1\n"), kAccepted);
  const std::string reused = "chain\nrank 0: F1 B1 F1 W1 B1 W1\nrank 1: F1 B1 F1 W1 B1 W1\n";
  Verdicts::Declared planned;
  planned.options.plan.kind = PlanKind::Te;
  EXPECT_EQ(first(reused, planned), kAccepted) << "a warning, while nobody says what W reads";
  planned.options.plan.aliases = Aliases{.input = true, .grad_output = true};
  EXPECT_EQ(first(reused, planned), (FirstFinding{.verdict = Verdict::Rejected,
                                                  .rule = "B01",
                                                  .place = Place{.rank = 0, .index = 3}}));
  Verdicts::Declared by_megatron;
  by_megatron.options.environment.p2p = MegatronCalls::Batch;
  EXPECT_EQ(first("chain\nrank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n", by_megatron),
            rejected_as_a_whole("R01"))
      << "no entry is at fault, but where the stages are";
}

// What is declared beside a list, one thing at a time: both ways to a verdict say the same.
TEST(Verdicts, AreThoseOfCheckWhateverIsDeclared) {
  std::vector<Verdicts::Declared> settings(12);
  settings[1].list.layers = {.form = Layers::Form::Count, .values = {2}};
  settings[2].list.layers = {.form = Layers::Form::List, .values = {1, 1}};
  settings[3].list.need_wgrad = {{true}};
  settings[4].topology = Topology::Loop;
  settings[5].options.groups = {{.name = "g", .members = {0}, .actions = {Kind::ReduceGradient}}};
  settings[6].options.environment.weight_stream = true;
  settings[7].options.modules = {.list = {{.name = "m"}}, .layers = {{{0}}}};
  settings[8].options.plan.kind = PlanKind::Te;
  settings[9].list.microbatches = 0;
  settings[10].list.microbatches = 1;
  settings[11].list.delayed = DelayedChunks{};
  const std::vector<std::vector<double>> lists{{},
                                               {1, -1},
                                               {1, 1, -1, -1},
                                               {-1, 1},
                                               {1, -1, -1.5},
                                               {1, 2, -2, -1},
                                               {2, -2},
                                               {1, -1, 1, -1.5, -1, -1.5}};
  for (std::size_t s = 0; s < settings.size(); ++s) {
    Verdicts verdicts(settings[s]);
    for (const std::vector<double>& numbers : lists) {
      const List list = list_of(numbers);
      EXPECT_EQ(verdicts.of(list), by_check(list, settings[s])) << s;
    }
  }
}

TEST(Verdicts, MayBeHandedOn) {
  Verdicts made({});
  Verdicts verdicts(std::move(made));
  EXPECT_EQ(verdicts.of(list_of({1, -1})), kAccepted);
  verdicts = Verdicts({.list = {.microbatches = 2}});
  EXPECT_NE(verdicts.of(list_of({1, -1})), kAccepted);
}

TEST(Verdicts, OfOrdersThatMegatronsLoopDoesNotRunNameTheEntry) {
  const auto first = [](const std::string& last, MegatronCalls calls, bool overlap) {
    const std::string text =
        "capo 1\nmicrobatches 2\nplacement loop\n"
        "rank 0: F1.0 F1.1 F2.0 F2.1 B2.0 B2.1 B1.0 B1.1\nrank 1: " +
        last + "\n";
    const auto input = load(Source{.name = "x", .text = text}, {.form = TextForm::OrderFile});
    Verdicts::Declared declared;
    declared.options.environment = {.p2p = calls, .ep_overlap = overlap};
    return Verdicts(declared).of(*input);
  };
  const FirstFinding own =
      first("F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1", MegatronCalls::Batch, true);
  EXPECT_EQ(own.rule, "R01");
  EXPECT_EQ(own.place, (Place{.rank = 1, .index = 3}));
}

TEST(Verdicts, OfAnInputNameTheEntryOfTheFirstError) {
  const auto place = [](const std::string& text, const LoadOptions& options = {}) {
    const auto input = load(Source{.name = "x", .text = text}, options);
    EXPECT_TRUE(input);
    return Verdicts({}).of(*input).place;
  };
  EXPECT_EQ(place("[1, 0, -1]"), (Place{.rank = 0, .index = 1}));
  EXPECT_EQ(place("[0, 1, 0.25, -1]"), (Place{.rank = 0, .index = 0}));
  EXPECT_EQ(place("[1, -1.25, -1, 0]"), (Place{.rank = 0, .index = 1}));
  EXPECT_EQ(place("capo 1\nrank 0: F1.0 B1.0\nrank 1: B1.0 F1.0\n"),
            (Place{.rank = 1, .index = 0}));
  EXPECT_EQ(place("capo 1\nrank 0: F1 B1\nrank 0 replay: B1 F1\n"), std::nullopt);
}

}  // namespace
}  // namespace capo
