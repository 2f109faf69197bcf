// predict() says how TransformerEngine itself would answer a capture order: it accepts, or raises
// some error for some entry, in some step of make_graphed_callables.
//
//   [1, -1, -1.5, -1.5]   ->   TE.ValueError ...
//
// It simulates that function's bookkeeping and nothing else: graph indices, Python's list and dict
// semantics, the queue of delayed weight gradients of each module. It follows graph.py of the
// version in its options, in training mode with one warm-up pass; docs/model.md states the
// assumptions.
// TE's own scan for missing weight gradients is quadratic in the worst case; here each chunk's
// entries are walked once, which gives the same answers in linear time.
//
// It predicts TE and judges nothing: TE accepts orders that are wrong, and refuses right ones. It
// does not model CUDA errors, hooks or eval mode; of modules it knows what their recipes raise.
// Tested by predict_test.cpp against rows observed on a GPU and against the oracle.

#pragma once

#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/te/version.h"
#include "core/model/model.h"
#include "core/order/layers.h"
#include "core/order/te_list.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::te {

/// The answer of a queue of weight gradients that is asked for an entry and has none.
enum class EmptyStore {
  Raises,  ///< the base class raises: Linear, LayerNormLinear, LayerNormMLP
  Silent,  ///< GroupedLinear, module and op, does not: the graph stays empty, and a later check
           ///< stops
};

struct Options {
  bool reuse = false;  ///< _reuse_graph_input_output_buffers
  EmptyStore empty_store = EmptyStore::Raises;
  std::uint64_t max_graphs = std::uint64_t{1} << 25;  ///< layers times microbatches, at most
  const Version* version = &kNewest;                  ///< never null
};

/// The step of make_graphed_callables that raises the error.
enum class Step { Parse, Dimensions, Reuse, List, WarmUp, Capture };

/// "TE.ValueError", "py.KeyError", ...; empty for Accepted.
[[nodiscard]] std::string_view name_of(Kind kind);
[[nodiscard]] std::string_view name_of(Step step);

struct Prediction {
  Kind kind = Kind::Accepted;
  Step step = Step::Capture;
  std::optional<std::size_t> entry;  ///< index in the order of the entry that raises
  std::string reason;                ///< in words; empty for Accepted

  [[nodiscard]] bool accepts() const { return kind == Kind::Accepted; }
};

/// nullopt if the simulation would need more than max_graphs graphs.
[[nodiscard]] std::optional<Prediction> predict(const TeList& order, const Layers& layers,
                                                const std::vector<bool>& need_wgrad,
                                                const Options& options = {});

/// The modules of a rank, and the device that they are captured on; neither pointer is null.
struct Modules {
  const ModuleTable* table = nullptr;
  const Environment* environment = nullptr;
  std::int32_t rank = 0;
};

/// The first error that a module raises by its recipe, if the order itself raises none: in the
/// passes before capture a recipe that the device does not run, and a delayed bias gradient that
/// nobody has made; at capture sizes of groups that have to be fetched. nullopt if none does.
[[nodiscard]] std::optional<Prediction> predict_modules(const TeList& order, const Modules& modules,
                                                        const Version& version = kNewest);

/// The error that is raised first, by the order or by a module, is all that anybody sees. At one
/// entry the order is first.
[[nodiscard]] Prediction earlier(Prediction list, const std::optional<Prediction>& module);

}  // namespace capo::te
