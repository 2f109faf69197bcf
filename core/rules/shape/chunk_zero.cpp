// Chunks are counted from 1: `0` names none, and neither does `-0.5`.
//
//   [1, 0]                  TE reads 0 as a backward of Python index -1, the last chunk
//
// Tested by chunk_zero_test.cpp and tests/corpus/rules/S04/.

#include "core/diag/diagnostics.h"
#include "core/rules/checks.h"
#include "core/rules/context.h"
#include "core/rules/odd_entry.h"

namespace capo::rules {

void chunk_zero(const Context& context, Diagnostics& out) {
  for_each_odd_entry(context, [&](const TeEntry& entry, std::uint32_t index) {
    if (!(entry.value > -1 && entry.value <= 0) || !out.wants_at("S04", entry.span())) return;
    const char* what = entry.value == 0 ? "is no chunk; chunks are counted from 1"
                       : entry.value == -0.5
                           ? "is a weight gradient of chunk 0; chunks are counted from 1"
                           : "names no chunk";
    out.keep(about_entry(
        context, entry, index, "S04", what,
        {.text = entry.value == 0
                     ? "write `i` for a forward and `-i` for a backward of chunk i"
                     : "write `-i.5` for the weight gradient of chunk i: `-1.5` for chunk 1"}));
  });
}

}  // namespace capo::rules
