// The product and the oracle, which share no code, say the same of lists that are nearly orders; of
// all short ones, tests/core/enumeration says it.
//
// Three differences are known and left out of the comparison of verdicts. A declaration that speaks
// of fewer chunks than there are is a fault to capo (S18, or S12 where nothing else declares the
// chunks), while the oracle reads the rest off the entries. Fewer layers than none are a
// fault to capo (S18), and the oracle does not look at layer counts. An empty list that is declared
// to be for no chunk is right to capo, as an empty rank of a schedule is, and not sound to the
// oracle.

#include "core/frameworks/te/predict.h"
#include "core/rules/check.h"
#include "core/rules/verdicts.h"
#include "testing/generators/arbitrary_numbers.h"
#include "testing/generators/te_order.h"
#include "testing/oracle_question.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace capo::testing {
namespace {

constexpr int kListsPerCase = 10;

CheckResult check_numbers(const NumberCase& numbers) {
  Input input{.form = Form::TeList, .te_list = numbers.list};
  TeReading reading = from_te_list(numbers.list, numbers.declarations());
  input.schedule = std::move(reading.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  return check(input);
}

bool oracle_accepts(const NumberCase& numbers) {
  return oracle::sound(oracle_order(numbers.list), numbers.need_wgrad,
                       oracle_layers(numbers.layers, numbers.list));
}

bool declares_too_little(const NumberCase& numbers) {
  const bool too_few = std::any_of(numbers.layers.values.begin(), numbers.layers.values.end(),
                                   [](std::int64_t count) { return count < 0; });
  if (too_few) return true;
  if (!numbers.need_wgrad) return false;
  double largest = numbers.layers.form == Layers::Form::List
                       ? static_cast<double>(numbers.layers.values.size())
                       : 0;
  for (const TeEntry& entry : numbers.list.entries) {
    if (const auto action = te_action(entry)) largest = std::max<double>(largest, action->chunk);
  }
  return static_cast<double>(numbers.need_wgrad->size()) < largest;
}

bool declares_no_chunk(const NumberCase& numbers) {
  const bool no_layers = numbers.layers.form == Layers::Form::List && numbers.layers.values.empty();
  return numbers.list.entries.empty() &&
         (no_layers || (numbers.need_wgrad && numbers.need_wgrad->empty()));
}

oracle::TeAnswer oracle_te(const NumberCase& numbers, const te::Version& version) {
  return oracle::transformer_engine({.order = oracle_order(numbers.list),
                                     .layers = oracle_layers(numbers.layers, numbers.list),
                                     .need_wgrad = numbers.need_wgrad.value_or(std::vector<bool>{}),
                                     .reuse = numbers.reuse,
                                     .silent_store = numbers.silent_store,
                                     .pops_outputs = version.release != "2.19"});
}

te::Prediction predicted(const NumberCase& numbers, const te::Version& version) {
  const te::Options options{
      .reuse = numbers.reuse,
      .empty_store = numbers.silent_store ? te::EmptyStore::Silent : te::EmptyStore::Raises,
      .version = &version};
  return te::predict(numbers.list, numbers.layers, numbers.need_wgrad.value_or(std::vector<bool>{}),
                     options)
      .value();
}

// Each entry stands where it is counted.
void spread(TeList& list) {
  for (std::size_t at = 0; at < list.entries.size(); ++at) {
    list.entries[at].offset = static_cast<std::uint32_t>(at);
    list.entries[at].length = 1;
  }
}

// The last two entries change places, so that only the end has to be counted again.
std::vector<TeEntry> with_another_end(const TeList& list) {
  std::vector<TeEntry> entries = list.entries;
  if (entries.size() > 1) std::iter_swap(entries.end() - 1, entries.end() - 2);
  return entries;
}

RC_GTEST_PROP(NearMissLists, HaveTheSameVerdictAndFirstRuleByTheMillion, ()) {
  for (int i = 0; i < kListsPerCase; ++i) {
    NumberCase numbers = *arbitrary_numbers();
    spread(numbers.list);
    const CheckResult result = check_numbers(numbers);
    const auto& findings = result.diagnostics.kept();
    const auto error = std::find_if(findings.begin(), findings.end(), [](const auto& finding) {
      return finding.severity == Severity::Error;
    });
    Verdicts verdicts({.list = numbers.declarations()});
    const FirstFinding before = verdicts.of(with_another_end(numbers.list));
    const FirstFinding first = verdicts.of(numbers.list.entries);
    RC_CLASSIFY(before.rule != first.rule);
    RC_ASSERT(first.verdict == result.verdict);
    RC_ASSERT(first.rule == (error == findings.end() ? "" : error->rule));
  }
}

RC_GTEST_PROP(NearMissLists, HaveTheVerdictOfTheOracle, ()) {
  for (int i = 0; i < kListsPerCase; ++i) {
    const NumberCase numbers = *arbitrary_numbers();
    const Verdict verdict = check_numbers(numbers).verdict;
    if (declares_no_chunk(numbers)) continue;
    if (declares_too_little(numbers)) {
      RC_ASSERT(verdict == Verdict::Rejected);
    } else {
      RC_ASSERT((verdict == Verdict::Accepted) == oracle_accepts(numbers));
    }
  }
}

RC_GTEST_PROP(NearMissLists, HaveTheOraclesAnswerOfTransformerEngineAndItsPlace, ()) {
  for (int i = 0; i < kListsPerCase; ++i) {
    const NumberCase numbers = *arbitrary_numbers();
    for (const te::Version& version : te::kVersions) {
      const oracle::TeAnswer answer = oracle_te(numbers, version);
      const te::Prediction prediction = predicted(numbers, version);
      RC_ASSERT(std::string(te::name_of(prediction.kind)) == answer.kind);
      RC_ASSERT(prediction.accepts() == answer.accepts);
      RC_ASSERT((prediction.entry ? static_cast<int>(*prediction.entry) : -1) == answer.position);
    }
  }
}

}  // namespace
}  // namespace capo::testing
