// An opinion is the answer of another program to an input.
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
  std::string profile;          ///< as it was asked for: "te", "torch@2.11"
  std::string_view framework;   ///< "te", "mcore", "torch"
  std::string_view version;     ///< of the framework: "2.11.0"
  std::optional<bool> accepts;  ///< nullopt: the program cannot be asked about such an input
  std::optional<std::string> error_kind;
  std::string reason;         ///< in words, the error and its cause, or why it cannot be asked
  std::optional<Span> where;  ///< the entry that raises

  /// Torch has steps: each is "ok" or the first line of the error; nullopt if capo does not predict
  /// that step.
  std::vector<std::pair<std::string_view, std::optional<std::string>>> steps;
  std::vector<TorchMisreading> misreadings;
  /// The activation slots of each rank as torch counts them, where it would; nullopt where it
  /// raises.
  std::vector<std::optional<std::int64_t>> slots;
};

}  // namespace capo
