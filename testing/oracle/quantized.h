// The second opinion on what quantization leaves outside of graphs: which forwards multiply with a
// weight of the step before, and where ranks that reduce magnitudes together part.
//
//   replayed F1.1 F1.0 F1.2     the weight of chunk 1 is made anew by F1.0: F1.1 has an old one
//   magnitudes F B B, F F B B   the second reductions are of different passes
//
// And which of four things goes wrong with a module that quantizes as TransformerEngine captures
// it: asked of each device that may be meant, one by one, from the tables of `capo explain C14` and
// `C15` as a person reads them.
//
// It plays the replay with a version of each chunk's weight, and lays sequences side by side. It
// shares no code with the product and includes only the standard library. Tested by
// tests/testing/oracle/quantized_test.cpp; that the product agrees is a property, in
// tests/properties/quantization_test.cpp.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace capo::oracle {

/// A forward of a step whose chunks keep a quantized weight each, in the order of replay.
struct KeptForward {
  int chunk = 0;
  int microbatch = 0;
};

/// The places of forwards that read a weight of the step before, of chunks whose weight is made
/// anew at all: by their microbatch 0.
[[nodiscard]] std::vector<int> stale_forwards(const std::vector<KeptForward>& replayed);

/// Passes behind which each member of a group reduces magnitudes, a letter each. The first that
/// some member does not share with the first member, counted from 0; nullopt if all are alike.
[[nodiscard]] std::optional<int> parting_of_magnitudes(const std::vector<std::string>& members);

/// A module as declared. Members that its kind does not have are false.
struct QuantizedModule {
  enum Recipe { None, Delayed, Current, Block, Mxfp8, Nvfp4 };

  Recipe recipe = None;
  bool groups = false;           ///< it has products of groups
  bool operation = false;        ///< it is one of TransformerEngine's operations
  bool dense_mlp = false;        ///< a dense MLP behind a norm is a part of it
  bool sizes_on_device = false;  ///< those of its groups
  bool full_precision = false;   ///< numbers of 32 bits
  bool delays_weights = false;   ///< its weight gradients
  bool trained = true;           ///< its weight
  bool bias = false;
  bool plain_backward = false;  ///< its backward reads operands that are not quantized
  bool python_says_requantize = false;
};

struct QuantizingDevice {
  enum Kind { Any, Hopper, Blackwell };

  Kind kind = Any;
  int cublaslt = 0;  ///< 1304: 13.4; 0: any
};

enum class QuantizingTrouble { BiasMissed, WeightNeverRenewed, RecipeRefused, SizesFetched };

[[nodiscard]] std::set<QuantizingTrouble> troubles_of(const QuantizedModule& module,
                                                      const QuantizingDevice& device);

}  // namespace capo::oracle
