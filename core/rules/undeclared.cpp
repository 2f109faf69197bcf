#include "core/rules/undeclared.h"

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/rules/context.h"
#include "core/rules/rule.h"
#include "core/rules/stated.h"
#include "core/rules/wiring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {

namespace {

// An environment that was not ruled out, and what is found under it.
struct Case {
  Communicators layout;
  TransferMode mode;
  std::shared_ptr<const CheckResult> result;  // nullptr: not known yet
};

constexpr std::array kLayouts{Communicators::PerRank, Communicators::PerPair,
                              Communicators::PerEdge};
constexpr std::array kModes{TransferMode::Rendezvous, TransferMode::Buffered};

// A thousand findings of a rule are compared even if fewer are wanted.
constexpr std::size_t kCompared = 1000;

std::string_view words_for(Communicators layout) {
  constexpr std::array<std::string_view, 4> kWords{
      "one communicator for each rank", "a communicator for each pair of ranks",
      "one for each direction between two ranks", "one for each direction of the pipeline"};
  return kWords[as_index(layout)];
}
std::string_view words_for(TransferMode mode) {
  constexpr std::array<std::string_view, 2> kWords{"sends that wait for their receives",
                                                   "sends that end by themselves"};
  return kWords[as_index(mode)];
}

// Findings are the same if they say the same at the same place. A circle of waits has its place
// whatever else the environment leaves waiting.
using Key = std::tuple<std::string_view, std::uint32_t, std::string>;

Key key_of(const Diagnostic& finding) {
  return {finding.rule, finding.labels.empty() ? 0 : finding.labels.front().span.offset,
          finding.message};
}

std::vector<Key> keys_of(const CheckResult& result) {
  std::vector<Key> keys;
  for (const Diagnostic& finding : result.diagnostics.kept()) keys.push_back(key_of(finding));
  std::sort(keys.begin(), keys.end());
  return keys;
}

// A finding that was counted and not kept has no words to compare, so its rule is.
bool counts_alike(const CheckResult& a, const CheckResult& b) {
  return std::all_of(catalogue().begin(), catalogue().end(), [&](const Rule& rule) {
    return a.diagnostics.seen(rule.id) == b.diagnostics.seen(rule.id);
  });
}

bool find_the_same(const CheckResult& a, const CheckResult& b) {
  return a.verdict == b.verdict && a.diagnostics.errors() == b.diagnostics.errors() &&
         counts_alike(a, b) && keys_of(a) == keys_of(b);
}

// The cases that a finding appears in, by their positions.
using Appearances = std::map<Key, std::vector<std::size_t>>;

class Widening {
 public:
  Widening(const Context& context, CheckResult& stated)
      : context_(context), stated_(stated), lazily_(context.options().environment.made_lazily()) {
    const Environment& declared = context.options().environment;
    layouts_.assign(kLayouts.begin(), kLayouts.end());
    if (declared.communicators) layouts_ = {*declared.communicators};
    modes_.assign(kModes.begin(), kModes.end());
    if (declared.transfers) modes_ = {*declared.transfers};
  }

  void run() {
    if (depends()) {
      auto last = under(layouts_.back(), modes_.back());
      if (lazily_ || !find_the_same(stated_, *last)) {
        judge_all(std::move(last));
        merge();
      }
    }
    note_verdicts();
  }

 private:
  // Whether another value may change what is found. What finishes in the first environment finishes
  // in all, so that only memory and collectives can be found wrong under the others.
  [[nodiscard]] bool depends() const {
    if (!stated_.transfers_judged || stated_.verdict == Verdict::NoVerdict) return false;
    return stated_.verdict == Verdict::Rejected || stated_.plan.has_value() ||
           !context_.options().groups.empty() || lazily_;
  }

  [[nodiscard]] std::shared_ptr<const CheckResult> under(Communicators layout,
                                                         TransferMode mode) const {
    CheckOptions options = context_.options();
    options.environment.communicators = layout;
    options.environment.transfers = mode;
    options.findings_alone = true;
    const Context context(context_, options);
    return std::make_shared<const CheckResult>(
        findings_stated(context, findings_to_compare(context)));
  }

  // The ends of each row and column come first, since what lies between two that find the same need
  // not be judged.
  void judge_all(std::shared_ptr<const CheckResult> last) {
    for (const Communicators layout : layouts_) {
      for (const TransferMode mode : modes_) cases_.push_back({layout, mode, nullptr});
    }
    // If findings are more than are kept, which are kept has to mean the same in all.
    cases_.front().result = stated_.diagnostics.dropped() == 0
                                ? std::make_shared<const CheckResult>(stated_)
                                : under(layouts_.front(), modes_.front());
    cases_.back().result = std::move(last);
    for (const Communicators layout :
         {layouts_.back(), layouts_.front(), layouts_[layouts_.size() / 2]}) {
      for (const TransferMode mode : {modes_.front(), modes_.back()}) settle(case_of(layout, mode));
    }
  }

  [[nodiscard]] Case& case_of(Communicators layout, TransferMode mode) {
    return *std::find_if(cases_.begin(), cases_.end(),
                         [&](const Case& of) { return of.layout == layout && of.mode == mode; });
  }

  // Whether both modes find the same with a layout: with several communicators a rank learns of
  // others by what it reads alone, if a sweep puts the transfers in (core/plan/hearsay.h), and
  // neither plan says where receives write.
  [[nodiscard]] bool in_either_mode(Communicators layout) const {
    const PlanOptions& plan = context_.options().plan;
    const bool either = plan.kind == PlanKind::Te || plan.kind == PlanKind::Safe;
    const auto& wirings = context_.wirings();
    return layout != Communicators::PerRank && either && !plan.budget &&
           std::all_of(wirings.begin(), wirings.end(),
                       [](const auto& wiring) { return wiring->swept().has_value(); });
  }

  void settle(Case& open) {
    if (open.result) return;
    if (in_either_mode(open.layout)) {
      for (const TransferMode mode : modes_) {
        if (!open.result) open.result = case_of(open.layout, mode).result;
      }
      if (open.result) return;
    }
    const auto orders_less = [](const Case& a, const Case& b) {
      return a.layout <= b.layout && a.mode <= b.mode;
    };
    for (const Case& more : cases_) {
      if (lazily_) break;
      for (const Case& less : cases_) {
        if (!more.result || !less.result || !orders_less(more, open) || !orders_less(open, less)) {
          continue;
        }
        if (!find_the_same(*more.result, *less.result)) continue;
        open.result = more.result;
        return;
      }
    }
    open.result = under(open.layout, open.mode);
  }

  void merge() {
    Appearances appearances;
    for (std::size_t at = 0; at < cases_.size(); ++at) {
      for (const Diagnostic& finding : cases_[at].result->diagnostics.kept()) {
        appearances[key_of(finding)].push_back(at);
      }
    }
    Diagnostics merged(findings_to_compare(context_));
    for (std::size_t at = 0; at < cases_.size(); ++at) {
      for (const Diagnostic& finding : cases_[at].result->diagnostics.kept()) {
        const auto& where = appearances[key_of(finding)];
        if (where.front() == at) merged.add(with_condition(finding, where));
      }
    }
    count_unseen(merged);
    merged.sort();
    stated_.diagnostics = std::move(merged);
    const auto rejected = [](const Case& of) { return of.result->verdict == Verdict::Rejected; };
    if (std::any_of(cases_.begin(), cases_.end(), rejected)) stated_.verdict = Verdict::Rejected;
  }

  // Findings that a case counted and did not keep are counted once, by the case that has most.
  void count_unseen(Diagnostics& merged) const {
    std::map<std::string_view, std::size_t> most;
    for (const Case& of : cases_) {
      const Diagnostics& found = of.result->diagnostics;
      for (const Diagnostic& finding : found.kept()) {
        std::size_t& seen = most[finding.rule];
        seen = std::max(seen, found.seen(finding.rule));
      }
    }
    for (const auto& [rule, seen] : most) {
      if (seen > merged.seen(rule)) merged.count_unseen(rule, seen - merged.seen(rule));
    }
  }

  // A deadlock says by itself under which other values there is none.
  [[nodiscard]] Diagnostic with_condition(Diagnostic finding,
                                          const std::vector<std::size_t>& where) const {
    const bool says_so = finding.witness.kind == WitnessKind::WaitCycle && !lazily_;
    if (where.size() == cases_.size() || says_so) return finding;
    finding.notes.push_back({.text = condition(where), .span = std::nullopt});
    return finding;
  }

  [[nodiscard]] std::string condition(const std::vector<std::size_t>& where) const {
    std::vector<std::string> appears;
    const auto add = [&](const auto& values, auto has, std::string_view flag) {
      std::vector<std::string_view> words;
      for (const auto value : values) {
        const bool there = std::any_of(where.begin(), where.end(),
                                       [&](std::size_t at) { return has(cases_[at], value); });
        if (there) words.push_back(words_for(value));
      }
      if (words.size() == values.size()) return;
      appears.push_back(
          fmt::format("with {} ({} was not declared)", fmt::join(words, ", or "), flag));
    };
    add(
        layouts_, [](const Case& of, Communicators value) { return of.layout == value; }, "--comm");
    add(
        modes_, [](const Case& of, TransferMode value) { return of.mode == value; }, "--transfers");
    if (appears.empty()) return "it appears under some of the values of --comm and --transfers";
    return fmt::format("it appears {}", fmt::join(appears, ", and "));
  }

  void note_verdicts() {
    if (layouts_.size() > 1) {
      Undeclared& key = stated_.undeclared.emplace_back(Undeclared{.key = "communicators"});
      for (const Communicators layout : layouts_) {
        key.values.push_back(
            {name_of(layout), worst([&](const Case& of) { return of.layout == layout; })});
      }
    }
    if (modes_.size() > 1) {
      Undeclared& key = stated_.undeclared.emplace_back(Undeclared{.key = "transfers"});
      for (const TransferMode mode : modes_) {
        key.values.push_back(
            {name_of(mode), worst([&](const Case& of) { return of.mode == mode; })});
      }
    }
  }

  template <typename Has>
  [[nodiscard]] Verdict worst(Has has) const {
    if (cases_.empty()) return stated_.verdict;  // all are like the one that is stated
    const bool rejected = std::any_of(cases_.begin(), cases_.end(), [&](const Case& of) {
      return has(of) && of.result->verdict == Verdict::Rejected;
    });
    return rejected ? Verdict::Rejected : Verdict::Accepted;
  }

  const Context& context_;
  CheckResult& stated_;
  // Lazily made communicators are not ordered so: groups of ranks can make those between wait.
  bool lazily_;
  std::vector<Communicators> layouts_;
  std::vector<TransferMode> modes_;
  std::vector<Case> cases_;  // empty if all find what the first does
};

bool has_weight_gradients(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return entry.kind == Kind::BackwardWeight; });
  });
}

// Whether a stream of weight gradients could change the verdict, and nobody says that there is
// none. Megatron runs them on the stream of its computations, and no two uses under plan safe share
// memory while both last.
bool rests_on_one_stream(const Context& context, const CheckResult& result) {
  const Environment& declared = context.options().environment;
  return result.verdict == Verdict::Accepted && !declared.weight_stream &&
         !declared.assume_defaults && !result.environment.p2p &&
         context.options().plan.kind == PlanKind::Te && has_weight_gradients(context.schedule());
}

Diagnostic as_warning(Diagnostic finding, std::size_t errors) {
  finding.severity = Severity::Warning;
  finding.message =
      fmt::format("if weight gradients run on a stream of their own, {}", finding.message);
  finding.notes.push_back(
      {.text =
           fmt::format("the stream of weight gradients is not declared; the verdict takes that of "
                       "the other computations, and would be `rejected` with {} otherwise",
                       counted(static_cast<std::int64_t>(errors), "error")),
       .span = std::nullopt});
  finding.help = {.text =
                      "say --no-weight-stream if weight gradients run on the stream of the others, "
                      "or --weight-stream if they have one of their own",
                  .edits = {}};
  return finding;
}

}  // namespace

bool has_undeclared(const Schedule& schedule, const Environment& declared) {
  return ranks_communicate(schedule) && !declared.assume_defaults &&
         !(declared.communicators && declared.transfers);
}

std::size_t findings_to_compare(const Context& context) {
  return std::max(context.options().findings_per_rule, kCompared);
}

void judge_undeclared(const Context& context, CheckResult& result) {
  Widening(context, result).run();
}

// The environment that orders least has all races of the others.
void warn_of_weight_stream(const Context& context, CheckResult& result) {
  if (!rests_on_one_stream(context, result)) return;
  CheckOptions options = context.options();
  Environment& environment = options.environment;
  environment.weight_stream = true;
  environment.communicators = environment.communicators.value_or(kLayouts.back());
  environment.transfers = environment.transfers.value_or(kModes.back());
  const CheckResult apart = findings_stated(Context(context, options), 1);
  const auto& kept = apart.diagnostics.kept();
  const auto first = std::find_if(kept.begin(), kept.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  if (first == kept.end()) return;
  result.diagnostics.add(as_warning(*first, apart.diagnostics.errors()));
  result.diagnostics.sort();
}

}  // namespace capo
