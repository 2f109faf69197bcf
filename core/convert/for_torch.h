// A table as torch's own passes lower it, whatever capo thinks of it.
//
//   0F0,0B0 | 1F0,1B0   ->   0UNSHARD,0F0,0SEND_F0,... | 1UNSHARD,1RECV_F0,1F0,...
//
// The cells are read as torch reads them, with what that drops; nothing but a cell that torch
// cannot read and a pass that raises keeps the table from being written. Tested by passes_test.cpp
// and tests/cli/convert_test.cpp.
//
// torch defers receives, and its deferral is kept where that is safe:
//
//   2SEND_F1,2RECV_B0 | 3SEND_B0,3RECV_F1     each waits for the other to receive; with 3RECV_F1
//                                             posted early, as torch does by default, it finishes
//
// Messages from one rank to another keep their order, so that none is taken for another. All
// receives that may be put off together are found by asking for a verdict: of all, of each half of
// those that were rejected, and so on down to single ones. Whatever is returned has been accepted
// itself. Up to two verdicts are asked for each receive. Tested by safe_deferral_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/frameworks/torch/csv_reader.h"
#include "core/frameworks/torch/passes.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace capo {

/// The version and policies that a table is lowered for.
struct ForTorch {
  const torch::Version* version = &torch::kNewest;  ///< never null
  torch::Policy policy;
  /// Whether it holds its transfers; nullopt: it does if a transfer, a wait for one, an UNSHARD or
  /// a RESHARD occurs.
  std::optional<bool> communicates;
  std::int64_t stages = 0;
  std::int64_t microbatches = 0;
};

/// The first line of what torch raises.
struct RaisedByTorch {
  std::string text;
};

[[nodiscard]] Result<torch::Rows, RaisedByTorch> read_for_torch(const std::vector<TorchRow>& rows,
                                                                const torch::Version& version);

[[nodiscard]] Result<torch::Rows, RaisedByTorch> lowered_rows(torch::Rows rows,
                                                              const ForTorch& wanted);

/// The lowered table, a row a line.
[[nodiscard]] Result<std::string, RaisedByTorch> lower_for_torch(torch::Rows rows,
                                                                 const ForTorch& wanted);

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
