// What another program would say about an input today.
//
// An opinion never changes capo's verdict. The two interesting cases are named by the reports:
// accepted there and wrong, right and refused there.

#pragma once

#include "core/diag/span.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

/// A cell that PyTorch reads otherwise than it is written.
struct TorchMisreading {
  std::int32_t rank = 0;
  std::uint32_t cell = 0;
  std::string text;
  std::string torch_reads;
};

struct Opinion {
  std::string_view profile;     ///< "te", "mcore", "torch"
  std::optional<bool> accepts;  ///< nothing: the program cannot be asked about such an input
  std::optional<std::string> error_kind;
  std::string reason;         ///< in words: what it raises and why, or why it cannot be asked
  std::optional<Span> where;  ///< the entry that raises

  /// Only of torch: each step is "ok" or the first line of what torch raises; nothing where capo
  /// does not predict that step.
  std::vector<std::pair<std::string_view, std::optional<std::string>>> steps;
  std::vector<TorchMisreading> misreadings;
};

}  // namespace capo
