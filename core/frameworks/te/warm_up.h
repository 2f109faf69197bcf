// TransformerEngine's passes before capture take memory: eager execution of the order, on memory
// that is given back before the first graph is captured.
//
//   [1, 1, -1, -1]     two outputs at once, and at a backward its gradients
//
// All sample inputs are there from the beginning, as many as there are static inputs. A forward
// leaves its output and what it keeps for the backward; a backward has its incoming gradient, its
// grad input and, if the weight gradient is delayed, the operands of that, which runs at once: an
// order's weight gradients are left out. Then what was kept goes, and the output with it, but that
// up to 2.19 outputs stayed to the end of the pass (`keeps_outputs`), which is more than is there
// at capture. The scratch of a weight gradient is left out, as workspaces are everywhere. It is
// read off graph.py, lines 523 to 672 (2.19) and 656 to 689 (2.20.2). Tested by warm_up_test.cpp
// and, against the oracle, by tests/exhaustive/declared.cpp.

#pragma once

#include "core/plan/buffers.h"
#include "core/plan/work.h"

#include <cstdint>
#include <span>

namespace capo {

struct WarmUp {
  std::int64_t most = 0;    ///< bytes, or units if sizes are not declared
  std::uint32_t entry = 0;  ///< the first entry of the order at which so much is there
};

/// `static_inputs` are the bytes of the sample inputs; `work` is in the order of capture.
[[nodiscard]] WarmUp warm_up_of(const BufferTable& table, std::int32_t rank,
                                std::span<const Work> work, std::int64_t static_inputs,
                                bool keeps_outputs);

}  // namespace capo
