// A half is a weight gradient and therefore negative; a forward is a whole number.
//
//   [1, 1.5, -1, -1.5]      1.5 is no entry
//
// Tested by half_forward_test.cpp and tests/corpus/rules/S05/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/odd_entry.h"

#include <fmt/format.h>

#include <cmath>

namespace capo::rules {

void half_forward(const Context& context, Diagnostics& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t index) {
    const bool fractional = std::isfinite(entry.value) && std::floor(entry.value) != entry.value;
    if (!fractional || entry.value < 0 || !out.wants_at("S05", entry.span())) return;
    const double chunk = std::floor(entry.value);
    Help help{.text = "a forward is a whole number"};
    if (entry.value - chunk == 0.5 && chunk >= 1) {
      const std::string weight = fmt::format("-{:.0f}.5", chunk);
      help.text = fmt::format(
          "write `{}` for the weight gradient of chunk {:.0f}, `{:.0f}` for its forward", weight,
          chunk, chunk);
      help.edits = {{entry.span(), weight}};
    }
    out.keep(about_entry(context, entry, index, "S05", "is a fractional forward", std::move(help)));
  });
}

}  // namespace capo::rules
