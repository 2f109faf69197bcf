// The families of rules: each has a file of this folder, which ends with the table of its rules.
//
//   entries.cpp    ...    Rule{"S04", "chunk-zero", "chunks are counted from 1", Family::Shape,
//                              Pass::Entries, chunk_zero}
//
// catalogue.cpp puts the tables one behind the other. Tested by tests/cli/rules_test.cpp.

#pragma once

#include "core/rules/rule.h"

#include <span>
#include <string_view>

namespace capo::rules {

[[nodiscard]] std::span<const Rule> entry_rules();            ///< S01 to S11
[[nodiscard]] std::span<const Rule> count_rules();            ///< S12 to S18
[[nodiscard]] std::span<const Rule> microbatch_rules();       ///< S19 to S22
[[nodiscard]] std::span<const Rule> order_rules();            ///< S23, S24, D01, D02, D05, D06
[[nodiscard]] std::span<const Rule> placement_rules();        ///< P01 to P03
[[nodiscard]] std::span<const Rule> stage_rules();            ///< D03, D04
[[nodiscard]] std::span<const Rule> routing_rules();          ///< R01, R02
[[nodiscard]] std::span<const Rule> transfer_rules();         ///< T01 to T08
[[nodiscard]] std::span<const Rule> deadlock_rules();         ///< T09, T10
[[nodiscard]] std::span<const Rule> send_wait_rules();        ///< T11, T12
[[nodiscard]] std::span<const Rule> module_gradient_rules();  ///< G01 to G11
[[nodiscard]] std::span<const Rule> gradient_rules();         ///< G12 to G15
[[nodiscard]] std::span<const Rule> reduction_wait_rules();   ///< G16, G17
[[nodiscard]] std::span<const Rule> capture_rules();          ///< C01 to C11
[[nodiscard]] std::span<const Rule> quantization_rules();     ///< C12 to C15, Y07, T15
[[nodiscard]] std::span<const Rule> buffer_rules();           ///< B01 to B08, E01
[[nodiscard]] std::span<const Rule> stream_rules();           ///< E02
[[nodiscard]] std::span<const Rule> replay_rules();           ///< Y01
[[nodiscard]] std::span<const Rule> reset_rules();            ///< Y02 to Y05
[[nodiscard]] std::span<const Rule> stash_rules();            ///< Y06

/// The rules of order.cpp that verdicts.cpp knows the answer of from its counting alone.
inline constexpr std::string_view kBackwardAhead = "S23";
inline constexpr std::string_view kWeightAhead = "S24";

}  // namespace capo::rules
