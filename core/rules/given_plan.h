// A plan that somebody else made, read from a file and put on the buffers of a step, so that it is
// judged as capo's own plans are.
//
//   {"buffers": [{"rank": 0, "chunk": 1, "layer": 0, "microbatch": 0, "kind": "output",
//                 "region": "pool", "offset": 64, "bytes": 64}]}     as --plan-out writes it
//   {"slots": {"0": {"0": [0, 1, 0, 1]}}}     torch's slots: rank, stage, a slot each microbatch
//   {"graph_memory_slots": {"0": [[0, 0, 0, 0, 0, 0, 0], ...]}}     TransformerEngine's: rank,
//   graph
//
// A plan fits a step if it names each buffer that the orders use, no other, each with the model's
// bytes. What else a certificate holds is read over: it is what its writer claims, and here the
// hazards are looked for anew. Slots hold what torch 2.15 calls an activation, from its forward to
// its backward or weight gradient: static inputs and activations of all layers, one behind another.
// First comes what is read last, so that any two activations of one slot share memory that both
// need to their ends. Seven numbers of a graph are TransformerEngine's proposal: graphs of one
// saved arena share what their forwards keep, those of one physical slot, model chunk and layer
// their outputs, and those of one arena of user gradients their grad inputs. Every other buffer has
// memory of its own. docs/schema/given-plan.schema.json is the schema. Tested by
// given_plan_test.cpp.

#pragma once

#include "core/diag/span.h"
#include "core/graph/stage_map.h"
#include "core/plan/plan.h"
#include "core/plan/work.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace capo {

class Context;

/// The place of one buffer as a file has it, with where the file says so.
struct GivenBuffer {
  Buffer buffer;
  Region region = Region::Pool;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  /// Those that are this tensor too: what a layer reads is what its neighbour made.
  std::vector<Buffer> also;
  Span span;
};

/// The slots of a stage's microbatches.
struct GivenSlots {
  std::int32_t rank = 0;
  std::int32_t stage = 0;
  std::vector<std::int32_t> slots;  ///< by microbatch
  Span span;
};

/// A graph's seven numbers, in the order in which they stand.
struct GraphSlot {
  std::int32_t saved_arena = 0;
  std::int32_t physical_slot = 0;
  std::int32_t io_branch = 0;  ///< mutually exclusive graphs have one each; names no memory
  std::int32_t model_chunk = 0;
  std::int32_t layer = 0;
  std::int32_t warmup_alias_group = 0;  ///< graphs whose warm-up is one; names no memory
  std::int32_t user_grad_arena = 0;
};

/// The slots of a rank's graphs.
struct GivenGraphSlots {
  std::int32_t rank = 0;
  std::vector<GraphSlot>
      slots;  ///< by chunk, microbatch and layer, as TransformerEngine has graphs
  Span span;
};

struct GivenPlan {
  std::variant<std::vector<GivenBuffer>, std::vector<GivenSlots>, std::vector<GivenGraphSlots>>
      places;
  Span span;  ///< the list of them all
};

[[nodiscard]] Read<GivenPlan> read_given_plan(std::string_view text, const Limits& limits);

/// The plan for a step whose ranks do this work. Refuses one that does not fit, at its place.
[[nodiscard]] Read<Plan> plan_of(const GivenPlan& given, const BufferTable& table,
                                 const StageMap& map, const std::vector<std::vector<Work>>& work);

/// Why the given plan does not fit the orders of a context, with the place of what is wrong in the
/// plan's own text, which a finding about the orders could not point at. nullopt if it fits, or if
/// the orders have errors or too many buffers, which check() tells.
[[nodiscard]] std::optional<Refusal> misfit_of_given_plan(const Context& context);

}  // namespace capo
