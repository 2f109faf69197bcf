// price() derives what the tasks of a configured model take on a device from its data sheet.
//
//   experts forward   3.91 ms: products 3.52 ms (2.09 TFLOP at 0.6 of 989 TFLOP/s), memory 0.39 ms
//                     (1.05 GB at 0.8 of 3.35 TB/s)
//
// A product takes its FLOPs over the rate of the device, or its bytes over the bandwidth if that is
// longer; attention its FLOPs, half of which the causal mask skips; everything else writes what it
// keeps and reads it once. These follow each other. The input half of a backward has the products
// of the forward again, and attention two and a half times, as flash attention makes scores anew;
// the weight half has the products again, and adds gradients of four bytes. Under recompute a
// backward begins with a forward. A dispatch sends each row's copies to the ranks of its experts: a
// share within the node over its links, the rest over the network, side by side. Tensor parallel
// exchanges stand behind each other with the products. Latencies, exchanges of context parallelism
// and the optimizer are not counted. No rate is reached in full: which share is, is an assumption,
// said with every figure, and measured costs (`capo measure`) are better.
//
// Quantization is a pass of its own over memory, which costs name as the part of a forward or
// backward that it is. Costs that a module declares stay. Tested by device_costs_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/model/model.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// Rates in units a second; FLOPs are of dense products.
struct DeviceFigures {
  std::string_view name;
  std::string_view source;
  double bf16_flops = 0;  ///< of fp16 as well
  double fp8_flops = 0;
  double fp32_flops = 0;  ///< as TF32
  double memory = 0;      ///< bytes
  double links = 0;       ///< bytes to other devices of the node, one way
  double network = 0;     ///< bytes to other nodes, one way
  std::int64_t node = 8;  ///< devices of a node
};

/// "h100", "h200", "b200".
[[nodiscard]] std::span<const DeviceFigures> known_devices();

/// The shares of a device's rates that are reached.
struct Efficiency {
  double products = 0.6;
  double attention = 0.5;
  double memory = 0.8;
  double links = 0.8;

  friend bool operator==(const Efficiency&, const Efficiency&) = default;
};

/// "products=0.6,memory=0.8". The error says what is wrong.
[[nodiscard]] Result<Efficiency, std::string> read_efficiency(std::string_view text);

/// A time and its reason.
struct CostOrigin {
  std::string module;  ///< empty: of transfers between stages
  std::string_view task;
  double microseconds = 0;
  std::string why;

  friend bool operator==(const CostOrigin&, const CostOrigin&) = default;
};

/// Gives every module the costs that it does not declare, and transfers theirs. The error names a
/// module and the member that is undeclared.
[[nodiscard]] Result<std::vector<CostOrigin>, std::string> price(Model& model,
                                                                 const DeviceFigures& device,
                                                                 const Efficiency& efficiency);

}  // namespace capo
