#include "core/minimise/minimise.h"

#include "core/input/load.h"
#include "core/minimise/search.h"
#include "core/minimise/settle.h"
#include "core/rules/check.h"
#include "core/text/order_printer.h"

#include <algorithm>
#include <utility>

namespace capo {

namespace {

bool breaks(const CheckResult& result, std::string_view rule, Severity at_least) {
  const auto& kept = result.diagnostics.kept();
  return std::any_of(kept.begin(), kept.end(), [&](const Diagnostic& finding) {
    return finding.rule == rule &&
           (finding.severity == Severity::Error || at_least == Severity::Warning);
  });
}

// The candidate goes through its text: what is checked is what the user will paste.
bool breaks(const Schedule& schedule, const Limits& limits, const CheckOptions& declared,
            std::string_view rule, Severity at_least) {
  const auto input = load({.name = "minimal.order", .text = print_order_file(schedule)},
                          {.form = TextForm::OrderFile, .limits = limits});
  return input && breaks(check(*input, declared), rule, at_least);
}

std::size_t numbered_ranks(const CheckOptions& declared) {
  std::size_t ranks = declared.modules.layers.size();
  if (ranks == 1) ranks = 0;  // one row speaks for every rank
  for (const CollectiveGroup& group : declared.groups) {
    for (const std::int32_t member : group.members)
      ranks = std::max(ranks, static_cast<std::size_t>(member) + 1);
  }
  return ranks;
}

bool numbers_chunks(const CheckOptions& declared) {
  const auto& rows = declared.modules.layers;
  return !declared.plan.model_chunks.empty() ||
         std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.size() > 1; });
}

}  // namespace

std::optional<Minimised> minimise(const Schedule& schedule, const StillBroken& broken,
                                  const MinimiseOptions& options) {
  Schedule start = schedule;
  settle(start);
  if (start.ranks.empty() || !broken(start)) return std::nullopt;
  Search search(std::move(start), broken, options);
  search.run();
  return std::move(search).result();
}

std::optional<Minimised> minimise(const Input& input, std::string_view rule,
                                  const CheckOptions& declared, MinimiseOptions options) {
  const CheckResult found = check(input, declared);
  if (!breaks(found, rule, Severity::Warning)) return std::nullopt;
  const Severity at_least =
      breaks(found, rule, Severity::Error) ? Severity::Error : Severity::Warning;
  options.fixed_ranks = std::max(options.fixed_ranks, numbered_ranks(declared));
  options.fixed_chunks = options.fixed_chunks || numbers_chunks(declared);
  const auto broken = [&](const Schedule& candidate) {
    return breaks(candidate, options.limits, declared, rule, at_least);
  };
  return minimise(input.schedule, broken, options);
}

}  // namespace capo
