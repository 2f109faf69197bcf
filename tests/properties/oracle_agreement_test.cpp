// The product and the oracle, which share no code, say the same of every list of numbers: on random
// lists that are nearly orders, and on all short ones.
//
// Two differences are agreed on and left out of the comparison of verdicts. A declaration that
// speaks of fewer chunks than there are is a fault to capo (S18, or S12 where nothing else declares
// the chunks), while the oracle reads the rest off the entries. And a chunk of no layers is a fault
// to capo (S18); the oracle does not look at layer counts.

#include <capo/core/profiles/te.h>
#include <capo/core/rules/check.h>
#include <capo/testing/generators/arbitrary_numbers.h>
#include <capo/testing/generators/te_order.h>
#include <capo/testing/oracle_question.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

namespace capo::testing {
namespace {

constexpr int kListsPerCase = 10;

Verdict verdict_of(const NumberCase& numbers) {
  Input input{.form = Form::TeList, .te_list = numbers.list};
  TeReading reading = from_te_list(numbers.list, numbers.declarations());
  input.schedule = std::move(reading.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  return check(input).verdict;
}

bool oracle_accepts(const NumberCase& numbers) {
  return oracle::sound(oracle_order(numbers.list), numbers.need_wgrad,
                       oracle_layers(numbers.layers, numbers.list));
}

bool declares_too_little(const NumberCase& numbers) {
  const bool no_layers = std::any_of(numbers.layers.values.begin(), numbers.layers.values.end(),
                                     [](std::int64_t count) { return count < 1; });
  if (no_layers) return true;
  if (!numbers.need_wgrad) return false;
  double largest = numbers.layers.form == Layers::Form::List
                       ? static_cast<double>(numbers.layers.values.size())
                       : 0;
  for (const TeEntry& entry : numbers.list.entries) {
    if (const auto action = te_action(entry)) largest = std::max<double>(largest, action->chunk);
  }
  return static_cast<double>(numbers.need_wgrad->size()) < largest;
}

oracle::TeAnswer oracle_te(const NumberCase& numbers) {
  return oracle::transformer_engine({.order = oracle_order(numbers.list),
                                     .layers = oracle_layers(numbers.layers, numbers.list),
                                     .need_wgrad = numbers.need_wgrad.value_or(std::vector<bool>{}),
                                     .reuse = numbers.reuse,
                                     .silent_store = numbers.silent_store});
}

te::Prediction predicted(const NumberCase& numbers) {
  const te::Options options{
      .reuse = numbers.reuse,
      .empty_store = numbers.silent_store ? te::EmptyStore::Silent : te::EmptyStore::Raises};
  return te::predict(numbers.list, numbers.layers, numbers.need_wgrad.value_or(std::vector<bool>{}),
                     options)
      .value();
}

RC_GTEST_PROP(OracleAgreement, OnTheVerdict, ()) {
  for (int i = 0; i < kListsPerCase; ++i) {
    const NumberCase numbers = *arbitrary_numbers();
    const Verdict verdict = verdict_of(numbers);
    if (declares_too_little(numbers)) {
      RC_ASSERT(verdict == Verdict::Rejected);
    } else {
      RC_ASSERT((verdict == Verdict::Accepted) == oracle_accepts(numbers));
    }
  }
}

RC_GTEST_PROP(OracleAgreement, OnWhatTransformerEngineSaysAndOfWhichEntry, ()) {
  for (int i = 0; i < kListsPerCase; ++i) {
    const NumberCase numbers = *arbitrary_numbers();
    const oracle::TeAnswer answer = oracle_te(numbers);
    const te::Prediction prediction = predicted(numbers);
    RC_ASSERT(std::string(te::name_of(prediction.kind)) == answer.kind);
    RC_ASSERT(prediction.accepts() == answer.accepts);
    RC_ASSERT((prediction.entry ? static_cast<int>(*prediction.entry) : -1) == answer.position);
  }
}

// All lists of up to five entries over two chunks, for every way to declare two flags or none.
TEST(OracleAgreement, OnAllShortLists) {
  const std::array<TeEntry, 6> alphabet{
      te_entry(Kind::Forward, 1), te_entry(Kind::Backward, 1), te_entry(Kind::BackwardWeight, 1),
      te_entry(Kind::Forward, 2), te_entry(Kind::Backward, 2), te_entry(Kind::BackwardWeight, 2)};
  std::size_t lists = 0;
  std::size_t accepted = 0;
  std::vector<std::size_t> digits;
  while (digits.size() <= 5) {
    NumberCase numbers;
    for (const std::size_t digit : digits) numbers.list.entries.push_back(alphabet[digit]);
    numbers.layers = {.form = Layers::Form::Null};
    const Verdict bare = verdict_of(numbers);
    ASSERT_EQ(bare == Verdict::Accepted, oracle_accepts(numbers)) << numbers.text();
    ++lists;
    accepted += bare == Verdict::Accepted ? 1 : 0;

    const bool first_delays = digits.size() % 2 == 1;  // both ways occur in each length's neighbour
    const bool uses_two =
        std::any_of(digits.begin(), digits.end(), [](std::size_t digit) { return digit >= 3; });
    numbers.layers = {.form = Layers::Form::List,
                      .values = std::vector<std::int64_t>(uses_two ? 2 : 1, 1)};
    for (const bool delays : {false, true}) {
      numbers.need_wgrad = std::vector<bool>{delays};
      if (uses_two) numbers.need_wgrad->push_back(first_delays);
      for (const bool reuse : {false, true}) {
        numbers.reuse = reuse;
        ASSERT_EQ(te::name_of(predicted(numbers).kind), oracle_te(numbers).kind)
            << rc::toString(numbers);
      }
      ASSERT_EQ(verdict_of(numbers) == Verdict::Accepted, oracle_accepts(numbers))
          << rc::toString(numbers);
    }

    // The next list: count up in base 6, then one longer.
    std::size_t at = 0;
    while (at < digits.size() && ++digits[at] == alphabet.size()) digits[at++] = 0;
    if (at == digits.size()) digits.assign(digits.size() + 1, 0);
  }
  EXPECT_EQ(lists, 1u + 6 + 36 + 216 + 1296 + 7776);
  EXPECT_GT(accepted, 10u);
}

}  // namespace
}  // namespace capo::testing
