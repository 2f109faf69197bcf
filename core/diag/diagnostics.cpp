#include <capo/core/diag/diagnostics.h>

#include <algorithm>
#include <tuple>

namespace capo {

Diagnostics::Count& Diagnostics::count_of(std::string_view rule) {
  auto count = std::find_if(counts_.begin(), counts_.end(),
                            [rule](const Count& c) { return c.rule == rule; });
  if (count == counts_.end()) count = counts_.insert(count, {.rule = rule});
  return *count;
}

bool Diagnostics::wants(std::string_view rule, Severity severity) {
  (severity == Severity::Error ? errors_ : warnings_) += 1;
  return ++count_of(rule).seen <= limit_;
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
  kept_.push_back(std::move(diagnostic));
}

void Diagnostics::add(Diagnostic diagnostic) {
  if (wants(diagnostic.rule, diagnostic.severity)) keep(std::move(diagnostic));
}

void Diagnostics::sort() {
  const auto place = [](const Diagnostic& d) {
    return std::tuple(d.labels.empty() ? Span{} : d.labels.front().span, d.rule);
  };
  std::stable_sort(kept_.begin(), kept_.end(), [&place](const Diagnostic& a, const Diagnostic& b) {
    return place(a) < place(b);
  });
}

}  // namespace capo
