#include "core/cures/cures.h"

#include "core/base/index.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/rules/check.h"
#include "core/rules/words.h"
#include "core/text/action_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {

namespace {

// Findings are counted by rule, since an edit moves the positions that messages name.
struct CountsByRule {
  std::map<std::string_view, std::size_t> errors;
  std::map<std::string_view, std::size_t> warnings;
};

// A finding that was counted and not kept has the severity of an error if its rule has one that was
// kept.
CountsByRule by_rule(const Diagnostics& findings) {
  CountsByRule counts;
  for (const Diagnostic& finding : findings.kept()) {
    ++(finding.severity == Severity::Error ? counts.errors : counts.warnings)[finding.rule];
  }
  for (auto& [rule, errors] : counts.errors) {
    const auto of = counts.warnings.find(rule);
    errors = findings.seen(rule) - (of == counts.warnings.end() ? 0 : of->second);
  }
  for (auto& [rule, warnings] : counts.warnings) {
    if (!counts.errors.contains(rule)) warnings = findings.seen(rule);
  }
  return counts;
}

// Whether an edit has cured a finding, and no rule has more errors than before.
bool is_cured(const CountsByRule& before, const CountsByRule& after, const Diagnostic& finding) {
  const auto in = [](const auto& counts, std::string_view rule) {
    const auto of = counts.find(rule);
    return of == counts.end() ? 0 : of->second;
  };
  const auto of_severity = [&](const CountsByRule& counts) {
    return in(finding.severity == Severity::Error ? counts.errors : counts.warnings, finding.rule);
  };
  return of_severity(after) < of_severity(before) &&
         std::all_of(after.errors.begin(), after.errors.end(),
                     [&](const auto& of) { return of.second <= in(before.errors, of.first); });
}

std::uint64_t entries_of(const Input& input) {
  std::uint64_t entries = 1;
  for (const RankOrder& rank : input.schedule.ranks) entries += rank.order.size();
  return entries;
}

// How often each kind of each chunk occurs in a list, against the count that the others have.
struct Imbalance {
  Action surplus;  // its microbatch means nothing
  Action lacking;
};

using Counts = std::map<std::pair<std::int32_t, Kind>, std::int32_t>;

Counts counts_of(const RankOrder& rank) {
  Counts counts;
  for (const Entry& entry : rank.order) {
    if (is_compute(entry.kind)) ++counts[{entry.chunk, entry.kind}];
  }
  return counts;
}

// The kind that occurs once more than `each` and the one that occurs once less; nullopt unless all
// others occur so often.
std::optional<Imbalance> imbalance_around(std::int32_t each, const Counts& counts) {
  std::vector<Action> surplus;
  std::vector<Action> lacking;
  for (const auto& [of, count] : counts) {
    const Action action{.kind = of.second, .chunk = of.first};
    if (count == each + 1) surplus.push_back(action);
    if (count == each - 1) lacking.push_back(action);
    if (count > each + 1 || count < each - 1) return std::nullopt;
  }
  if (surplus.size() != 1 || lacking.size() != 1) return std::nullopt;
  return Imbalance{.surplus = surplus.front(), .lacking = lacking.front()};
}

// An undeclared number of microbatches is a count that occurs. Only one can lie in the middle.
std::optional<Imbalance> imbalance_of(const Input& input) {
  const Counts counts = counts_of(input.schedule.ranks.front());
  if (input.schedule.microbatches) {
    return imbalance_around(*input.schedule.microbatches, counts);
  }
  for (const auto& [of, count] : counts) {
    if (auto found = imbalance_around(count, counts)) return found;
  }
  return std::nullopt;
}

// The entries that may be the slip, those nearest before `place` first.
std::vector<std::size_t> suspects(const RankOrder& rank, const Action& surplus,
                                  std::uint32_t place) {
  std::vector<std::size_t> before;
  std::vector<std::size_t> behind;
  for (std::size_t at = 0; at < rank.order.size(); ++at) {
    const Entry& entry = rank.order[at];
    if (entry.kind != surplus.kind || entry.chunk != surplus.chunk) continue;
    (entry.offset <= place ? before : behind).push_back(at);
  }
  std::reverse(before.begin(), before.end());
  before.insert(before.end(), behind.begin(), behind.end());
  return before;
}

bool alike(const Entry& entry, const Action& action) {
  return entry.kind == action.kind && entry.chunk == action.chunk;
}

// Whether an entry that was meant at `at` has neighbours there that it has elsewhere too.
//
//   ... -8 -8.5 6 ... -8 [-8.5] 6 ...     it follows `-8` and precedes `6` elsewhere
bool stands_as_elsewhere(const RankOrder& rank, std::size_t at, const Action& meant) {
  const auto& order = rank.order;
  bool follows = at == 0;
  bool precedes = at + 1 == order.size();
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == at || !alike(order[i], meant)) continue;
    follows |= at > 0 && i > 0 && alike(order[i - 1], order[at - 1].action());
    precedes |= at + 1 < order.size() && i + 1 < order.size() &&
                alike(order[i + 1], order[at + 1].action());
  }
  return follows && precedes;
}

// The entry that is the slip, of those with which the order would be accepted: the only one, or the
// only one that stands as elsewhere.
std::optional<std::size_t> the_slip(const std::vector<std::size_t>& curing, const RankOrder& rank,
                                    const Action& meant) {
  if (curing.size() == 1) return curing.front();
  std::optional<std::size_t> found;
  for (const std::size_t at : curing) {
    if (!stands_as_elsewhere(rank, at, meant)) continue;
    if (found) return std::nullopt;  // either may be meant
    found = at;
  }
  return found;
}

Slip slip_at(const CheckResult& result, const Diagnostic& first, const Input& input,
             std::size_t position, const std::string& meant, std::string text) {
  const Entry& entry = input.schedule.ranks.front().order[position];
  const std::string_view written = input.source.slice(entry.span());
  Diagnostic finding{
      .rule = first.rule,
      .family = first.family,
      .message = fmt::format("`{}` at index {} is probably `{}`", written, position, meant),
      .labels = {{entry.span(), fmt::format("with `{}` here the order is accepted", meant)}},
      .notes = {},
      .help = {.text = fmt::format("write `{}`", meant),
               .edits = {{.span = entry.span(), .replacement = meant}}},
      .witness = {.tasks = {{.index = position,
                             .text = std::string(written),
                             .action = action_name(entry.action())}}}};
  const std::size_t errors = result.diagnostics.errors();
  finding.notes.push_back(
      {.text = fmt::format("as it stands, {}{}", first.message,
                           errors == 1 ? "" : fmt::format(", and so on: {} errors", errors)),
       .span = std::nullopt});
  return {.finding = std::move(finding), .text = std::move(text), .position = position};
}

}  // namespace

void keep_cures_that_work(CheckResult& result, const Input& input, const JudgeText& judge,
                          const CureOptions& options) {
  const std::uint64_t each = entries_of(input);
  const CountsByRule before = by_rule(result.diagnostics);
  std::uint64_t judged = 0;
  for (const Severity severity : {Severity::Error, Severity::Warning}) {
    result.diagnostics.revise([&](Diagnostic& finding) {
      if (finding.severity != severity || finding.help.edits.empty()) return;
      judged += each;
      const auto after = judged > options.budget
                             ? std::nullopt
                             : judge(edited(input.source.text, finding.help.edits));
      if (!after || !is_cured(before, by_rule(after->diagnostics), finding)) finding.help = {};
    });
  }
}

std::optional<Slip> find_slip(const CheckResult& result, const Input& input, const JudgeText& judge,
                              const CureOptions& options) {
  const bool list =
      input.form == Form::TeList && input.schedule.ranks.size() == 1 && input.odd_entries.empty();
  if (!list || result.verdict != Verdict::Rejected) return std::nullopt;
  const Diagnostic* first = result.diagnostics.foremost();
  const auto imbalance = imbalance_of(input);
  if (first == nullptr || first->labels.empty() || !imbalance) return std::nullopt;
  const RankOrder& rank = input.schedule.ranks.front();
  const std::string meant = te_token(imbalance->lacking);
  const auto written = [&](std::size_t at) {
    return edited(input.source.text, {{.span = rank.order[at].span(), .replacement = meant}});
  };
  std::uint64_t judged = 0;
  std::vector<std::size_t> curing;
  for (const std::size_t at :
       suspects(rank, imbalance->surplus, first->labels.front().span.offset)) {
    judged += entries_of(input);
    if (judged > options.budget) return std::nullopt;
    const auto after = judge(written(at));
    if (after && after->verdict == Verdict::Accepted) curing.push_back(at);
  }
  const auto at = the_slip(curing, rank, imbalance->lacking);
  if (!at) return std::nullopt;
  Slip slip = slip_at(result, *first, input, *at, meant, written(*at));
  slip.meant = imbalance->lacking;
  if (curing.size() > 1) {
    slip.finding.notes.insert(
        slip.finding.notes.begin(),
        {.text = fmt::format("elsewhere too it would be accepted with `{}`, but only here that "
                             "stands between entries as in the rest of the list",
                             meant),
         .span = std::nullopt});
  }
  return slip;
}

void replace_by_slip(CheckResult& result, Diagnostic slip) {
  const std::size_t errors = result.diagnostics.errors();
  slip.notes.back().text += fmt::format("; `--all` shows {}", errors == 1 ? "it" : "them");
  result.diagnostics.replace_by(std::move(slip));
}

}  // namespace capo
