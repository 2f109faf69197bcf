// A forward or backward is written as an integer: `1`, not `1.0`.
//
//   [1.0, -1]               equal numbers, but TE indexes lists with them, which a Python float
//   cannot
//
// A fault of type and not of schedule; only a weight gradient is a float. Tested by
// float_chunk_test.cpp and tests/corpus/rules/S03/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/odd_entry.h"

#include <fmt/format.h>

#include <cmath>

namespace capo::rules {

void float_chunk(const Context& context, Diagnostics& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t index) {
    const bool whole = std::isfinite(entry.value) && std::floor(entry.value) == entry.value;
    if (!whole || entry.value == 0 || !out.wants_at("S03", entry.span())) return;
    const std::string integer = fmt::format("{:.0f}", entry.value);
    Help help{.text = "write it as an integer"};
    if (integer.size() < 12) {
      help.text = fmt::format("write `{}`", integer);
      help.edits = {{entry.span(), integer}};
    }
    out.keep(about_entry(context, entry, index, "S03",
                         "is a float; the id of a chunk is an integer", std::move(help)));
  });
}

}  // namespace capo::rules
