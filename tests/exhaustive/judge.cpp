#include "tests/exhaustive/judge.h"

#include "core/rules/check.h"

#include <algorithm>
#include <utility>

namespace capo::exhaustive {

namespace {

constexpr std::string_view kDiffers = "check() differs";

Answer answer_of(const FirstFinding& finding) {
  if (finding.verdict == Verdict::NoVerdict) return {.rule = "no verdict"};
  if (!finding.place) return {.rule = finding.rule};
  return {.rule = finding.rule,
          .rank = finding.place->rank,
          .position = static_cast<int>(finding.place->index)};
}

// An entry of a list stands at its index. A place that is no entry's is nowhere.
Answer answer_of(const CheckResult& result, const Input& input) {
  if (result.verdict == Verdict::Accepted) return {};
  const auto& findings = result.diagnostics.kept();
  const auto first = std::find_if(findings.begin(), findings.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  Answer answer{.rule = first->rule};
  if (first->labels.empty()) return answer;
  const Span place = first->labels.front().span;
  if (input.form == Form::TeList) {
    answer.position = static_cast<int>(place.offset);
    return answer;
  }
  for (std::size_t rank = 0; rank < input.schedule.ranks.size(); ++rank) {
    const std::vector<Entry>& order = input.schedule.ranks[rank].order;
    const auto entry = std::find_if(order.begin(), order.end(),
                                    [place](const Entry& each) { return each.span() == place; });
    if (entry == order.end()) continue;
    answer.rank = static_cast<int>(rank);
    answer.position = static_cast<int>(entry - order.begin());
  }
  return answer;
}

}  // namespace

Judge::Judge(Verdicts::Declared declared, const Options& options)
    : declared_(std::move(declared)),
      through_(options.through),
      check_each_(options.check_each),
      verdicts_(declared_) {
}

Answer Judge::of(const std::vector<TeEntry>& list) {
  return of_both(list);
}

Answer Judge::of(const Input& input) {
  return of_both(input);
}

template <typename Order>
Answer Judge::of_both(const Order& order) {
  if (through_ == Through::Check) return checked(order);
  const Answer fast = answer_of(verdicts_.of(order));
  if (!fast.accepted() && rejected_++ % check_each_ != 0) return fast;
  return checked(order) == fast ? fast : Answer{.rule = kDiffers};
}

Answer Judge::checked(const Input& input) const {
  return answer_of(check(input, declared_.options), input);
}

Answer Judge::checked(const std::vector<TeEntry>& list) const {
  Input input{.te_list = {list}};
  for (std::size_t at = 0; at < list.size(); ++at) {
    input.te_list.entries[at].offset = static_cast<std::uint32_t>(at);
    input.te_list.entries[at].length = 1;
  }
  TeReading reading = from_te_list(input.te_list, declared_.list);
  input.schedule = std::move(reading.schedule);
  input.schedule.topology = declared_.topology;
  place_stages(input.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  return checked(input);
}

}  // namespace capo::exhaustive
