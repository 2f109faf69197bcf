#include "tests/exhaustive/judge.h"

#include "core/rules/check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
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

// The orders in which an entry is looked for.
enum class Among : std::uint8_t { Captured, All };

// Finds the entry at this place; kNowhere if there is none.
int position_of(const RankOrder& rank, Span place, Among among) {
  std::vector<const std::vector<Entry>*> orders{&rank.order};
  if (among == Among::All) orders.push_back(&rank.replayed());
  for (const std::vector<Entry>* order : orders) {
    const auto entry = std::find_if(order->begin(), order->end(),
                                    [place](const Entry& each) { return each.span() == place; });
    if (entry != order->end()) return static_cast<int>(entry - order->begin());
  }
  return Answer::kNowhere;
}

// An entry of a list stands at its index. A place that is no entry's is nowhere.
Answer answer_of(const CheckResult& result, const Input& input, Among among) {
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
    const int position = position_of(input.schedule.ranks[rank], place, among);
    if (position == Answer::kNowhere) continue;
    answer.rank = static_cast<int>(rank);
    answer.position = position;
  }
  return answer;
}

Input input_of(const std::vector<TeEntry>& list, const Verdicts::Declared& declared) {
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
  return input;
}

}  // namespace

Judge::Judge(Verdicts::Declared declared, const Options& options)
    : declared_(std::move(declared)),
      through_(options.through),
      check_each_(options.check_each),
      verdicts_(declared_) {
}

Answer Judge::of(const std::vector<TeEntry>& list) {
  const std::optional<Answer> fast = asked_fast(list);
  return fast && suffices(*fast) ? *fast : compared(input_of(list, declared_), fast);
}

Answer Judge::of(const Input& input) {
  const std::optional<Answer> fast = asked_fast(input);
  const auto& ranks = input.schedule.ranks;
  const bool replays = std::any_of(ranks.begin(), ranks.end(),
                                   [](const RankOrder& rank) { return rank.replay.has_value(); });
  return fast && !replays && suffices(*fast) ? *fast : compared(input, fast);
}

template <typename Order>
std::optional<Answer> Judge::asked_fast(const Order& order) {
  if (through_ == Through::Check) return std::nullopt;
  return answer_of(verdicts_.of(order));
}

bool Judge::suffices(const Answer& fast) {
  return !fast.accepted() && rejected_++ % check_each_ != 0;
}

// Verdicts name no place in an order of replay.
Answer Judge::compared(const Input& input, const std::optional<Answer>& fast) const {
  const CheckResult result = check(input, declared_.options);
  if (fast && *fast != answer_of(result, input, Among::Captured)) return {.rule = kDiffers};
  return answer_of(result, input, Among::All);
}

}  // namespace capo::exhaustive
