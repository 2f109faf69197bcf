// Product against oracle on every short string: verdict of shape, and TE's verdict, kind and place.
//
// The alphabet has everything that a list of three chunks can hold, and 0 and an unknown chunk. The
// oracle was written from the description of TransformerEngine's behaviour by another hand and
// shares no code with the product.

#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/te/predict.h"
#include "core/rules/check.h"
#include "testing/oracle/oracle.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace capo {
namespace {

const std::vector kAll{1.0, 2.0, 3.0, -1.0, -2.0, -3.0, -1.5, -2.5, -3.5, 0.0, 4.0};
const std::vector kTwoChunks{1.0, 2.0, -1.0, -2.0, -1.5, -2.5};

// The declarations that come with the list.
struct Declared {
  const char* name;
  Layers layers;
  oracle::Layers oracle_layers;
  std::optional<std::vector<bool>> need;
  bool reuse;
  std::vector<double> alphabet = kAll;
  std::size_t longest = 5;
};

void PrintTo(const Declared& declared, std::ostream* out) {
  *out << declared.name;
}

std::string shown(const std::vector<double>& order) {
  std::string text = "[";
  for (const double value : order) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

struct Comparison {
  std::uint64_t strings = 0;
  std::uint64_t sound = 0;
  std::uint64_t captured = 0;

  void compare(const std::vector<double>& order, const Declared& declared) {
    TeList list;
    std::vector<oracle::Number> numbers;
    for (const double value : order) {
      const bool half = value != static_cast<double>(static_cast<int>(value));
      list.entries.push_back(
          {.value = value, .type = half ? NumberType::Float : NumberType::Integer});
      numbers.push_back({.value = value, .floating = half});
    }
    ++strings;

    Input input{.form = Form::TeList};
    TeReading reading =
        from_te_list(list, {.layers = declared.layers, .need_wgrad = declared.need});
    input.schedule = std::move(reading.schedule);
    input.te_list = list;
    input.odd_entries = std::move(reading.odd_entries);
    const bool accepted = check(input).verdict == Verdict::Accepted;
    ASSERT_EQ(accepted, oracle::sound(numbers, declared.need, declared.oracle_layers))
        << shown(order);
    sound += accepted ? 1 : 0;

    const std::vector<bool> need = declared.need.value_or(std::vector<bool>{});
    const auto prediction = te::predict(list, declared.layers, need, {.reuse = declared.reuse});
    const oracle::TeAnswer answer = oracle::transformer_engine({.order = numbers,
                                                                .layers = declared.oracle_layers,
                                                                .need_wgrad = need,
                                                                .reuse = declared.reuse});
    ASSERT_EQ(std::string(te::name_of(prediction->kind)), answer.kind) << shown(order);
    ASSERT_EQ(prediction->entry ? static_cast<int>(*prediction->entry) : -1, answer.position)
        << shown(order);
    captured += prediction->accepts() ? 1 : 0;
  }
};

void compare_all(const Declared& declared) {
  Comparison comparison;
  for (std::size_t length = 0; length <= declared.longest; ++length) {
    std::vector<std::size_t> digits(length, 0);
    while (true) {
      std::vector<double> order;
      for (const std::size_t digit : digits) order.push_back(declared.alphabet[digit]);
      comparison.compare(order, declared);
      if (::testing::Test::HasFatalFailure()) return;
      std::size_t at = 0;
      while (at < length && ++digits[at] == declared.alphabet.size()) digits[at++] = 0;
      if (at == length) break;
    }
  }
  std::printf("%s: %lu strings agree, %lu sound, %lu captured by TE\n", declared.name,
              comparison.strings, comparison.sound, comparison.captured);
  EXPECT_GT(comparison.sound, 0U);
  EXPECT_GT(comparison.captured, 0U);
}

class OracleAgreement : public ::testing::TestWithParam<Declared> {};

TEST_P(OracleAgreement, HoldsForEveryShortString) {
  compare_all(GetParam());
}

Layers list_of(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

INSTANTIATE_TEST_SUITE_P(Declarations, OracleAgreement,
                         ::testing::Values(Declared{"nothing declared",
                                                    {.form = Layers::Form::Null},
                                                    {oracle::Layers::None, {}},
                                                    {},
                                                    false},
                                           Declared{"one chunk that delays",
                                                    list_of({1}),
                                                    {oracle::Layers::List, {1}},
                                                    std::vector{true},
                                                    false},
                                           Declared{"two chunks that delay",
                                                    list_of({1, 1}),
                                                    {oracle::Layers::List, {1, 1}},
                                                    std::vector{true, true},
                                                    false,
                                                    kTwoChunks,
                                                    6},
                                           Declared{"two chunks, the first delays",
                                                    list_of({1, 1}),
                                                    {oracle::Layers::List, {1, 1}},
                                                    std::vector{true, false},
                                                    true},
                                           Declared{"two chunks of two and one layers",
                                                    list_of({2, 1}),
                                                    {oracle::Layers::List, {2, 1}},
                                                    std::vector{false, false},
                                                    true}),
                         [](const auto& row) { return std::to_string(row.index); });

}  // namespace
}  // namespace capo
