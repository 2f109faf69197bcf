// The second opinion on a capture order: a slow interpreter that is meant to be obviously right.
//
// Two questions are answered here a second time, from the written rules and from nothing else:
//   * what does TransformerEngine's make_graphed_callables do with this `_order`?   [oracle_te.cpp]
//   * is the order sound, and can one rank execute it?                           [oracle_sound.cpp]
//
//   order {1, -1, -1.5}, layers {1}, need_wgrad {true}   -> TE accepts; sound; executable
//   order {1, 2, -1, -1}, layers {1, 1}, no wgrad        -> TE accepts; NOT sound
//
// The first answer walks through TE's steps in TE's order, with Python's rules for numbers, lists
// and dicts; the second counts and compares positions. Speed is no goal. It shares no code with
// the product and includes only the standard library, so that one mistake cannot hide in both.
//
// Not here: eval mode, several warm-up passes, buffer hazards, and messages. Layer counts are 0 or
// more and small (they are walked one by one).
//
// Tested by tests/testing/oracle/oracle_test.cpp, against rows observed on a GPU and known counts.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace capo::oracle {

/// A Python int, or (floating) a Python float: `-1` and `-1.0` are different things to TE.
/// A value that is not whole is always a float, whatever `floating` says.
struct Number {
  double value = 0;
  bool floating = false;
};

/// `_num_layers_per_chunk`: not given, one int (in values[0]), or a list.
struct Layers {
  enum Form { None, Int, List } form = None;
  std::vector<long long> values;
};

/// One call of make_graphed_callables, in training mode with one warm-up pass. The caller is taken
/// to pass as many callables as the layers sum up to (layers not given: one for each chunk) and
/// that times the number of microbatches of sample arguments.
struct Question {
  std::vector<Number> order;
  Layers layers;
  std::vector<bool> need_wgrad;  ///< whether each chunk's modules delay wgrad; false beyond the end
  bool reuse = false;            ///< _reuse_graph_input_output_buffers
  bool silent_store = false;     ///< backward_dw on an empty store returns, as GroupedLinear's does
  bool pops_outputs = true;      ///< a dgrad takes its forward's outputs away, as from 2.20 on
};

struct TeAnswer {
  bool accepts = false;
  std::string kind;   ///< "" when accepted, else e.g. "TE.ValueError", "py.KeyError"
  int position = -1;  ///< the entry being processed when it was raised; -1: none was
};

TeAnswer transformer_engine(const Question& question);

/// Every chunk 1..N has exactly M >= 1 forwards and M dgrads, and M wgrads iff it delays wgrad,
/// else none; the k-th dgrad comes after the k-th forward, the k-th wgrad after the k-th dgrad.
/// Entries are whole numbers typed int or exact halves of at most -1.5. N is the largest of: chunk
/// id used, length of the layers list, length of need_wgrad. A layers list must reach N; a chunk
/// that need_wgrad does not speak of delays iff it has a wgrad entry. An empty order is not sound.
bool sound(const std::vector<Number>& order, const std::optional<std::vector<bool>>& need_wgrad,
           const Layers& layers);

/// Sound, and runs on one rank that holds all chunks as a chain: for every microbatch, F(c) comes
/// before F(c+1) and B(c+1) before B(c).
bool executable(const std::vector<Number>& order,
                const std::optional<std::vector<bool>>& need_wgrad, const Layers& layers);

}  // namespace capo::oracle
