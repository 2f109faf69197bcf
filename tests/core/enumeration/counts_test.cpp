// The published counts, out of the product by enumeration: how many orders of a size there are, how
// many are sound, and how many TransformerEngine captures. A wrong rule changes these numbers.
//
// Sources: the tables A13 and D2 of capo's survey of the ecosystem, and the counts of TE's false
// rejects, both made by other programs. "Executable" needs a topology and is the oracle's here.

#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/te/predict.h"
#include "core/rules/check.h"
#include "testing/oracle/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <ostream>
#include <vector>

namespace capo {
namespace {

TeList list_of(const std::vector<double>& order) {
  TeList list;
  for (const double value : order) {
    const bool half = value != static_cast<double>(static_cast<int>(value));
    list.entries.push_back(
        {.value = value, .type = half ? NumberType::Float : NumberType::Integer});
  }
  return list;
}

bool accepted(const TeList& list, const std::vector<bool>& need) {
  Input input{.form = Form::TeList};
  TeReading reading = from_te_list(list, {.need_wgrad = need});
  input.schedule = std::move(reading.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  return check(input).verdict == Verdict::Accepted;
}

bool te_accepts(const TeList& list, const std::vector<bool>& need) {
  return te::predict(list, {}, need)->accepts();
}

bool executable(const std::vector<double>& order, const std::vector<bool>& need) {
  std::vector<oracle::Number> numbers;
  for (const TeEntry& entry : list_of(order).entries) {
    numbers.push_back({.value = entry.value, .floating = entry.type == NumberType::Float});
  }
  return oracle::executable(numbers, need, {oracle::Layers::None, {}});
}

// Every order with M of each token, that is all permutations of the multiset.
std::vector<double> multiset(int chunks, int microbatches, bool weights) {
  std::vector<double> tokens;
  for (int m = 0; m < microbatches; ++m) {
    for (int c = 1; c <= chunks; ++c) {
      tokens.push_back(c);
      tokens.push_back(-c);
      if (weights) tokens.push_back(-c - 0.5);
    }
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

struct Scope {
  int chunks;
  int microbatches;
  bool weights;
  std::uint64_t total;       // well-counted orders
  std::uint64_t sound;       // D2 "per chunk"; with W the sound orders of te-semantics 2.2
  std::uint64_t te;          // the sound ones that TE captures
  std::uint64_t executable;  // those of them that are executable as a chain: D2 "TE-expressible"
};

void PrintTo(const Scope& scope, std::ostream* out) {
  *out << scope.chunks << "x" << scope.microbatches << (scope.weights ? " with W" : "");
}

class Counts : public ::testing::TestWithParam<Scope> {};

TEST_P(Counts, OfAllWellCountedOrdersAreThePublishedOnes) {
  const Scope& scope = GetParam();
  const std::vector<bool> need(static_cast<std::size_t>(scope.chunks), scope.weights);
  std::uint64_t total = 0;
  std::uint64_t sound = 0;
  std::uint64_t te = 0;
  std::uint64_t te_executable = 0;
  std::vector<double> order = multiset(scope.chunks, scope.microbatches, scope.weights);
  do {
    ++total;
    const TeList list = list_of(order);
    if (!accepted(list, need)) continue;
    ++sound;
    if (!te_accepts(list, need)) continue;
    ++te;
    if (executable(order, need)) ++te_executable;
  } while (std::next_permutation(order.begin(), order.end()));
  std::printf("%dx%d%s: total %lu, sound %lu, TE captures %lu, of these executable %lu\n",
              scope.chunks, scope.microbatches, scope.weights ? " with W" : "", total, sound, te,
              te_executable);
  EXPECT_EQ(total, scope.total);
  EXPECT_EQ(sound, scope.sound);
  EXPECT_EQ(te, scope.te);
  EXPECT_EQ(te_executable, scope.executable);
}

INSTANTIATE_TEST_SUITE_P(
    UpToNineTokens, Counts,
    ::testing::Values(Scope{1, 1, false, 2, 1, 1, 1}, Scope{1, 2, false, 6, 2, 2, 2},
                      Scope{1, 3, false, 20, 5, 5, 5}, Scope{2, 1, false, 24, 6, 6, 1},
                      Scope{2, 2, false, 2'520, 280, 280, 14}, Scope{3, 1, false, 720, 90, 90, 1},
                      Scope{1, 1, true, 6, 1, 1, 1}, Scope{1, 2, true, 90, 5, 3, 3},
                      Scope{1, 3, true, 1'680, 42, 12, 12}, Scope{2, 1, true, 720, 20, 20, 3}));

// Larger scopes by their prefixes: only sound beginnings are continued.
void for_each_sound_order(int chunks, int microbatches,
                          const std::function<void(const std::vector<double>&)>& visit) {
  struct Done {
    int forward = 0;
    int backward = 0;
    int weight = 0;
  };
  std::vector<Done> done(static_cast<std::size_t>(chunks));
  std::vector<double> order;
  const std::function<void()> extend = [&] {
    if (order.size() == static_cast<std::size_t>(3 * chunks * microbatches)) return visit(order);
    for (int c = 1; c <= chunks; ++c) {
      Done& of = done[static_cast<std::size_t>(c) - 1];
      const auto step = [&](bool possible, int& count, double token) {
        if (!possible) return;
        ++count;
        order.push_back(token);
        extend();
        order.pop_back();
        --count;
      };
      step(of.forward < microbatches, of.forward, c);
      step(of.backward < of.forward, of.backward, -c);
      step(of.weight < of.backward, of.weight, -c - 0.5);
    }
  };
  extend();
}

TEST(Counts, OfSoundOrdersThatTransformerEngineCapturesAreThePublishedOnes) {
  struct Row {
    int chunks;
    int microbatches;
    std::uint64_t sound;
    std::uint64_t te;
    std::uint64_t te_executable;
  };
  for (const Row& row :
       {Row{1, 4, 462, 55, 55}, Row{2, 2, 23'100, 8'316, 337}, Row{3, 1, 1'680, 1'680, 15}}) {
    const std::vector<bool> need(static_cast<std::size_t>(row.chunks), true);
    std::uint64_t sound = 0;
    std::uint64_t te = 0;
    std::uint64_t te_executable = 0;
    for_each_sound_order(row.chunks, row.microbatches, [&](const std::vector<double>& order) {
      const TeList list = list_of(order);
      ASSERT_TRUE(accepted(list, need));
      ++sound;
      if (!te_accepts(list, need)) return;
      ++te;
      if (executable(order, need)) ++te_executable;
    });
    std::printf("%dx%d with W: TE captures %lu of %lu sound orders, %lu of these executable\n",
                row.chunks, row.microbatches, te, sound, te_executable);
    EXPECT_EQ(sound, row.sound);
    EXPECT_EQ(te, row.te);
    EXPECT_EQ(te_executable, row.te_executable);
  }
}

TEST(Counts, OfAllListsOfEightEntriesOverTwoChunksAreThePublishedOnes) {
  constexpr double kTokens[] = {1, 2, -1, -2};
  const std::vector<bool> need{false, false};
  const Layers kTwoChunks{.form = Layers::Form::List, .values = {1, 1}};
  std::uint64_t dimensions = 0;
  std::uint64_t captured = 0;
  std::uint64_t captured_executable = 0;
  for (std::uint32_t code = 0; code < (1U << 16); ++code) {
    std::vector<double> order;
    for (std::uint32_t i = 0; i < 8; ++i) order.push_back(kTokens[(code >> (2 * i)) & 3]);
    const auto prediction = te::predict(list_of(order), kTwoChunks, need);
    if (prediction->step == te::Step::Parse || prediction->step == te::Step::Dimensions) continue;
    ++dimensions;
    if (!prediction->accepts()) continue;
    ++captured;
    if (executable(order, need)) ++captured_executable;
  }
  std::printf(
      "of 65,536 lists over two chunks %lu pass TE's dimension check, %lu capture silently, %lu of "
      "these are executable\n",
      dimensions, captured, captured_executable);
  EXPECT_EQ(dimensions, 58'975U);
  EXPECT_EQ(captured, 320U);
  EXPECT_EQ(captured_executable, 14U);
}

TEST(Counts, OfFalseAcceptsAreThePublishedOnes) {
  // All lists of six entries with three chunks and one microbatch: 299 accepted, 90 sound.
  constexpr double kTokens[] = {1, 2, 3, -1, -2, -3};
  const std::vector<bool> need{false, false, false};
  std::uint64_t te = 0;
  std::uint64_t sound = 0;
  for (int code = 0; code < 46'656; ++code) {
    std::vector<double> order;
    for (int i = 0, rest = code; i < 6; ++i, rest /= 6) order.push_back(kTokens[rest % 6]);
    if (*std::max_element(order.begin(), order.end()) != 3) continue;
    const TeList list = list_of(order);
    if (!te_accepts(list, need)) continue;
    ++te;
    if (accepted(list, need)) ++sound;
  }
  std::printf("three chunks, one microbatch: TE accepts %lu, %lu of them sound\n", te, sound);
  EXPECT_EQ(te, 299U);
  EXPECT_EQ(sound, 90U);
}

}  // namespace
}  // namespace capo
