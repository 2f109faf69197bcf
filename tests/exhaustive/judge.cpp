#include <capo/tests/exhaustive/judge.h>

#include <capo/core/rules/check.h>

#include <algorithm>
#include <utility>

namespace capo::exhaustive {

namespace {

constexpr std::string_view kDiffers = "check() differs";
constexpr std::uint64_t kEach = 997;

Answer answer_of(const FirstFinding& finding) {
  if (finding.verdict == Verdict::NoVerdict) return {.rule = "no verdict"};
  if (!finding.place) return {.rule = finding.rule};
  return {.rule = finding.rule,
          .rank = finding.place->rank,
          .position = static_cast<int>(finding.place->index)};
}

// Entries stand at their indices, those of the next rank behind those of the one before.
Answer answer_of(const CheckResult& result, const Input& input) {
  if (result.verdict == Verdict::Accepted) return {};
  const auto& findings = result.diagnostics.kept();
  const auto first = std::find_if(findings.begin(), findings.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  Answer answer{.rule = first->rule};
  if (first->labels.empty()) return answer;
  answer.position = static_cast<int>(first->labels.front().span.offset);
  for (const RankOrder& rank : input.schedule.ranks) {
    const auto length = static_cast<int>(rank.order.size());
    if (answer.position < length || input.form == Form::TeList) break;
    answer.position -= length;
    ++answer.rank;
  }
  return answer;
}

}  // namespace

Judge::Judge(Verdicts::Declared declared, Through through)
    : declared_(std::move(declared)), through_(through), verdicts_(declared_) {
}

Answer Judge::of(const std::vector<TeEntry>& list) {
  if (through_ == Through::Check) return checked(list);
  const Answer fast = answer_of(verdicts_.of(list));
  return wants_both(fast) && checked(list) != fast ? Answer{.rule = kDiffers} : fast;
}

Answer Judge::of(const Input& input) {
  if (through_ == Through::Check) return checked(input);
  const Answer fast = answer_of(verdicts_.of(input));
  return wants_both(fast) && checked(input) != fast ? Answer{.rule = kDiffers} : fast;
}

Answer Judge::of_both(const std::vector<TeEntry>& list) {
  const Answer slow = checked(list);
  if (through_ == Through::Check) return slow;
  ++asked_both_;
  return answer_of(verdicts_.of(list)) == slow ? slow : Answer{.rule = kDiffers};
}

bool Judge::wants_both(const Answer& fast) {
  const bool wants = fast.accepted() || ++rejected_ % kEach == 0;
  asked_both_ += wants ? 1 : 0;
  return wants;
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
