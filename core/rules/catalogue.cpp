#include "core/base/assert.h"
#include "core/rules/checks.h"
#include "core/rules/rule.h"

#include <algorithm>
#include <array>

namespace capo {

namespace {

using enum Family;

constexpr std::array kCatalogue{
    Rule{"I01", "malformed", "the input is not in the language", Input, Pass::Reading, nullptr},
    Rule{"I02", "limit", "the input is larger than a limit allows", Input, Pass::Reading, nullptr},

    Rule{"S01", "not-finite", "an entry is NaN or infinite", Shape, Pass::Entries,
         rules::not_finite},
    Rule{"S02", "not-a-half", "a fraction other than one half", Shape, Pass::Entries,
         rules::not_a_half},
    Rule{"S03", "float-chunk", "a whole number written as a float", Shape, Pass::Entries,
         rules::float_chunk},
    Rule{"S04", "chunk-zero", "chunks are counted from 1", Shape, Pass::Entries, rules::chunk_zero},
    Rule{"S05", "half-forward", "a forward cannot be a half", Shape, Pass::Entries,
         rules::half_forward},
    Rule{"S06", "empty-order", "an order without a forward", Shape, Pass::Entries,
         rules::empty_order},
    Rule{"S07", "microbatch-missing", "an action without its microbatch", Shape, Pass::Entries,
         rules::microbatch_missing},
    Rule{"S08", "dropped-text", "PyTorch reads only the beginning of a cell", Shape, Pass::Entries,
         rules::dropped_text},
    Rule{"S09", "composite-form", "a composite that is none", Shape, Pass::Entries,
         rules::composite_form},
    Rule{"S10", "surplus-microbatch", "a microbatch on an action of a whole stage", Shape,
         Pass::Entries, rules::surplus_microbatch},
    Rule{"S11", "table-form", "an action that this kind of table does not hold", Shape,
         Pass::Entries, rules::table_form},

    Rule{"S12", "unknown-chunk", "a chunk that the rank does not have", Shape, Pass::Counts,
         rules::unknown_chunk},
    Rule{"S13", "missing-chunk", "a chunk that never runs", Shape, Pass::Counts,
         rules::missing_chunk},
    Rule{"S14", "unequal-microbatches", "chunks run different numbers of microbatches", Shape,
         Pass::Counts, rules::unequal_microbatches},
    Rule{"S15", "backward-count", "a chunk has not as many backwards as forwards", Shape,
         Pass::Counts, rules::backward_count},
    Rule{"S16", "weight-count", "a chunk has not as many weight gradients as backwards", Shape,
         Pass::Counts, rules::weight_count},
    Rule{"S17", "weight-undeclared", "a weight gradient of a chunk that does not delay it", Shape,
         Pass::Counts, rules::weight_undeclared},
    Rule{"S18", "layers-per-chunk", "layers that do not fit the chunks", Shape, Pass::Counts,
         rules::layers_per_chunk},
    Rule{"S19", "microbatch-out-of-range", "a microbatch that the step does not have", Shape,
         Pass::Counts, rules::microbatch_out_of_range},
    Rule{"S20", "repeated-action", "the same action twice", Shape, Pass::Counts,
         rules::repeated_action},
    Rule{"S21", "missing-action", "an action of a microbatch is missing", Shape, Pass::Counts,
         rules::missing_action},
    Rule{"S22", "split-and-whole", "a microbatch has a whole backward and a split one", Shape,
         Pass::Counts, rules::split_and_whole},

    Rule{"S23", "backward-ahead", "backwards run ahead of forwards", Shape, Pass::Order,
         rules::backward_ahead},
    Rule{"S24", "weight-ahead", "weight gradients run ahead of backwards", Shape, Pass::Order,
         rules::weight_ahead},

    Rule{"D01", "backward-before-forward", "a backward before its own forward", Dependencies,
         Pass::Order, rules::backward_before_forward},
    Rule{"D02", "weight-before-backward", "a weight gradient before its own backward", Dependencies,
         Pass::Order, rules::weight_before_backward},
    Rule{"D05", "parameters-away", "a chunk without its parameters, or with them twice",
         Dependencies, Pass::Order, rules::parameters_away},
    Rule{"D06", "exchange-order", "an exchange of tokens out of its place", Dependencies,
         Pass::Order, rules::exchange_order},

    Rule{"P01", "stage-twice", "a stage on two ranks", Family::Placement, Pass::Placement,
         rules::stage_twice},
    Rule{"P02", "stage-nowhere", "a stage on no rank", Family::Placement, Pass::Placement,
         rules::stage_nowhere},
    Rule{"P03", "stage-unknown", "a stage that the model does not have", Family::Placement,
         Pass::Placement, rules::stage_unknown},

    Rule{"D03", "stage-order", "a stage before the stage whose output it reads", Dependencies,
         Pass::Stages, rules::stage_order},
    Rule{"D04", "dependency-cycle", "orders that wait for each other", Dependencies, Pass::Stages,
         rules::dependency_cycle},

    Rule{"R01", "megatron-form", "an order that Megatron's loop does not run", Family::Routing,
         Pass::Routing, rules::megatron_form},
    Rule{"R02", "input-not-routed", "an input that Megatron does not receive in time",
         Family::Routing, Pass::Routing, rules::input_not_routed},

    Rule{"T01", "transfer-twice", "the same transfer twice", Family::Transfers, Pass::Transfers,
         rules::transfer_twice},
    Rule{"T02", "transfer-nowhere", "a transfer without another end", Family::Transfers,
         Pass::Transfers, rules::transfer_nowhere},
    Rule{"T03", "send-without-receive", "a send that nobody receives", Family::Transfers,
         Pass::Transfers, rules::send_without_receive},
    Rule{"T04", "receive-without-send", "a receive that nobody sends to", Family::Transfers,
         Pass::Transfers, rules::receive_without_send},
    Rule{"T05", "input-not-received", "an input that never arrives", Family::Transfers,
         Pass::Transfers, rules::input_not_received},
    Rule{"T06", "send-too-early", "a send before there is something to send", Family::Transfers,
         Pass::Transfers, rules::send_too_early},
    Rule{"T07", "receive-too-late", "a receive behind its reader", Family::Transfers,
         Pass::Transfers, rules::receive_too_late},
    Rule{"T08", "message-mismatch", "a receive that takes the wrong message", Family::Transfers,
         Pass::Transfers, rules::message_mismatch},
    Rule{"T09", "deadlock", "ranks that wait for each other for ever", Family::Transfers,
         Pass::Transfers, rules::deadlock},
    Rule{"T10", "collective-order", "collectives that do not meet", Family::Transfers,
         Pass::Transfers, rules::collective_order},

    // gradients/
    Rule{"G01", "wgrad-lost", "a weight gradient that no replay hands over", Gradients,
         Pass::Modules, rules::wgrad_lost},
    Rule{"G02", "bias-gradient-lost", "a bias gradient that no replay hands over", Gradients,
         Pass::Modules, rules::bias_gradient_lost},
    Rule{"G03", "gradient-uninitialised", "a gradient of memory that nobody has written", Gradients,
         Pass::Modules, rules::gradient_uninitialised},
    Rule{"G04", "frozen-weight", "a delayed weight gradient of a frozen weight", Gradients,
         Pass::Modules, rules::frozen_weight},
    Rule{"G05", "double-accumulation", "a gradient that is added to itself", Gradients,
         Pass::Modules, rules::double_accumulation},
    Rule{"G06", "shared-weight", "a weight of two layers that is counted twice", Gradients,
         Pass::Modules, rules::shared_weight},
    Rule{"G07", "main-grad-layout", "a main_grad that a grouped product cannot write", Gradients,
         Pass::Modules, rules::main_grad_layout},
    Rule{"G08", "hooks-not-run", "reductions on hooks that no replay runs", Gradients,
         Pass::Modules, rules::hooks_not_run},
    Rule{"G09", "set-order", "reductions that start in an order of chance", Gradients,
         Pass::Modules, rules::set_order},
    Rule{"G10", "returned-gradient-alias", "a returned gradient that a later replay overwrites",
         Gradients, Pass::Modules, rules::returned_gradient_alias},
    Rule{"G11", "sharded-weight", "a delayed weight gradient of a distributed weight", Gradients,
         Pass::Modules, rules::sharded_weight},
    Rule{"G12", "first-writer", "a weight gradient that overwrites another", Gradients,
         Pass::Gradients, rules::first_writer},
    Rule{"G13", "reduce-early", "a reduction before the last gradient", Gradients, Pass::Gradients,
         rules::reduce_early},
    Rule{"G14", "reduce-missing", "a chunk whose gradients are never reduced", Gradients,
         Pass::Gradients, rules::reduce_missing},
    Rule{"G15", "reduce-twice", "gradients that are reduced a second time", Gradients,
         Pass::Gradients, rules::reduce_twice},

    // capture/
    Rule{"C01", "host-splits", "sizes of groups that a capture bakes in", Capture, Pass::Modules,
         rules::host_splits},
    Rule{"C02", "synchronises", "a wait for the device in a graph", Capture, Pass::Modules,
         rules::synchronises},
    Rule{"C03", "unjoined-stream", "work on a stream that nothing waits for", Capture,
         Pass::Modules, rules::unjoined_stream},
    Rule{"C04", "called-twice", "a module that queues more than its weight gradient takes", Capture,
         Pass::Modules, rules::called_twice},
    Rule{"C05", "too-many-groups", "more groups than a grouped product takes", Capture,
         Pass::Modules, rules::too_many_groups},
    Rule{"C06", "no-gradient", "a backward that hands nobody a gradient", Capture, Pass::Modules,
         rules::no_gradient},
    Rule{"C07", "offloaded-address", "tensors that move after their capture", Capture,
         Pass::Modules, rules::offloaded_address},
    Rule{"C08", "half-delayed", "a chunk that delays only some of its weight gradients", Capture,
         Pass::Buffers, rules::half_delayed},

    // buffers/
    Rule{"B01", "static-input-reuse", "an input that was overwritten before its last reader",
         Buffers, Pass::Buffers, rules::static_input_reuse},
    Rule{"B02", "grad-output-reuse", "an incoming gradient that was overwritten before its reader",
         Buffers, Pass::Buffers, rules::grad_output_reuse},
    Rule{"B03", "pool-reuse", "pool memory that was taken over before its last reader", Buffers,
         Pass::Buffers, rules::pool_reuse},
    Rule{"B04", "p2p-window", "a gradient that is overwritten while it is sent", Buffers,
         Pass::Buffers, rules::p2p_window},
    Rule{"B05", "weak-input-key", "graphs share an input, and one of them needs no gradient of it",
         Buffers, Pass::Buffers, rules::weak_input_key},
    Rule{"B06", "weak-output-key", "graphs share incoming gradients of different outputs", Buffers,
         Pass::Buffers, rules::weak_output_key},
    Rule{"B07", "strides-lost", "a static tensor whose strides a graph forgets", Buffers,
         Pass::Buffers, rules::strides_lost},
    Rule{"B08", "over-budget", "more memory than the budget", Buffers, Pass::Buffers,
         rules::over_budget},
    Rule{"E01", "slot-race", "memory used by two streams that nothing orders", Streams,
         Pass::Buffers, rules::slot_race},
    Rule{"E02", "workspace-race", "grouped products of two streams in one workspace", Streams,
         Pass::Buffers, rules::workspace_race},
    Rule{"Y01", "replay-order", "a replay that is not in the order of capture", Replay,
         Pass::Buffers, rules::replay_order},
};

}  // namespace

std::span<const Rule> catalogue() {
  return kCatalogue;
}

const Rule* find_rule(std::string_view id_or_name) {
  const auto found = std::find_if(kCatalogue.begin(), kCatalogue.end(), [&](const Rule& rule) {
    return rule.id == id_or_name || rule.name == id_or_name;
  });
  return found == kCatalogue.end() ? nullptr : &*found;
}

std::string_view name_of(Family family) {
  switch (family) {
    case Family::Input:
      return "input";
    case Family::Shape:
      return "shape";
    case Family::Dependencies:
      return "dependencies";
    case Family::Placement:
      return "placement";
    case Family::Routing:
      return "routing";
    case Family::Transfers:
      return "transfers";
    case Family::Buffers:
      return "buffers";
    case Family::Streams:
      return "streams";
    case Family::Replay:
      return "replay";
    case Family::Gradients:
      return "gradients";
    case Family::Capture:
      return "capture";
  }
  CAPO_UNREACHABLE();
}

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::Reading:
      return "reading";
    case Pass::Entries:
      return "entries";
    case Pass::Counts:
      return "counts";
    case Pass::Order:
      return "order";
    case Pass::Placement:
      return "placement";
    case Pass::Stages:
      return "stages";
    case Pass::Routing:
      return "routing";
    case Pass::Transfers:
      return "transfers";
    case Pass::Modules:
      return "modules";
    case Pass::Gradients:
      return "gradients";
    case Pass::Buffers:
      return "buffers";
  }
  CAPO_UNREACHABLE();
}

}  // namespace capo
