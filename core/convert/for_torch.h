// A table as torch's own passes lower it, whatever capo thinks of it.
//
//   0F0,0B0 | 1F0,1B0   ->   0UNSHARD,0F0,0SEND_F0,... | 1UNSHARD,1RECV_F0,1F0,...
//
// The cells are read as torch reads them, with what that drops; nothing but a cell that torch
// cannot read and a pass that raises keeps the table from being written. Tested by passes_test.cpp
// and tests/cli/convert_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/frameworks/torch/csv_reader.h"
#include "core/frameworks/torch/passes.h"

#include <cstdint>
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

}  // namespace capo
