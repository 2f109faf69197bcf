// The second opinion on what a capture refuses or cannot hold, by who captures.
//
//   TransformerEngine   refuses a module that has hooks when it is handed in; runs hooks that are
//                       given for the capture at no replay; a chunk delays its weight gradients or
//                       not
//   Megatron's own      a forward and a backward of each layer are captured and nothing else; a
//                       backward only where no forward is between two of its layers
//   both                a tensor that was moved is read where it was
//
// Graphs are captured one by one. Each thing is said once, where it is first met. It shares no code
// with the product and includes only the standard library. Of one rank. Tested by
// tests/testing/oracle/captures_test.cpp; that the product agrees is enumerated by capo_exhaustive.

#pragma once

#include <compare>
#include <vector>

namespace capo::oracle {

enum class Capturer { TransformerEngine, Megatron };

struct ChunkToCapture {
  bool hooks = false;            ///< its module has some when it is handed in
  bool hooks_each_call = false;  ///< it needs those that are given for the capture at each call
  bool offloaded = false;        ///< its tensors are moved between forward and backward
  int layers = 1;
};

struct GraphToCapture {
  enum Kind { Forward, Backward, HalfBackward, Weight };

  Kind kind = Forward;
  int chunk = 0;        ///< counts from 0
  bool beside = false;  ///< a backward, layer by layer with the forward in front of it
};

struct CaptureFault {
  enum Kind { Refused, HooksNotRun, Moved, HalfDelayed, InNoGraph, BetweenLayers };

  int position = 0;
  Kind kind = Refused;

  friend auto operator<=>(const CaptureFault&, const CaptureFault&) = default;
};

/// Ascending.
[[nodiscard]] std::vector<CaptureFault> faults_of_capture(Capturer who,
                                                          const std::vector<ChunkToCapture>& chunks,
                                                          const std::vector<GraphToCapture>& order);

}  // namespace capo::oracle
