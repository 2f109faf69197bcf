// Product against definition on every short order of named microbatches: one chunk, two
// microbatches, each way to treat its weight gradients.
//
//   mixed:   F1 F0 B0 I1 W1     right
//            F0 F1 B0 W1 I1     of the right actions, in an order that cannot be
//            F0 F1 B0 I1        an action is missing
//
// The definition counts and compares positions. Every order of a chunk that is right has at most
// six entries, so all of them are among these.

#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

namespace capo {
namespace {

constexpr std::int32_t kMicrobatches = 2;

struct Scope {
  const char* name;
  Delay delay;
  std::int32_t microbatches;  ///< the alphabet has so many, more than the step
  std::size_t longest;
};

void PrintTo(const Scope& scope, std::ostream* out) {
  *out << scope.name;
}

std::vector<Entry> alphabet(const Scope& scope) {
  std::vector<Entry> entries;
  for (const Kind kind :
       {Kind::Forward, Kind::Backward, Kind::BackwardInput, Kind::BackwardWeight}) {
    for (std::int32_t m = 0; m < scope.microbatches; ++m)
      entries.push_back({.chunk = 1, .microbatch = m, .kind = kind});
  }
  return entries;
}

std::string shown(const std::vector<Entry>& order) {
  std::string text;
  for (const Entry& entry : order) {
    const char* kind = entry.kind == Kind::Forward         ? "F"
                       : entry.kind == Kind::Backward      ? "B"
                       : entry.kind == Kind::BackwardInput ? "I"
                                                           : "W";
    text += kind + std::to_string(entry.microbatch) + " ";
  }
  return text;
}

enum class Judgement { Right, OfOtherActions, InAnotherOrder };

// The actions of one microbatch as they have to follow each other; of mixed chunks by what there
// is.
std::vector<Kind> actions_of(Delay delay, bool splits) {
  if (delay == Delay::Always) return {Kind::Forward, Kind::Backward, Kind::BackwardWeight};
  if (splits) return {Kind::Forward, Kind::BackwardInput, Kind::BackwardWeight};
  return {Kind::Forward, Kind::Backward};
}

Judgement judge(const std::vector<Entry>& order, Delay delay) {
  bool in_order = true;
  std::size_t known = 0;
  for (std::int32_t m = 0; m < kMicrobatches; ++m) {
    std::vector<Kind> found;
    for (const Entry& entry : order) {
      if (entry.microbatch == m) found.push_back(entry.kind);
    }
    known += found.size();
    const bool splits = delay == Delay::Mixed &&
                        std::find(found.begin(), found.end(), Kind::BackwardInput) != found.end();
    const std::vector<Kind> wanted = actions_of(delay, splits);
    if (!std::is_permutation(found.begin(), found.end(), wanted.begin(), wanted.end()))
      return Judgement::OfOtherActions;
    in_order = in_order && found == wanted;
  }
  if (known != order.size()) return Judgement::OfOtherActions;
  return in_order ? Judgement::Right : Judgement::InAnotherOrder;
}

// Sorted by the families of the findings: a wrong order of the right actions is a matter of
// dependencies.
Judgement judged(const CheckResult& result) {
  const auto& findings = result.diagnostics.kept();
  if (findings.empty()) return Judgement::Right;
  const bool counts = std::any_of(findings.begin(), findings.end(), [](const Diagnostic& finding) {
    return finding.family == Family::Shape;
  });
  return counts ? Judgement::OfOtherActions : Judgement::InAnotherOrder;
}

class NamedOrders : public ::testing::TestWithParam<Scope> {};

TEST_P(NamedOrders, AreJudgedAsTheyAreDefined) {
  const Scope& scope = GetParam();
  const std::vector<Entry> letters = alphabet(scope);
  Input input{.form = Form::OrderFile};
  Schedule& schedule = input.schedule;
  schedule.naming = Naming::Named;
  schedule.microbatches = kMicrobatches;
  RankOrder& rank = schedule.ranks.emplace_back();
  rank.chunks = 1;
  rank.chunks_declared = true;
  rank.delay = {scope.delay};

  std::uint64_t orders = 0;
  std::uint64_t right = 0;
  std::vector<std::size_t> digits;
  while (digits.size() <= scope.longest) {
    rank.order.clear();
    for (const std::size_t digit : digits) rank.order.push_back(letters[digit]);
    const CheckResult result = check(input);
    const Judgement expected = judge(rank.order, scope.delay);
    ASSERT_EQ(judged(result), expected) << shown(rank.order);
    ASSERT_EQ(result.verdict == Verdict::Accepted, expected == Judgement::Right)
        << shown(rank.order);
    ++orders;
    right += expected == Judgement::Right ? 1 : 0;
    std::size_t at = 0;
    while (at < digits.size() && ++digits[at] == letters.size()) digits[at++] = 0;
    if (at == digits.size()) digits.assign(digits.size() + 1, 0);
  }
  std::printf("%s: %lu orders agree, %lu right\n", scope.name, orders, right);
  EXPECT_GT(right, 0U);
}

INSTANTIATE_TEST_SUITE_P(Scopes, NamedOrders,
                         ::testing::Values(Scope{"never", Delay::Never, 2, 5},
                                           Scope{"always", Delay::Always, 2, 6},
                                           Scope{"mixed", Delay::Mixed, 2, 6},
                                           Scope{"beyond", Delay::Never, 3, 5}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace capo
