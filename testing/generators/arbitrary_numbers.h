// Lists that are nearly orders, with declarations that nearly fit: what TE, the rules and the
// oracle must all agree on.
//
//   [1, 1, -1, -1.25]   layers [1, 1]   need_wgrad [true]   reuse
//
// Distribution: one list in four is drawn entry by entry, 0 to 10 long, each entry a number of
// chunk 1 to 3 (seven in eight) or a near miss; the others are a capturable order (one in four) or
// a sound one, changed in 0 to 3 places: an entry is replaced by a number as above, removed,
// doubled, or swapped with its neighbour. Near misses: 0, -0.0, 1.0, -1.0, 2.0, -1.25, -1.75,
// -1e-3, +-0.5, 1.5, 2.5, NaN, +-infinity, and chunks beyond the order: 5, -5, -5.5, +-1000, 1e9,
// 2^53, -1e300.
//
// Declarations: half of the lists have those of the order they came from; else layers are not
// given, one count, or a list up to one shorter or longer than the chunks, with counts from 1 to 3
// and now and then 0; and need_wgrad is absent, or up to two shorter or longer, each flag wrong
// once in eight.
//
// Shrinking: an entry goes, a near miss becomes 1 or -1, the declarations become one layer per
// chunk and no delay, and the options their defaults.

#pragma once

#include <capo/core/order/from_te_list.h>
#include <capo/core/order/layers.h>
#include <capo/core/order/te_list.h>
#include <capo/testing/generators/dice.h>

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
