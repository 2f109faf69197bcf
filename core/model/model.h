// model.json: what a schedule does not say about the model it trains and the machine it runs on.
//
//   {"schema": 1, "topology": "loop", "communicators": "per-pair", "modules": {...}, ...}
//
// One schema for checking, simulating, running and measuring; each reads the parts it needs, and
// flags of the command line are shorthands for some of them. Everything is optional, and what is
// left out is undeclared, never guessed. docs/model-json.md explains every member,
// docs/schema/model.schema.json is the schema, core/text/model_reader.h the reader.

#pragma once

#include "core/model/environment.h"
#include "core/model/module_kinds.h"
#include "core/model/plan_options.h"
#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

/// The type of the operands that a module's products read; with Fp8 they are quantized copies, and
/// tensors between modules are bf16.
enum class DataType : std::uint8_t { Bf16, Fp16, Fp32, Fp8 };

/// "bf16", "fp16", "fp32", "fp8".
[[nodiscard]] std::string_view name_of(DataType type);

/// Sizes of a module's tensors, from 1; those that its kind does not have are left out.
struct ModuleShape {
  std::optional<std::int64_t> tokens;  ///< rows of one microbatch
  std::optional<std::int64_t> hidden;  ///< columns of the input
  std::optional<std::int64_t> ffn;     ///< columns of the output, or of the middle of an MLP
  std::optional<std::int64_t> groups;  ///< experts on this rank

  friend bool operator==(const ModuleShape&, const ModuleShape&) = default;
};

struct ModuleFlags {
  // What becomes of the weight gradient.
  bool delay_wgrad = false;              ///< the weight gradient is an action of its own
  bool fuse_wgrad_accumulation = false;  ///< W adds into main_grad
  bool overwrite_main_grad = false;      ///< W overwrites it
  bool grad_added_to_main_grad = false;  ///< the parameter has this attribute, as Megatron sets it
  bool zero_out_wgrad = false;           ///< the dummy that stands for the gradient is of zeros
  bool is_first_microbatch = false;      ///< the first W of a step overwrites main_grad
  bool wgrad_hooks = false;     ///< reductions hang on the module's own hooks, not on autograd's
  bool frozen_weight = false;   ///< a weight that needs no gradient
  bool shared_weight = false;   ///< another layer uses the same parameter
  bool bias = false;            ///< a bias, whose gradient comes with the weight's
  bool single_weight = false;   ///< one parameter for all groups
  bool single_bias = false;     ///< likewise
  bool scale_bias = false;      ///< the bias times a scale of each row, an input of the operation
  bool sharded_weight = false;  ///< distributed: its gradient is scattered when it is done
  // What its operands are.
  bool save_original_input = false;      ///< B and W read the input itself, not a copy
  bool high_precision_backward = false;  ///< B and W read unquantized operands
  bool gathered_input = false;           ///< the input is gathered: W reads a copy
  bool gathered_grad_output = false;     ///< likewise the gradient that comes in
  // What its graphs are told of its tensors.
  bool input_requires_grad = true;
  bool contiguous_input = true;
  bool contiguous_output = true;
  bool clone_param_grads = true;  ///< gradients that a replay returns are copies
  // What capture would meet.
  bool synchronises = false;     ///< waits for the device, or asks it for a value
  bool unjoined_stream = false;  ///< work goes to another stream, and nothing waits for it
  bool offloaded = false;        ///< its tensors leave the device between F and B

  friend bool operator==(const ModuleFlags&, const ModuleFlags&) = default;
};

/// Where the sizes of a grouped module's groups live.
enum class Splits : std::uint8_t {
  Host,    ///< numbers on the CPU, which capture bakes in
  Device,  ///< a tensor that the module makes or copies
  Input,   ///< a tensor on the device that is an input of the graph
};

/// "host", "device", "input".
[[nodiscard]] std::string_view name_of(Splits splits);

/// How main_grad lies in memory.
struct MainGrad {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements, one for each dimension

  friend bool operator==(const MainGrad&, const MainGrad&) = default;
};

/// Bytes of one microbatch, where they do not follow from the shape.
struct ModuleBytes {
  std::optional<std::int64_t> input;
  std::optional<std::int64_t> output;
  std::optional<std::int64_t> activations;  ///< held from F to B
  std::optional<std::int64_t> operands;     ///< of W, held from B to W
  std::optional<std::int64_t> weight;

  friend bool operator==(const ModuleBytes&, const ModuleBytes&) = default;
};

/// Microseconds of one microbatch; finite and never negative.
struct ModuleCost {
  std::optional<double> forward;
  std::optional<double> backward;  ///< the input-gradient half
  std::optional<double> weight;
  std::optional<double> dispatch;
  std::optional<double> combine;

  friend bool operator==(const ModuleCost&, const ModuleCost&) = default;
};

struct Module {
  std::string name;
  std::optional<ModuleKind> kind;
  std::optional<DataType> dtype;
  ModuleShape shape;
  ModuleFlags flags;
  ModuleBytes bytes;
  ModuleCost cost;
  std::optional<Splits> splits;
  std::optional<MainGrad> main_grad;
  std::int64_t calls = 1;            ///< of the module within one graph
  std::int64_t output_position = 0;  ///< of the output that needs a gradient, among its outputs
  std::int64_t grad_buckets = 1;     ///< that become ready with its weight gradients

  friend bool operator==(const Module&, const Module&) = default;
};

/// Which module each layer is; empty where undeclared.
struct ModuleTable {
  std::vector<Module> list;  ///< in the order of the text; their names differ
  /// For each rank, chunk and layer an index into `list`. A level with one entry speaks for all
  /// of its kind, so that [[[0]]] is a model of one kind of layer, however many ranks, chunks and
  /// layers there are. A rank without chunks is empty.
  std::vector<std::vector<std::vector<std::int32_t>>> layers;

  /// Null where nothing is declared of it. Chunks are counted from 1, layers from 0.
  [[nodiscard]] const Module* of(std::int32_t rank, std::int32_t chunk, std::int32_t layer) const;

  friend bool operator==(const ModuleTable&, const ModuleTable&) = default;
};

/// Ranks that perform a collective together, and what they so perform.
struct CollectiveGroup {
  std::string name;
  std::vector<std::int32_t> members;  ///< ranks, at least one, ascending
  std::vector<Kind> actions;  ///< dispatch, combine, unshard, reshard, reduce; at least one, sorted
  /// Streams by action where they differ from the default (dispatch and combine: "comm", the
  /// others: "dp"), sorted by action. Two streams of one rank are unordered but for data.
  std::vector<std::pair<Kind, std::string>> streams;

  friend bool operator==(const CollectiveGroup&, const CollectiveGroup&) = default;
};

struct TransferCost {
  std::optional<double> latency;      ///< microseconds
  std::optional<double> bandwidth;    ///< bytes a microsecond
  std::optional<std::int64_t> bytes;  ///< of one activation or gradient between stages

  friend bool operator==(const TransferCost&, const TransferCost&) = default;
};

struct Model {
  std::optional<Topology> topology;  ///< Custom: `stages` says
  /// Of each rank's chunks, under Custom and else empty: every stage from 0 to the last, once.
  std::vector<std::vector<std::int32_t>> stages;
  Environment environment;
  ModuleTable modules;
  /// No rank performs an action in two of them.
  std::vector<CollectiveGroup> groups;
  TransferCost transfer;
  PlanOptions plan;

  friend bool operator==(const Model&, const Model&) = default;
};

}  // namespace capo
