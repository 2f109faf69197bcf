// A PyTorch pipeline schedule table as torch.distributed.pipelining itself would read it.
//
//   0F0,0F1,,0B0,(1F0;0B1)OVERLAP_F_B        row i = rank i; an empty cell is an idle slot
//
// torch matches a cell's beginning against a pattern and drops the rest, so that it may read
// something else than is written; the torch profile works on its reading, and capo's rules on the
// strict one (csv_reader.h). Tested by predict_test.cpp.

#pragma once

#include "core/frameworks/torch/version.h"
#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// "F", "SEND_B", "OVERLAP_F_B": the enum's value in torch, which no version has changed.
[[nodiscard]] std::string_view torch_name(TorchType type);
/// The action of a schedule that it is; nullopt: it is the type of a composite.
[[nodiscard]] std::optional<Kind> kind_of(TorchType type);

struct TorchAction {
  std::int64_t stage = -1;  ///< -1 for a composite; more than 18 digits are cut to 10^18
  TorchType type = TorchType::Forward;
  std::int64_t microbatch = -1;  ///< -1: none

  friend auto operator<=>(const TorchAction&, const TorchAction&) = default;
};

/// torch's str() of an action: "0F0", "1SEND_F2", "3RESHARD".
[[nodiscard]] std::string to_text(const TorchAction& action);

struct TorchCell {
  enum class Form : std::uint8_t {
    Idle,       ///< None
    Single,     ///< one action
    Composite,  ///< (a;b)TYPE; `actions` may be empty, as torch allows
    Refused,    ///< torch raises; `error` is its first line
  };

  Form form = Form::Idle;
  TorchType container = TorchType::Overlap;  ///< its type if it is a Composite
  std::vector<TorchAction> actions;
  std::string repr;   ///< torch's str() of what it read, numbers of any length; empty for None
  std::string error;  ///< empty unless it is Refused
};

/// The action of a cell that is written as torch shows it, "0F0" and not "00F0 "; nullopt: it is
/// not, and read_as_torch() tells what torch makes of it. Tables of millions of cells are like
/// this.
[[nodiscard]] std::optional<TorchAction> plain_action(std::string_view cell,
                                                      const torch::Version& version);

/// torch's `_Action.from_str`, message for message.
[[nodiscard]] TorchCell read_as_torch(std::string_view cell,
                                      const torch::Version& version = torch::kNewest);

}  // namespace capo
