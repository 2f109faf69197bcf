#include "core/diag/diagnostics.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace capo {

Diagnostics Diagnostics::first_error_only() {
  Diagnostics diagnostics;
  diagnostics.only_first_ = true;
  return diagnostics;
}

Diagnostics::Count& Diagnostics::count_of(std::string_view rule) {
  auto count = std::find_if(counts_.begin(), counts_.end(),
                            [rule](const Count& c) { return c.rule == rule; });
  if (count == counts_.end()) count = counts_.insert(count, {.rule = rule});
  return *count;
}

bool Diagnostics::wants(std::string_view rule, Severity severity) {
  (severity == Severity::Error ? errors_ : warnings_) += 1;
  if (only_first_ && severity == Severity::Warning) return false;
  return ++count_of(rule).seen <= limit_;
}

// Says whether `a` stands before `b` after sort().
void Diagnostics::note(std::string_view rule, std::optional<Span> place) {
  const auto key = [](std::string_view of, const std::optional<Span>& at) {
    return std::tuple(at.value_or(Span{}), of);
  };
  if (!first_ || key(rule, place) < key(first_->rule, first_->place)) first_ = {rule, place};
}

bool Diagnostics::full(std::string_view rule) const {
  return std::any_of(counts_.begin(), counts_.end(), [&](const Count& count) {
    return count.rule == rule && count.seen >= limit_;
  });
}

void Diagnostics::count_unseen(std::string_view rule, std::size_t number) {
  errors_ += number;
  count_of(rule).seen += number;
}

void Diagnostics::keep(Diagnostic diagnostic) {
  if (!only_first_) return kept_.push_back(std::move(diagnostic));
  if (diagnostic.severity == Severity::Warning) return;
  std::optional<Span> place;
  if (!diagnostic.labels.empty()) place = diagnostic.labels.front().span;
  note(diagnostic.rule, place);
}

void Diagnostics::add(Diagnostic diagnostic) {
  if (wants(diagnostic.rule, diagnostic.severity)) keep(std::move(diagnostic));
}

void Diagnostics::replace_by(Diagnostic finding) {
  clear();
  add(std::move(finding));
}

void Diagnostics::put_first(Diagnostic finding) {
  if (!wants(finding.rule, finding.severity)) {
    const auto last = std::find_if(kept_.rbegin(), kept_.rend(), [&](const Diagnostic& kept) {
      return kept.rule == finding.rule;
    });
    if (last == kept_.rend()) return;
    kept_.erase(std::next(last).base());
  }
  kept_.insert(kept_.begin(), std::move(finding));
}

void Diagnostics::narrow(std::size_t limit_per_rule) {
  limit_ = limit_per_rule;
  std::map<std::string_view, std::size_t> kept;
  std::erase_if(kept_, [&](const Diagnostic& of) { return ++kept[of.rule] > limit_per_rule; });
}

std::size_t Diagnostics::seen(std::string_view rule) const {
  const auto count = std::find_if(counts_.begin(), counts_.end(),
                                  [rule](const Count& of) { return of.rule == rule; });
  return count == counts_.end() ? 0 : count->seen;
}

void Diagnostics::sort() {
  const auto place = [](const Diagnostic& d) {
    return std::tuple(d.labels.empty() ? Span{} : d.labels.front().span, d.rule);
  };
  std::stable_sort(kept_.begin(), kept_.end(), [&place](const Diagnostic& a, const Diagnostic& b) {
    return place(a) < place(b);
  });
}

void Diagnostics::clear() {
  errors_ = 0;
  warnings_ = 0;
  counts_.clear();
  kept_.clear();
  first_.reset();
}

const Diagnostic* Diagnostics::foremost() const {
  const auto error = std::find_if(kept_.begin(), kept_.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error;
  });
  if (error != kept_.end()) return &*error;
  return kept_.empty() ? nullptr : &kept_.front();
}

}  // namespace capo
