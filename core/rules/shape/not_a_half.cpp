// A fractional entry is a weight gradient, and its fraction is exactly one half.
//
//   [1, -1, -1.25]          -1.5 is meant: the weight gradient of chunk 1
//
// TE finds this during capture only, after all warm-up passes. Positive fractions are
// half_forward's. Tested by not_a_half_test.cpp and tests/corpus/rules/S02/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/odd_entry.h"

#include <fmt/format.h>

#include <cmath>

namespace capo::rules {

void not_a_half(const Context& context, Diagnostics& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t index) {
    const double fraction = std::ceil(entry.value) - entry.value;
    const bool fault =
        std::isfinite(entry.value) && entry.value < -1 && fraction != 0;  // a half is not odd
    if (!fault || !out.wants_at("S02", entry.span())) return;
    const std::string half = fmt::format("{:.0f}.5", std::ceil(entry.value));
    out.keep(about_entry(context, entry, index, "S02", "has a fraction other than one half",
                         {.text = fmt::format("write `{}` for the weight gradient of chunk {:.0f}",
                                              half, -std::ceil(entry.value)),
                          .edits = {{entry.span(), half}}}));
  });
}

}  // namespace capo::rules
