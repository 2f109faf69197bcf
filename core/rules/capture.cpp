// The rules about what a graph cannot hold, or bakes in, of the modules that it captures.
//
//   [1, -1]                 a module that waits for the device fails the capture: C02
//
// All but C08 and C11 judge declared modules by themselves: modules.h says how much a fault weighs
// under which plan. Tested by module_rules_test.cpp, capture_test.cpp and tests/corpus/rules/C01 to
// C11.

#include "core/frameworks/te/contract.h"
#include "core/model/module_kinds.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/hazard_words.h"
#include "core/rules/modules.h"
#include "core/rules/plan_view.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace capo::rules {

namespace {

bool bakes_in_splits(const Context& /*context*/, const Module& module) {
  const bool in_fp32 = module.kind && is_grouped(*module.kind) && module.dtype == DataType::Fp32;
  return module.splits == Splits::Host || in_fp32;
}

ModuleFinding describe_host_splits(const Context& context, const ModuleUse& use) {
  const bool by_choice = use.module->splits == Splits::Host;
  return {
      .message = fmt::format(
          "module `{}` takes the sizes of its groups from the CPU{}: the capture of {} bakes them "
          "in, and replays ignore new ones",
          use.module->name, by_choice ? "" : ", as grouped products in fp32 do",
          words::placed(context, *use.order, use.at)),
      .label = "groups have the sizes of the capture for ever",
      .help = by_choice ? "keep the splits on the device, or leave the layer out of the graphs"
                        : "compute in bf16 or fp16, or leave the layer out of the graphs"};
}

// Sizes of groups that are numbers on the CPU are constants of a graph.
//
//   [1, -1]     the capture cuts the tokens into groups as it finds them; replays with other tokens
//               cut them at the same places, without an error
//
// If the sizes come from a tensor on the device, asking for them waits for the device, which cannot
// be captured: that is C02. A grouped product in fp32 has no path but this one, in TE and in capo's
// own modules alike: so this is an error under either plan.
constexpr ModuleRule kHostSplits{.shows_at = ShowsAt::Forward,
                                 .at_fault = bakes_in_splits,
                                 .describe = describe_host_splits,
                                 .under_every_plan = true};

bool waits_for_device(const Context& /*context*/, const Module& module) {
  return module.flags.synchronises;
}

ModuleFinding describe_synchronises(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` waits for the device, which {} cannot while it is being captured "
              "(cudaErrorStreamCaptureUnsupported)",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture fails",
          .help = "keep the value on the device, or leave the layer out of the graphs"};
}

// A stream that is being captured cannot be waited for.
//
//   [1, -1]     `tensor.cpu()`, `item()`, a synchronisation: "operation not permitted when
//               stream is capturing", and everything after it fails too
constexpr ModuleRule kSynchronises{
    .shows_at = ShowsAt::Forward, .at_fault = waits_for_device, .describe = describe_synchronises};

bool leaves_stream_unjoined(const Context& /*context*/, const Module& module) {
  return module.flags.unjoined_stream;
}

ModuleFinding describe_unjoined_stream(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` starts work on another stream that nothing waits for: the capture of {} "
              "cannot end (cudaErrorStreamCaptureUnjoined)",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture does not end",
          .help = "record an event behind that work, and let the captured stream wait for it"};
}

// Work that goes to another stream must come back before the capture ends.
//
//   [1, -1]     the capture follows an event to the other stream; where no event leads back, ending
//               it fails
constexpr ModuleRule kUnjoinedStream{.shows_at = ShowsAt::Forward,
                                     .at_fault = leaves_stream_unjoined,
                                     .describe = describe_unjoined_stream};

bool is_called_twice(const Context& /*context*/, const Module& module) {
  return queues_weight_gradient(module) && module.calls > 1;
}

ModuleFinding describe_called_twice(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` is called {} times in one graph and queues as many weight gradients, of "
              "which {} takes one: what is left is taken for a later microbatch's",
              use.module->name, use.module->calls, words::placed(context, *use.order, use.at)),
          .label = "takes one entry, and leaves the others",
          .help = "give every call a module of its own, or do not delay the weight gradient",
          .replayed = use.entries({Kind::BackwardWeight}, 2),
          .second_label = "takes what was left"};
}

// A module queues an entry for each of its calls, and a weight gradient takes one of them.
//
//   [1, -1, -1.5]     called twice: B queues two entries, W takes the older one; the other stays,
//                     so that the next W takes what an earlier microbatch, or the warm-up, left
//
// There is one queue for each module, first in, first out, for all microbatches and graphs. No
// check asks whether it is empty.
constexpr ModuleRule kCalledTwice{.shows_at = ShowsAt::WeightGradient,
                                  .at_fault = is_called_twice,
                                  .describe = describe_called_twice};

constexpr std::int64_t kMostGroups = 64;

bool has_too_many_groups(const Context& /*context*/, const Module& module) {
  const bool on_device = module.splits && module.splits != Splits::Host;
  return module.kind && is_grouped(*module.kind) && on_device && !module.flags.single_weight &&
         module.shape.groups.value_or(0) > kMostGroups;
}

ModuleFinding describe_too_many_groups(const Context& context, const ModuleUse& use) {
  return {
      .message = fmt::format(
          "module `{}` has {} groups with a weight each: the grouped product of {} takes at most "
          "{}",
          use.module->name, *use.module->shape.groups, words::placed(context, *use.order, use.at),
          kMostGroups),
      .label = "this product has too many weights",
      .help = "set single_weight, one parameter for all groups, or split the module"};
}

// A grouped product over weights of their own takes at most 64 of them.
//
//   [1, -1]     with splits on the device, the addresses of the weights are arguments of one
//               kernel, which has room for 64
//
// One weight for all groups is one address, and the split path calls one product for each group.
constexpr ModuleRule kTooManyGroups{.shows_at = ShowsAt::Forward,
                                    .at_fault = has_too_many_groups,
                                    .describe = describe_too_many_groups};

bool hands_no_gradient(const Context& /*context*/, const Module& module) {
  const ModuleFlags& flags = module.flags;
  if (!module.kind || flags.input_requires_grad || flags.frozen_weight) return false;
  if (!gradients::contract_under(*module.kind, flags, gradients::Contract::Te)) return false;
  return !gradients::hands_a_gradient(*module.kind, flags, gradients::Contract::Te);
}

ModuleFinding describe_no_gradient(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` hands nobody a gradient: its input needs none and its weight's is not "
              "returned, so that the capture of {} fails (cudaErrorStreamCaptureIsolation)",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture fails",
          .help =
              "give the parameter grad_added_to_main_grad and fuse_wgrad_accumulation, so that "
              "backward returns a dummy"};
}

// A backward that hands nobody a gradient cannot be captured.
//
//   [1, -1]     the input needs none, and the weight's is None, being fused or delayed: the leaf
//               stays bound to the stream of the warm-up, and the engine joins that within the
//               capture
//
// A real gradient of anything draws that stream into the capture, a dummy does too; so a bias or a
// norm in front is enough. This was found with PyTorch 2.11. core/frameworks/te/contract.h says
// which module returns what; a module of undeclared kind may have a norm.
constexpr ModuleRule kNoGradient{
    .shows_at = ShowsAt::Backward, .at_fault = hands_no_gradient, .describe = describe_no_gradient};

bool is_offloaded(const Context& /*context*/, const Module& module) {
  return module.flags.offloaded;
}

ModuleFinding describe_offloaded_address(const Context& context, const ModuleUse& use) {
  const std::vector<std::size_t> forwards = use.entries({Kind::Forward}, 1);
  std::vector<std::size_t> replayed{use.at};
  replayed.insert(replayed.end(), forwards.begin(), forwards.end());
  return {.message = fmt::format(
              "module `{}` has tensors that leave the device between forward and backward: replays "
              "of {} read the addresses that they had at capture",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "reads where they were",
          .help = "keep them on the device, or leave the layer out of the graphs",
          .replayed = std::move(replayed),
          .second_label = "made here, then moved away"};
}

// A graph reads where its tensors were when it was captured.
//
//   [1, -1]     offloaded after F and loaded again before B, the tensors lie somewhere else; the
//               replay of B reads the old place, which may be another's by now, or be unmapped
constexpr ModuleRule kOffloadedAddress{.shows_at = ShowsAt::Backward,
                                       .at_fault = is_offloaded,
                                       .describe = describe_offloaded_address};

Diagnostic at_odds(const Context& context, const OrderView& order, std::int32_t chunk) {
  const std::size_t whole = order.find(Kind::Backward, chunk, 0);
  const std::size_t half = order.find(Kind::BackwardInput, chunk, 0);
  const bool whole_is_later = whole > half;
  const Label is_whole{order.entries[whole].span(), "whole"};
  const Label is_half{order.entries[half].span(), "the input half"};
  return {
      .message = fmt::format(
          "{} {}, and {} before it {}: TransformerEngine captures the modules of a chunk with "
          "delay_wgrad_compute or without",
          words::placed(context, order, std::max(whole, half)),
          whole_is_later ? "is a whole backward" : "leaves its weight gradient to W",
          words::quoted(context, order.entries[std::min(whole, half)]),
          whole_is_later ? "leaves its weight gradient to W" : "is a whole one"),
      .labels = whole_is_later ? std::vector{is_whole, is_half} : std::vector{is_half, is_whole},
      .help = {.text = "split every backward of the chunk or none of them; `--plan safe` takes "
                       "each as it is"},
      .witness = words::entries(context, order, {std::min(whole, half), std::max(whole, half)})};
}

// Megatron's own graphs are captured by Megatron.
bool captured_by_megatron(const Context& context) {
  return context.options().plan.kind == PlanKind::McoreLocal;
}

bool has_hooks(const Context& context, const Module& module) {
  return module.flags.hooks && !captured_by_megatron(context);
}

ModuleFinding describe_hooks(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` has hooks when the capture of {} begins: TransformerEngine refuses it "
              "(RuntimeError), since no replay would run them",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its capture is refused",
          .help =
              "register them on the graphed callable, behind the capture, and hand those that "
              "the capture needs over as capture_time_hooks"};
}

// TE takes no module that has hooks of PyTorch's when it is handed in.
//
//   [1, -1]     "Modules must not have hooks registered at the time they are passed."
//
// It looks at what it is handed and not at the modules inside of that, whose hooks run in the
// capture and are lost like all Python there.
constexpr ModuleRule kHooks{
    .shows_at = ShowsAt::Forward, .at_fault = has_hooks, .describe = describe_hooks};

bool needs_hooks_each_call(const Context& context, const Module& module) {
  return module.flags.hooks_each_call && !captured_by_megatron(context);
}

ModuleFinding describe_hooks_each_call(const Context& context, const ModuleUse& use) {
  return {.message = fmt::format(
              "module `{}` has capture-time hooks that every call needs: they run in the passes "
              "before capture and at the capture, outside of the graph, and at no replay of {}",
              use.module->name, words::placed(context, *use.order, use.at)),
          .label = "its replays run no hook",
          .help = "register what every call needs on the graphed callable, behind the capture",
          .replayed = use.entries({Kind::Forward}, 2),
          .second_label = "nor do those of other microbatches"};
}

// Hooks that are handed in for the capture run around each forward and backward of the passes
// before it and of itself, outside of the graph.
//
//   [1, 1, -1, -1]     a hook that gathers the parameters before F: they are there at the capture,
//                      and the replays read what lies at their addresses by then
//
// A replay runs the graph and no Python. No hook runs around a weight gradient that is captured by
// itself.
constexpr ModuleRule kHooksEachCall{.shows_at = ShowsAt::Forward,
                                    .at_fault = needs_hooks_each_call,
                                    .describe = describe_hooks_each_call};

// A chunk leaves all of its weight gradients to W, or none: its modules are made to delay them or
// not, once and for every graph.
//
//   rank 0: F1.0 F1.1 I1.0 W1.0 B1.1     modules that delay leave B1.1's gradient in their queue;
//                                        of those that do not, there is nothing for W1.0 to capture
//
// Either way TE ends in an error at capture, and no TE list can say such an order. Capo's own plan
// takes each backward apart for itself, so this is about plan te alone; an order without a plan may
// be PyTorch's, which often does this.
//
// There is one finding for each chunk of an order, at the entry that is at odds with those before.
void half_delayed(const Context& context, Findings& out) {
  if (context.options().plan.kind != PlanKind::Te) return;
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;  // every replayed entry has been captured
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const ChunkTally& tally = order.of(chunk);
      if (tally.inputs == 0 || tally.backwards == 0 || !out.found()) continue;
      out.report(at_odds(context, order, chunk));
    }
  }
}

Diagnostic no_weight_graph(const Context& context, const OrderView& order, std::int32_t chunk) {
  const std::size_t weight = order.find(Kind::BackwardWeight, chunk, 0);
  return {
      .message = fmt::format(
          "{} is in none of Megatron's local graphs, which are a forward and a backward of each "
          "layer: a replayed backward queues nothing that it could take",
          words::placed(context, order, weight)),
      .labels = {{order.entries[weight].span(), "not captured"}},
      .help = {.text = "leave the weight gradients to the backwards, or capture with "
                       "TransformerEngine: `--plan te`"},
      .witness = words::entries(context, order, {weight})};
}

// The forward of a layer whose output a later layer of its chunk has yet to read, and the backward
// that comes before.
struct Between {
  MemoryUser forward;
  MemoryUser backward;
};

std::optional<Between> backward_between(const PlanView& view, std::int32_t rank) {
  std::optional<MemoryUser> open;
  for (const Work& work : view.captured()[as_index(rank)]) {
    const MemoryUser user{.rank = rank, .entry = work.entry, .kind = work.kind};
    if (is_backward(work.kind) && open) return Between{*open, user};
    if (work.kind != Kind::Forward) continue;
    open.reset();
    const bool more = work.layer + 1 < view.table().layers(rank, work.chunk);
    if (work.layer != kAllLayers && more) open = user;
  }
  return std::nullopt;
}

Diagnostic still_to_be_read(const Context& context, const Between& between) {
  const Wiring& wiring = *context.wirings().front();
  return {.message = fmt::format(
              "{} comes between two layers of {}: Megatron captures a backward only where no layer "
              "of a forward is still to read what the one before it made, and fails an assertion "
              "here",
              memory_user_name(context, wiring, between.backward),
              memory_user_name(context, wiring, between.forward)),
          .labels = {{memory_user_span(context, wiring, between.backward), "captured here"},
                     {memory_user_span(context, wiring, between.forward), "not over"}},
          .help = {.text = "run the layers of a chunk one behind another, or capture with "
                           "TransformerEngine: `--plan te`"},
          .witness = {.kind = WitnessKind::Entries,
                      .tasks = {memory_user_reference(context, wiring, between.forward),
                                memory_user_reference(context, wiring, between.backward)}}};
}

// Megatron's local graphs are a forward and a backward of each layer, captured in the order in
// which the first step ran them.
//
//   [1, -1, -1.5]     no graph has the weight gradient: B queued its operands when it was captured,
//                     and its replays run no line of Python
//   F1 and B1 of two layers each, overlapped: F, B, F, B     the second layer's input is still
//                                                            counted when the first B is captured
//
// There is one finding for each chunk with weight gradients apart, and one for each rank whose
// layers run between each other. It is about plan mcore-local alone.
void not_captured_locally(const Context& context, Findings& out) {
  if (context.options().plan.kind != PlanKind::McoreLocal) return;
  for (const OrderView& order : context.orders()) {
    if (order.replay) continue;  // every replayed entry has been captured
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      if (order.of(chunk).weights > 0 && out.found())
        out.report(no_weight_graph(context, order, chunk));
    }
    const auto between = backward_between(context.plan_view(), order.rank);
    if (between && out.found()) out.report(still_to_be_read(context, *between));
  }
}

constexpr Rule kCaptureRules[] = {
    {"C01", "host-splits", "sizes of groups that a capture bakes in", Family::Capture,
     Pass::Modules, judge_modules<kHostSplits>},
    {"C02", "synchronises", "a wait for the device in a graph", Family::Capture, Pass::Modules,
     judge_modules<kSynchronises>},
    {"C03", "unjoined-stream", "work on a stream that nothing waits for", Family::Capture,
     Pass::Modules, judge_modules<kUnjoinedStream>},
    {"C04", "called-twice", "a module that queues more than its weight gradient takes",
     Family::Capture, Pass::Modules, judge_modules<kCalledTwice>},
    {"C05", "too-many-groups", "more groups than a grouped product takes", Family::Capture,
     Pass::Modules, judge_modules<kTooManyGroups>},
    {"C06", "no-gradient", "a backward that hands nobody a gradient", Family::Capture,
     Pass::Modules, judge_modules<kNoGradient>},
    {"C07", "offloaded-address", "tensors that move after their capture", Family::Capture,
     Pass::Modules, judge_modules<kOffloadedAddress>},
    {"C09", "hooks-refused", "hooks on a module whose capture begins", Family::Capture,
     Pass::Modules, judge_modules<kHooks>},
    {"C10", "hooks-not-replayed", "capture-time hooks that every call needs", Family::Capture,
     Pass::Modules, judge_modules<kHooksEachCall>},
    {"C08", "half-delayed", "a chunk that delays only some of its weight gradients",
     Family::Capture, Pass::Buffers, half_delayed},
    {"C11", "not-local", "work that Megatron's local graphs cannot hold", Family::Capture,
     Pass::Buffers, not_captured_locally},
};

}  // namespace

std::span<const Rule> capture_rules() {
  return kCaptureRules;
}

}  // namespace capo::rules
