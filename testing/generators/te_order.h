// A TE list together with what was declared about it. The generators of sound orders make it, and
// the faults of lists break it.
//
// A TeOrder that a generator made declares everything (microbatches, layers, who delays), so that a
// fault in its list has one right diagnosis. Its entries have no bytes; text() gives them some.
// Tested by te_order_test.cpp.

#pragma once

#include "core/frameworks/te/from_te_list.h"
#include "core/order/layers.h"
#include "core/order/schedule.h"
#include "core/order/te_list.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace capo::testing {

struct TeOrder {
  TeList list;
  std::int32_t microbatches = 0;
  Layers layers;             ///< one number per chunk
  std::vector<bool> delays;  ///< whether each chunk's weight gradients are entries of their own

  [[nodiscard]] std::int32_t chunks() const { return static_cast<std::int32_t>(delays.size()); }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] TeDeclarations declarations() const;
};

/// The entry for an action of a chunk: F, B or W.
[[nodiscard]] TeEntry te_entry(Kind kind, std::int32_t chunk);
/// The action an entry stands for, without its microbatch; nullopt if it stands for none.
[[nodiscard]] std::optional<Action> te_action(const TeEntry& entry);

/// The places of a chunk's entries of one kind: the k-th is microbatch k's.
[[nodiscard]] std::vector<std::size_t> places(const TeList& list, Kind kind, std::int32_t chunk);

/// Orders that are sound if this one is, and simpler: without one microbatch, without one chunk,
/// with a chunk that no longer delays, with one layer a chunk, and with two neighbours swapped that
/// are not in the order (microbatch, kind, chunk). None of this makes a capturable order
/// uncapturable.
[[nodiscard]] std::vector<TeOrder> simpler(const TeOrder& order);

/// Prints .order lines to paste for rapidcheck, or JSON if an entry is no action or .order text has
/// no notation for a declaration.
void showValue(const TeOrder& order, std::ostream& out);

}  // namespace capo::testing
