// How sends end, in the one text that flags, model.json and reports have for it: a mode, and the
// bytes that a channel holds.
//
//   "rendezvous", "buffered", "buffered:4194304"
//
// Tested by stated_transfers_test.cpp.

#pragma once

#include "core/model/environment.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo {

[[nodiscard]] std::string transfers_text(const Environment& environment);

/// The mode and the bytes that the text of transfers_text() states.
struct StatedTransfers {
  TransferMode mode = TransferMode::Rendezvous;
  std::optional<std::int64_t> channel_bytes;
};
/// nullopt: it is no such text.
[[nodiscard]] std::optional<StatedTransfers> transfers_stated(std::string_view text);

}  // namespace capo
