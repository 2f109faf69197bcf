// An entry of a TE list is a finite number.
//
//   [1, nan, -1]            TE computes ceil() of every entry, which fails on NaN and on infinity
//
// Tested by not_finite_test.cpp and tests/corpus/rules/S01/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/odd_entry.h"

#include <cmath>

namespace capo::rules {

void not_finite(const Context& context, Diagnostics& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t index) {
    if (std::isfinite(entry.value) || !out.wants_at("S01", entry.span())) return;
    const char* what = std::isnan(entry.value) ? "is not a number" : "is infinite";
    out.keep(about_entry(context, entry, index, "S01", what,
                         {.text = "write the chunk that runs here; is a value missing where the "
                                  "list was made?"}));
  });
}

}  // namespace capo::rules
