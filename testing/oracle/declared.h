// The second opinion on what only declarations tell about shared buffers: whose sample decides, how
// many bytes there are at once, and whether what is sent is still whole.
//
//   F1 F2 B2 B1      the second forward takes no cell over, so both samples are there at once
//
// Chunks of one layer, whose weight gradients read inputs and gradients themselves. Cells are given
// out as memory.h says, here with their sizes: an input by its key, the one that was given back
// first; one gradient for each key of outputs; outputs and handed back gradients of the pool, which
// gives out the cell of that size that came back last. No cell is ever cut or joined.
//
//   lost      a forward takes an input whose maker needs no gradient of it, and does itself
//   misplaced a backward takes the gradients of a graph whose output stands at another position
//   cut off   a gradient that goes to another rank is overwritten before the next chunk that sends
//             one has ended, or the last one of all before the last entry has
//   too much  the weights and all cells that were ever given out do not fit
//
// It shares no code with the product and includes only the standard library. Of sound orders only.
// Tested by tests/testing/oracle/declared_test.cpp; that the product agrees, on every order of a
// scope, by tests/exhaustive/declared.cpp.

#pragma once

#include "testing/oracle/memory.h"

#include <vector>

namespace capo::oracle {

struct DeclaredLayer {
  LayerKeys keys;
  int input_bytes = 1;
  int output_bytes = 1;
  int weight_bytes = 0;
  bool needs_gradient = true;  ///< size of the input
  int output_position = 0;     ///< place among the outputs of the one that needs a gradient
  bool sends = false;          ///< its input's gradient, to another rank
};

struct DeclaredCapture {
  std::vector<DeclaredLayer> chunks;
  std::vector<Capture::Entry> order;
};

struct Flaw {
  enum Kind { Lost, Misplaced, CutOff };

  Kind kind = Lost;
  int position = 0;  ///< place of the entry that takes over, or that ends the send

  friend bool operator==(const Flaw&, const Flaw&) = default;
};

/// The flaws, sorted by position.
std::vector<Flaw> flaws(const DeclaredCapture& capture);

struct Need {
  int bytes = 0;     ///< bytes at the peak, weights included
  int position = 0;  ///< place of the first entry at which that much is needed

  friend bool operator==(const Need&, const Need&) = default;
};

Need need(const DeclaredCapture& capture);

/// The passes before capture need, weights included: all inputs that capture will have, the
/// outputs whose backward is not over, or all so far if they are kept, and while a backward runs
/// its two gradients. Weight gradients are not among the passes' entries.
Need need_of_warm_up(const DeclaredCapture& capture, bool keeps_outputs);

}  // namespace capo::oracle
