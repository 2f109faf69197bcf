// A step loaded onto an engine: its layers, its parameters, what it is given, and the transport of
// its messages.
//
// It is made once for a run; eager execution and replays differ only in where buffers lie and in
// the outputs that they write.
//
// TransformerEngine's sharing of sample tensors does more to a graph than share memory, so a run of
// its plan shows that as well. A graph that takes over another's static input is captured with that
// one's sample: if the sample needed no gradient, its backward hands none back (B05). A graph that
// shares another's incoming gradients finds its own at another place of the tuple, and reads zeros
// (B06). Capo's own plan has neither. Tested by run_corpus_test.cpp and bytes_test.cpp.

#pragma once

#include "core/rules/verify.h"
#include "run/engine/engine.h"
#include "run/execute/program.h"
#include "run/execute/rank_range.h"
#include "run/execute/sent_gradients.h"
#include "run/execute/sent_rows.h"
#include "run/execute/step_inputs.h"
#include "run/execute/transport.h"
#include "run/setup/parameters.h"
#include "run/setup/reductions.h"
#include "run/setup/step_layers.h"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace capo::run {

/// Calls into a run, for tests that act as an offloading framework or a bug would.
struct Hooks {
  /// Called before each part of an op, in the order of launches.
  std::function<void(const OpPart&, ParameterRegistry&)> before;
  /// If set, backwards find every saved tensor, weights included, at another address.
  bool substitute_saved = false;
};

struct TeSamples {
  /// Static inputs whose backward computes no gradient of them.
  std::set<BufferId> without_gradient;
  /// Incoming gradients that hold zeros.
  std::set<BufferId> zeros;
};

/// Both sets are empty unless the plan is TransformerEngine's.
[[nodiscard]] TeSamples te_samples(const PlannedStep& step);

/// Places that replays lend to backwards, by the kept memory (BufferKind::Activations) that each
/// stands for.
using LentPlaces = std::map<BufferId, std::byte*>;

/// A place for each backward that finds what its forward kept taken over.
///
/// Backwards of some modules write there, such as an MLP's gradient over what it is of. The plan
/// counts that as a read, as nobody else reads the memory from then on. If it is another buffer's
/// by then, such a write would hurt that one's readers, whom the plan does not make victims. So the
/// backward gets a copy of what is there, as late as it would read it, and its weight gradient
/// reads that.
[[nodiscard]] LentPlaces places_lent(Engine& engine, const PlannedStep& step);

struct LoadedStep {
  Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const StepInputs& inputs;
  Transport& eager_transport;     ///< within this process, whatever the other is
  Transport& transport;           ///< of replays
  std::vector<Message> messages;  ///< by transfer of the program
  std::vector<GroupedTensor> parameters;
  std::vector<CodedWeight> coded;  ///< by parameter
  ParameterRegistry registry;
  Hooks hooks;
  TeSamples samples;                       ///< of replays; eager execution has none
  LentPlaces lent = {};                    ///< to replays of an unchecked plan
  std::vector<Reduction> reductions = {};  ///< that eager execution ends with
  SentGradients sent_gradients = {};       ///< of replays
  SentRows sent_rows = {};
  RankRange own = {};  ///< the ranks that this process replays

  [[nodiscard]] const BufferTable& table() const { return step.view().table(); }
  [[nodiscard]] bool failed() const {
    return engine.error() || eager_transport.error() || transport.error();
  }
};

[[nodiscard]] constexpr std::int64_t output_bytes(const LayerShape& shape) {
  return shape.tokens * output_columns(shape) * bytes_of(shape.type);
}

/// The weights that products read as codes, by parameter; null where none does, or if the engine
/// has no more memory: it keeps the error. The numbers must have been drawn, or be on their way on
/// the first stream.
[[nodiscard]] std::vector<CodedWeight> coded_weights(Engine& engine, const StepLayers& layers,
                                                     const std::vector<GroupedTensor>& parameters);

/// Makes the codes of a layer's weights that coded_weights() made, from the weights of the step.
void make_codes_anew(const LoadedStep& loaded, const StepLayer& layer, const Sink& launch);

/// Puts other codes there wherever StepLayer::codes_age says that they age, as an optimizer's step
/// does to those of the step before it. Returns whether there are any.
bool age_codes(const LoadedStep& loaded);
/// Makes those of the step again, and returns when the engine has done so.
void renew_codes(const LoadedStep& loaded);

/// The messages of a program's transfers, with the bytes that its layers make.
[[nodiscard]] std::vector<Message> messages_of(const Program& program, const BufferTable& table,
                                               const StepLayers& layers);

/// "B of chunk 1, microbatch 0 of rank 2".
[[nodiscard]] std::string name_of(std::int32_t rank, const Work& work);

}  // namespace capo::run
