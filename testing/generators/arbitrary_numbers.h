// Lists that are nearly orders, with declarations that nearly fit: what TE, the rules and the
// oracle must all agree on.
//
//   [1, 1, -1, -1.25]   layers [1, 1]   need_wgrad [true]   reuse
//
// Distribution: one list in four is drawn entry by entry, 0 to 10 long, each entry F, B or W of
// chunk 1 to 3 (seven in eight) or a near miss; the others are a capturable order (one in four) or
// a sound one, changed 0 to 3 times: an entry is replaced by one drawn as above, removed, doubled,
// or swapped with the next, and where none is left one is drawn. Near misses: 0, -0.0, 1.0, -1.0,
// 2.0, -1.25, -1.75, -1e-3, +-0.5, 1.5, 2.5, NaN, +-infinity, and chunks beyond the order: 5, -5,
// -5.5, +-1000, 1e9, and 2^53 and -1e300 as integer and as float. Whatever has several values here
// has each equally often.
//
// Declarations: half of the lists have those of the order they came from, or that was drawn beside
// them; of the others one in four has None for its layers, one in four one count, and the rest a
// list, as long as the chunks are many or one shorter or longer, half of them all ones. Counts are
// 1 to 3, and once in 16 times 0. One in three of these has no need_wgrad; of the others half have
// one of up to two flags less or more, and each flag is wrong once in eight. TE reuses buffers for
// one list in two, and has a silent store for one in four.
//
// Shrinking: an entry goes, a near miss becomes 1 or -1, the declarations become one layer per
// chunk and no delay, and the options their defaults.

#pragma once

#include "core/frameworks/te/from_te_list.h"
#include "core/order/layers.h"
#include "core/order/te_list.h"
#include "testing/generators/dice.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace capo::testing {

struct NumberCase {
  TeList list;
  Layers layers;  ///< never Unstated: TE is always told something
  std::optional<std::vector<bool>> need_wgrad;
  bool reuse = false;         ///< TE shares static buffers between graphs
  bool silent_store = false;  ///< an empty WeightGradStore returns instead of raising

  [[nodiscard]] std::string text() const;
  [[nodiscard]] TeDeclarations declarations() const;
};

[[nodiscard]] NumberCase draw_arbitrary_numbers(Dice& dice);
[[nodiscard]] rc::Gen<NumberCase> arbitrary_numbers();

void showValue(const NumberCase& numbers, std::ostream& out);

}  // namespace capo::testing
