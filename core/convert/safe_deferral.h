// torch's deferral of receives, kept where it is safe.
//
//   2SEND_F1,2RECV_B0 | 3SEND_B0,3RECV_F1     each waits for the other to receive; with 3RECV_F1
//                                             posted early, as torch does by default, it finishes
//
// Messages from one rank to another keep their order, so that none is taken for another. All
// receives that may be put off together are found by asking for a verdict: of all, of each half of
// those that were rejected, and so on down to single ones. What is returned has been accepted
// itself. Up to two verdicts are asked for each receive. Tested by safe_deferral_test.cpp.

#pragma once

#include "core/convert/for_torch.h"

#include <cstddef>
#include <functional>
#include <string>

namespace capo {

struct SafelyDeferred {
  std::string table;
  std::size_t receives = 0;
  std::size_t put_off = 0;  ///< those that are not posted as by default
};

/// Lowers with torch's default if `accepts` refuses even that. The policies of `wanted` hold but
/// for its deferral.
[[nodiscard]] Result<SafelyDeferred, RaisedByTorch> defer_safely(
    const torch::Rows& rows, ForTorch wanted,
    const std::function<bool(const std::string& table)>& accepts);

}  // namespace capo
