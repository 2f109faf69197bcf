// The second opinion on the memory of Megatron's local graphs: tensors with counted references.
//
//   F1 of two layers      layer 0's output is layer 1's input: one tensor, which autograd of both
//                         holds until both backwards are over
//
// Each graph, a forward or a backward of a layer, takes memory for what it makes when it is
// captured and keeps a reference to what it reads; memory is free when nobody refers to it any
// more. A tensor takes the smallest gap that it fits into, of several the lowest, or else the
// memory grows.
//
//   input        made for the first layer of a chunk, or what the layer before made
//   kept         what autograd keeps from a forward to its backward
//   output       of the last layer it is copied at once, and nobody refers to the graph's own
//   grad output  made for the last layer of a chunk, or what the layer behind made
//   grad input   of the first layer it is copied at once
//
// A replay runs whole chunks in another order or the same: each cell remembers whose it is, and a
// backward looks at all that it refers to. Without weight gradients apart.
//
// It shares no code with the product and includes only the standard library. Tested by
// tests/testing/oracle/local_graphs_test.cpp; that the product agrees is a property, in
// tests/properties/local_graphs_test.cpp.

#pragma once

#include <compare>
#include <map>
#include <vector>

namespace capo::oracle {

struct LocalLayer {
  long input = 1;
  long kept = 1;
  long output = 1;
};

struct LocalWork {
  bool forward = true;
  int chunk = 0;  ///< counts from 0
  int microbatch = 0;
};

struct LocalTensor {
  enum Kind { Input, Kept, Output, GradOutput, GradInput };

  int chunk = 0;
  int layer = 0;
  int microbatch = 0;
  Kind kind = Input;

  friend auto operator<=>(const LocalTensor&, const LocalTensor&) = default;
};

struct LocalMemory {
  std::map<LocalTensor, long> offset;  ///< where each is made
  long bytes = 0;
};

struct LocalMisread {
  LocalTensor victim;
  int position = 0;  ///< of the reader in the replay

  friend auto operator<=>(const LocalMisread&, const LocalMisread&) = default;
};

using LocalChunks = std::vector<std::vector<LocalLayer>>;

LocalMemory capture_locally(const LocalChunks& chunks, const std::vector<LocalWork>& order);

/// Sorted, each once.
std::vector<LocalMisread> replay_locally(const LocalChunks& chunks, const LocalMemory& memory,
                                         const std::vector<LocalWork>& order);

}  // namespace capo::oracle
