// One action as capo writes it: F1.0, B2, I1.3, W1.0, send-F1.0, recv-B2.1, dispatch-F1.0,
// wait-send-F1.0, unshard1, reduce1, wait-reduce1, `.`
//
// The letter or word is the kind, the number the chunk, the number after the point the microbatch.
// An order that counts its microbatches leaves the second number out. A reset is written among
// actions, and is none. The same words stand in .order files and in JSON. Tested by
// action_token_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo {

struct ActionToken {
  Kind kind = Kind::Idle;
  std::uint64_t chunk = 0;
  std::optional<std::uint64_t> microbatch;
};

/// nullopt if the text is no action. A number of more than 19 digits becomes the largest number.
[[nodiscard]] std::optional<ActionToken> read_action_token(std::string_view text);

/// `reset`, `reset1`, `reset1.0`: the graphs of the rank, of a chunk, of one microbatch of it.
struct ResetToken {
  std::optional<std::uint64_t> chunk;
  std::optional<std::uint64_t> microbatch;
};

/// nullopt if the text is no reset.
[[nodiscard]] std::optional<ResetToken> read_reset_token(std::string_view text);

/// "F", "send-B", "reduce".
[[nodiscard]] std::string_view word_of(Kind kind);

/// The action as an order with this naming writes it.
[[nodiscard]] std::string to_token(const Action& action, Naming naming);
[[nodiscard]] std::string to_token(const Reset& reset);

/// "F(c1,m0)": the name that reports give an action, whatever its order was written in.
[[nodiscard]] std::string action_name(const Action& action);

}  // namespace capo
