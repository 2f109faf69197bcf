// model.json tells what a schedule leaves out: the model that it trains and the machine it runs on.
//
//   {"schema": 1, "topology": "loop", "communicators": "per-pair", "modules": {...}, ...}
//
// One schema serves checking, simulating, running and measuring; each reads the parts it needs, and
// flags of the command line are shorthands for some of them. Every member is optional, and a member
// that is left out is undeclared, never guessed. docs/model-json.md explains every member, and
// docs/schema/model.schema.json is the schema. Tested by tests/core/text/model_reader_test.cpp.

#pragma once

#include "core/model/configuration.h"
#include "core/model/data_type.h"
#include "core/model/environment.h"
#include "core/model/module_kinds.h"
#include "core/model/plan_options.h"
#include "core/model/recipe.h"
#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

/// Sizes of a module's tensors, from 1; nullopt if undeclared, or if its kind has no such size.
struct ModuleShape {
  std::optional<std::int64_t> tokens;  ///< rows of one microbatch
  std::optional<std::int64_t> hidden;  ///< columns of the input
  std::optional<std::int64_t> ffn;     ///< columns of the output; in an MLP, of its middle
  std::optional<std::int64_t> groups;  ///< experts on this rank
  std::optional<std::int64_t> top_k;   ///< groups that each token chooses, with a router
  // An attention has these, and a transformer layer. A microbatch is whole sequences.
  std::optional<std::int64_t> heads;     ///< of queries, a multiple of `kv_heads`
  std::optional<std::int64_t> kv_heads;  ///< of keys, and of values
  std::optional<std::int64_t> head_dim;  ///< columns of each head
  std::optional<std::int64_t> sequence;  ///< tokens of a sequence, a divisor of `tokens`

  friend bool operator==(const ModuleShape&, const ModuleShape&) = default;
};

struct ModuleFlags {
  // These flags decide where the weight gradient goes.
  bool delay_wgrad = false;              ///< the weight gradient is an action of its own
  bool fuse_wgrad_accumulation = false;  ///< W adds into main_grad
  bool overwrite_main_grad = false;      ///< W overwrites main_grad
  bool grad_added_to_main_grad = false;  ///< the parameter has this attribute, as Megatron sets it
  bool zero_out_wgrad = false;           ///< the dummy that stands for the gradient is of zeros
  bool is_first_microbatch = false;      ///< the first W of a step overwrites main_grad
  bool wgrad_hooks = false;     ///< reductions hang on the module's own hooks, not on autograd's
  bool frozen_weight = false;   ///< a weight needs no gradient
  bool shared_weight = false;   ///< another layer uses the same parameter
  bool bias = false;            ///< the module has a bias, whose gradient comes with the weight's
  bool single_weight = false;   ///< all groups have one weight parameter together
  bool single_bias = false;     ///< all groups have one bias parameter together
  bool scale_bias = false;      ///< each row scales the bias; the scales are inputs
  bool sharded_weight = false;  ///< the weight is distributed, and its gradient scattered when done
  // These flags decide which operands the products read.
  bool save_original_input = false;      ///< B and W read the input itself, not a copy
  bool high_precision_backward = false;  ///< B and W read unquantized operands
  bool gathered_input = false;           ///< the input is gathered, so W reads a copy
  bool gathered_grad_output = false;     ///< the incoming gradient is gathered, so W reads a copy
  // These flags tell the module's graphs about its tensors.
  bool input_requires_grad = true;
  bool contiguous_input = true;
  bool contiguous_output = true;
  bool clone_param_grads = true;  ///< gradients that a replay returns are copies
  // These flags name what capture would meet.
  bool synchronises = false;     ///< the module waits for the device, or asks it for a value
  bool unjoined_stream = false;  ///< work goes to another stream, and nothing waits for it
  bool offloaded = false;        ///< its tensors leave the device between F and B
  bool hooks = false;            ///< hooks are registered on it when its capture begins
  bool hooks_each_call = false;  ///< what its capture-time hooks do is needed at every call

  friend bool operator==(const ModuleFlags&, const ModuleFlags&) = default;
};

/// The place of the group sizes of a grouped module.
enum class Splits : std::uint8_t {
  Host,    ///< they are numbers on the CPU, which capture bakes in
  Device,  ///< they are a tensor that the module makes or copies
  Input,   ///< they are a tensor on the device that is an input of the graph
};

/// "host", "device", "input".
[[nodiscard]] std::string_view name_of(Splits splits);

/// The layout of main_grad in memory.
struct MainGrad {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements, one for each dimension

  friend bool operator==(const MainGrad&, const MainGrad&) = default;
};

/// Bytes of one microbatch; nullopt if they follow from the shape, or are undeclared.
struct ModuleBytes {
  std::optional<std::int64_t> input;
  std::optional<std::int64_t> output;
  std::optional<std::int64_t> activations;  ///< kept from F to B
  std::optional<std::int64_t> operands;     ///< kept from B for W
  std::optional<std::int64_t> weight;
  std::optional<std::int64_t> quantized_weight;  ///< all copies of it that products read

  friend bool operator==(const ModuleBytes&, const ModuleBytes&) = default;
};

/// Microseconds of one microbatch, and shares; finite and never negative.
struct ModuleCost {
  std::optional<double> forward;
  std::optional<double> backward;  ///< the input-gradient half
  std::optional<double> weight;
  std::optional<double> dispatch;
  std::optional<double> combine;
  std::optional<double> reduce;    ///< a reduction of its gradients over their group, once a step
  std::optional<double> autograd;  ///< more of a backward under plan te: dummy gradients are added
  std::optional<double> whole;     ///< a whole backward; nullopt: its halves and `autograd`
  /// Each further weight gradient of one call takes this share of `weight`; nullopt: all of it.
  std::optional<double> fuse;
  /// Two tasks side by side on one device take this share of one after the other; nullopt: all.
  std::optional<double> beside;
  /// Its computations take so much less at most, on a device that idles most of a step. On one that
  /// computes for the share u of it they take cbrt(u) of their times, or what is left at least;
  /// times are those at u = 1; below 1; nullopt: nothing is known of it.
  std::optional<double> rest;
  // Quantization is a part of other times, and adds nothing to them.
  std::optional<double> quantize_forward;   ///< it takes so much of `forward`
  std::optional<double> quantize_backward;  ///< it takes so much of `backward`, and of `whole`

  friend bool operator==(const ModuleCost&, const ModuleCost&) = default;
};

struct Module {
  std::string name;
  std::optional<ModuleKind> kind;
  std::optional<MlpKind> mlp;  ///< of a transformer layer; nullopt: as the configuration has it
  std::optional<DataType> dtype;
  std::optional<Recipe> recipe;
  /// The weight is quantized by the first microbatch of a step, and kept; nullopt: by each.
  std::optional<WeightCache> weight_cache;
  ModuleShape shape;
  ModuleFlags flags;
  ModuleBytes bytes;
  ModuleBytes derived;   ///< they follow from the model's configuration; declared ones win
  std::string lacks;     ///< the member of the configuration for want of which nothing follows
  bool remakes = false;  ///< by its configuration, backward makes again what forward made
  std::string unrun;     ///< what its configuration has that no module has which capo runs
  ModuleCost cost;
  std::optional<Splits> splits;
  std::optional<MainGrad> main_grad;
  std::int64_t calls = 1;            ///< one graph calls the module so often
  std::int64_t output_position = 0;  ///< the output at this index needs a gradient
  std::int64_t grad_buckets = 1;     ///< so many become ready with its weight gradients

  friend bool operator==(const Module&, const Module&) = default;
};

/// Recipe::None if undeclared.
[[nodiscard]] inline Recipe recipe_of(const Module& module) {
  return module.recipe.value_or(Recipe::None);
}

/// Whether its rows choose their groups. A transformer layer has experts if it says so, or if it
/// declares their number or how many a token chooses.
[[nodiscard]] inline bool has_router(const Module& module) {
  if (!module.kind) return false;
  if (!has_two_halves(*module.kind)) return has_router(*module.kind);
  if (module.mlp) return *module.mlp == MlpKind::Experts;
  return module.shape.groups || module.shape.top_k;
}

/// The module of each layer; empty if none is declared.
struct ModuleTable {
  std::vector<Module> list;  ///< in the order of the text; their names differ
  /// Each rank, chunk and layer has an index into `list`. A level with one entry speaks for all of
  /// its kind, so that [[[0]]] is a model of one kind of layer, however many ranks, chunks and
  /// layers there are. A rank without chunks is empty.
  std::vector<std::vector<std::vector<std::int32_t>>> layers;

  /// Null if the layer is undeclared. Chunks are counted from 1, layers from 0.
  [[nodiscard]] const Module* of(std::int32_t rank, std::int32_t chunk, std::int32_t layer) const;
  /// How many layers of a chunk have an entry: one if it speaks for all, 0 if none is declared.
  [[nodiscard]] std::size_t layers_told_apart(std::int32_t rank, std::int32_t chunk) const;

  friend bool operator==(const ModuleTable&, const ModuleTable&) = default;
};

/// Modules that are named like their kinds and declare nothing else: those of each chunk, or of all
/// chunks if there is one.
[[nodiscard]] ModuleTable modules_of_kinds(const std::vector<ModuleKind>& kinds);

/// Ranks that perform collective actions together, and those actions.
struct CollectiveGroup {
  std::string name;
  std::vector<std::int32_t> members;  ///< ranks, at least one, ascending
  std::vector<Kind> actions;  ///< dispatch, combine, unshard, reshard, reduce; at least one, sorted
  /// Streams of actions that are not on their default (dispatch and combine: "comm", the others:
  /// "dp"), sorted by action. Only data orders two streams of one rank.
  std::vector<std::pair<Kind, std::string>> streams;

  [[nodiscard]] bool performs(Kind kind) const;
  /// Whether its ranks dispatch or combine tokens.
  [[nodiscard]] bool exchanges() const;

  friend bool operator==(const CollectiveGroup&, const CollectiveGroup&) = default;
};

/// The reason why the members of groups are not of an input of so many ranks, one at least; nullopt
/// if they are.
[[nodiscard]] std::optional<std::string> misfit_of_groups(
    const std::vector<CollectiveGroup>& groups, std::size_t ranks);

struct TransferCost {
  std::optional<double> latency;      ///< microseconds
  std::optional<double> bandwidth;    ///< bytes a microsecond
  std::optional<std::int64_t> bytes;  ///< size of one activation or gradient between stages
  /// A message takes this many times as long for each of its two ranks that computes meanwhile.
  std::optional<double> crowded;
  std::optional<double> slowdown;     ///< a computation takes so many times as long beside messages
  std::optional<std::int64_t> ahead;  ///< bytes of a message that move before its receive is there

  friend bool operator==(const TransferCost&, const TransferCost&) = default;
};

/// A device is not ten times as fast as another that it shares a step with: such a pace is a
/// mistake.
inline constexpr double kLeastPace = 0.1;
inline constexpr double kMostPace = 10;

struct Model {
  std::optional<Topology> topology;  ///< under Custom, `stages` holds it
  /// Each rank lists the stages of its chunks, and every stage from 0 to the last stands once;
  /// empty if the topology is not Custom.
  std::vector<std::vector<std::int32_t>> stages;
  Environment environment;
  ModuleTable modules;
  /// No rank performs an action in two groups.
  std::vector<CollectiveGroup> groups;
  TransferCost transfer;
  /// The device of each rank takes so many times as long to compute as modules state, from
  /// kLeastPace to kMostPace; of ranks that are not listed, as long.
  std::vector<double> paces;
  PlanOptions plan;
  std::optional<ModelConfiguration> configuration;  ///< derive() gives modules what follows from it
  std::vector<std::string> notes;  ///< how its reader took members that are written in an old way

  friend bool operator==(const Model&, const Model&) = default;
};

/// Whether a group of ranks dispatches or combines tokens.
[[nodiscard]] bool declares_exchanges(const Model& declared);

}  // namespace capo
