// The second opinion on shared buffers: a slow replay of one rank's graphs in which every memory
// cell remembers who wrote it last.
//
//   F1 B1 F1 W1      the second forward writes the cell of the first one's input before W1 reads it
//
// First the cells are given out as TransformerEngine does when it captures an order with reuse:
//
//   input       a forward takes, layer by layer, the input that was given back first among those of
//               its key, else a new cell; a backward gives back the inputs of the oldest microbatch
//               of its chunk that still holds them; a weight gradient gives nothing back
//   gradient    one cell for each key of outputs, for good
//   output      of the pool, until the chunk's own backward has been captured
//   handed back the gradient of a chunk's input, of the pool, until the next backward has been
//
// The pool gives out the cell that came back last, else a new one. What is in it is looked at only
// of a chain of one-layer chunks whose weight gradients read inputs and gradients themselves, so
// that nothing else is in the pool; a chunk's backward then reads what the chunk behind it hands
// back.
//
// Then the order is replayed: a forward writes its inputs, a backward its gradients from the last
// layer to the first, and a weight gradient looks whether it finds in both cells what its own
// forward and its own backward have left there; in a chain a backward looks, before it writes
// anything, whether it finds what the chunk behind it has handed back. The k-th entry of a kind for
// a chunk is microbatch k.
//
// It shares no code with the product and includes only the standard library, so that one mistake
// cannot hide in both. Of sound orders only. Tested by tests/testing/oracle/memory_test.cpp; that
// the product agrees is a property, in tests/properties/memory_test.cpp.

#pragma once

#include <compare>
#include <vector>

namespace capo::oracle {

/// The key that tells the tensors of a layer from those of others.
struct LayerKeys {
  int input = 0;
  int output = 0;
};

struct Capture {
  enum Kind { Forward, Backward, Weight };
  struct Entry {
    Kind kind = Forward;
    int chunk = 0;  ///< counts from 0
  };

  std::vector<std::vector<LayerKeys>> chunks;  ///< the layers of each
  std::vector<Entry> order;
  bool chain = false;  ///< each chunk reads the one before it; of one layer each
};

/// A weight gradient, or in a chain a backward, that reads what another has written.
struct Misread {
  enum Operand { Input, Gradient, HandedBack };

  int chunk = 0;
  int layer = 0;
  int microbatch = 0;
  Operand operand = Input;
  int position = 0;  ///< place of the reader

  friend auto operator<=>(const Misread&, const Misread&) = default;
};

struct Replay {
  std::vector<Misread> misreads;  ///< sorted
  int inputs = 0;                 ///< cells that were given out
  int gradients = 0;
};

Replay replay(const Capture& capture);

}  // namespace capo::oracle
