// How rules speak: every message names entries as the user wrote them and says where they stand.
//
// Positions are indices from 0, as in the user's Python list. Tested through the rules' golden
// texts.

#pragma once

#include "core/rules/context.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace capo::words {

/// "`-1.5`": the entry as written, or as it would be, in backquotes.
[[nodiscard]] std::string quoted(const Context& context, const Entry& entry);

/// "`-1.5` at index 4", in an order of several ranks "`B1.0` at index 4 of rank 2"; of an entry
/// that the text does not have "`reduce1` behind `W1.0` at index 4".
[[nodiscard]] std::string placed(const Context& context, const OrderView& order, std::size_t at);

/// " of rank 2"; empty if there is only one rank.
[[nodiscard]] std::string of_rank(const Context& context, const OrderView& order);

/// " of rank 2", " of rank 2's replay order"; empty if there is only one order.
[[nodiscard]] std::string of_order(const Context& context, const OrderView& order);

/// The index a user would count: cells of a table, not members of a composite, nor what the text
/// does not have.
[[nodiscard]] std::size_t index_of(const OrderView& order, std::size_t at);

/// Whether two entries are members of one composite.
[[nodiscard]] bool run_together(const OrderView& order, std::size_t a, std::size_t b);

/// The place of another entry: "at index 5", or "in the same composite".
[[nodiscard]] std::string later(const OrderView& order, std::size_t from, std::size_t at);

/// "chunk 2", or "stage 5" where the user's table speaks of stages.
[[nodiscard]] std::string part(const Context& context, const OrderView& order, std::int32_t chunk);

/// The action as an entry of the user's own form: "-1.5", "W1.0", "0W0".
[[nodiscard]] std::string entry_text(const Context& context, const OrderView& order,
                                     const Action& action);

[[nodiscard]] WitnessEntry reference(const Context& context, const OrderView& order,
                                     std::size_t at);

/// A witness of entries at the given positions.
[[nodiscard]] Witness entries(const Context& context, const OrderView& order,
                              std::initializer_list<std::size_t> positions);

/// The edit that puts `text` in the place of the entry at `at`.
[[nodiscard]] Edit replace(const Context& context, const OrderView& order, std::size_t at,
                           const std::string& text);

/// The edit that puts `action` behind the entry at `at`; empty if the form has no place for one.
[[nodiscard]] std::vector<Edit> insert_after(const Context& context, const OrderView& order,
                                             std::size_t at, const Action& action);

/// " on rank 2", " in rank 2's replay order"; empty if there is only one order.
[[nodiscard]] std::string on_order(const Context& context, const OrderView& order);

}  // namespace capo::words
