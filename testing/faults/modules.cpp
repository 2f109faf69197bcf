// Faults of declared modules and of reductions: one chunk gets a module with a flag that its order
// cannot bear, or its gradients are reduced early, late or never.
//
//   F1.0 B1.0 W1.0 with fuse_wgrad_accumulation   ->   without      wgrad-lost: G01 at W1.0
//
// The table at the end names the faults. Tested by fault_test.cpp and
// tests/properties/module_faults_test.cpp.

#include "testing/faults/modules.h"

#include "core/base/index.h"
#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::testing {

namespace {

bool fits(const ModuleSlip& slip, Delay delay) {
  switch (slip.of) {
    case Delayed::Yes:
      return delay == Delay::Always;
    case Delayed::No:
      return delay == Delay::Never;
    case Delayed::Either:
      return delay != Delay::Mixed;
  }
  return false;
}

struct ChunkPlace {
  std::size_t rank;
  std::size_t chunk;  // counts from 0
};

std::vector<ChunkPlace> chunks_that_fit(const Schedule& schedule, const ModuleSlip& slip) {
  std::vector<ChunkPlace> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const std::vector<Delay>& delay = *schedule.ranks[r].delay;
    for (std::size_t c = 0; c < delay.size(); ++c) {
      if (fits(slip, delay[c])) found.push_back({r, c});
    }
  }
  return found;
}

}  // namespace

std::optional<Broken<Declared>> with_module(const Declared& sound, std::size_t choice,
                                            const ModuleSlip& slip,
                                            const std::function<void(Module&)>& spoil) {
  const auto place = chosen(chunks_that_fit(sound.schedule, slip), choice);
  if (!place || *sound.schedule.microbatches < slip.microbatches) return std::nullopt;
  const RankOrder& rank = sound.schedule.ranks[place->rank];
  Declared broken = sound;
  ModuleTable& table = broken.options.modules;
  Module module{.name = "faulty", .kind = ModuleKind::Linear};
  module.flags.delay_wgrad = (*rank.delay)[place->chunk] == Delay::Always;
  module.flags.fuse_wgrad_accumulation = true;
  spoil(module);
  table.layers[place->rank][place->chunk] = {static_cast<std::int32_t>(table.list.size())};
  table.list.push_back(module);

  const auto chunk = static_cast<std::int32_t>(place->chunk) + 1;
  const auto shown = std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
    return entry.kind == slip.shown_at && entry.chunk == chunk;
  });
  const auto at = as_index(shown - rank.order.begin());
  return {{broken, slip.rule, fault_place(broken.schedule, {.rank = place->rank, .at = at})}};
}

std::vector<Position> reductions(const Schedule& schedule) {
  return entries_that(schedule, [](const Entry& entry, const RankOrder&) {
    return entry.kind == Kind::ReduceGradient;
  });
}

Position last_gradient(const Schedule& schedule, std::size_t rank, std::int32_t chunk) {
  const RankOrder& holder = schedule.ranks[rank];
  const bool halves = (*holder.delay)[as_index(chunk) - 1] == Delay::Always;
  Position last{.rank = rank};
  for (std::size_t at = 0; at < holder.order.size(); ++at) {
    const Entry& entry = holder.order[at];
    const bool whole = entry.kind == Kind::Backward && !halves;
    if (entry.chunk == chunk && (whole || entry.kind == Kind::BackwardWeight)) last.at = at;
  }
  return last;
}

namespace {

// The finding is at the first delayed weight gradient of the chunk.
constexpr ModuleSlip at_weight(std::string_view rule) {
  return {.rule = rule, .of = Delayed::Yes, .shown_at = Kind::BackwardWeight};
}

// A delayed weight gradient is no longer fused.
std::optional<Broken<Declared>> wgrad_lost(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("G01"),
                     [](Module& module) { module.flags.fuse_wgrad_accumulation = false; });
}

// A module that delays its weight gradient gets a bias.
std::optional<Broken<Declared>> bias_gradient_lost(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("G02"),
                     [](Module& module) { module.flags.bias = true; });
}

// The delayed weight gradient of a grouped-linear is no longer fused.
std::optional<Broken<Declared>> gradient_uninitialised(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "G03", .of = Delayed::Yes, .shown_at = Kind::Backward},
                     [](Module& module) {
                       module.kind = ModuleKind::GroupedLinear;
                       module.flags.fuse_wgrad_accumulation = false;
                     });
}

// The weight of a module that delays is frozen.
std::optional<Broken<Declared>> frozen_weight(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("G04"),
                     [](Module& module) { module.flags.frozen_weight = true; });
}

// ops.BasicLinear is asked to overwrite main_grad.
std::optional<Broken<Declared>> double_accumulation(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "G05", .of = Delayed::No, .shown_at = Kind::Backward},
                     [](Module& module) {
                       module.kind = ModuleKind::BasicLinearOp;
                       module.flags.overwrite_main_grad = true;
                     });
}

// Whether the schedule's table has the same actions in the same places and numbers the chunks of
// each rank alike, by their stages. Chunks that are not wired would be put into another order.
bool same_as_table(const Schedule& schedule) {
  return schedule.topology != Topology::Independent &&
         std::all_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
           return std::is_sorted(rank.stages.begin(), rank.stages.end());
         });
}

// Two layers of a stage share a weight, and PyTorch takes its backward apart.
std::optional<Broken<Declared>> shared_weight(const Declared& sound, std::size_t choice) {
  if (!same_as_table(sound.schedule)) return std::nullopt;
  auto broken = with_module(sound, choice, at_weight("G06"), [](Module& module) {
    module.flags.fuse_wgrad_accumulation = false;
    module.flags.shared_weight = true;
  });
  if (!broken) return std::nullopt;
  ModuleTable& table = broken->subject.options.modules;
  const auto faulty = static_cast<std::int32_t>(table.list.size()) - 1;
  for (auto& rank : table.layers) {
    for (auto& layers : rank) {
      if (layers.front() == faulty) layers.push_back(faulty);
    }
  }
  broken->subject.options.plan = {};
  broken->subject.table = true;
  return broken;
}

// main_grad of a single weight is transposed.
std::optional<Broken<Declared>> main_grad_layout(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "G07", .shown_at = Kind::Backward},
                     [](Module& module) {
                       module.kind = ModuleKind::GroupedLinearOp;
                       module.flags.single_weight = true;
                       module.main_grad = MainGrad{.shape = {2, 3, 5}, .strides = {15, 1, 3}};
                     });
}

// Reductions hang on the hooks of an operation.
std::optional<Broken<Declared>> hooks_not_run(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("G08"), [](Module& module) {
    module.kind = ModuleKind::GroupedLinearOp;
    module.flags.wgrad_hooks = true;
  });
}

// A transformer-layer makes two buckets ready.
std::optional<Broken<Declared>> set_order(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("G09"), [](Module& module) {
    module.kind = ModuleKind::TransformerLayer;
    module.flags.wgrad_hooks = true;
    module.grad_buckets = 2;
  });
}

// A returned weight gradient is not cloned.
std::optional<Broken<Declared>> returned_gradient_alias(const Declared& sound, std::size_t choice) {
  return with_module(
      sound, choice,
      {.rule = "G10", .of = Delayed::No, .shown_at = Kind::Backward, .microbatches = 2},
      [](Module& module) {
        module.flags.fuse_wgrad_accumulation = false;
        module.flags.clone_param_grads = false;
      });
}

// The weight of a module that delays is distributed.
std::optional<Broken<Declared>> sharded_weight(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("G11"),
                     [](Module& module) { module.flags.sharded_weight = true; });
}

// Every weight gradient of several microbatches overwrites main_grad.
std::optional<Broken<Declared>> overwriting_each(const Declared& sound, std::size_t choice) {
  return with_module(
      sound, choice,
      {.rule = "G12", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight, .microbatches = 2},
      [](Module& module) { module.flags.overwrite_main_grad = true; });
}

// The microbatch with the first forward overwrites main_grad, and is not the first to write it.
std::optional<Broken<Declared>> overwriting_late(const Declared& sound, std::size_t choice) {
  auto broken = with_module(
      sound, choice,
      {.rule = "G12", .of = Delayed::Yes, .shown_at = Kind::BackwardWeight, .microbatches = 2},
      [](Module& module) { module.flags.is_first_microbatch = true; });
  if (!broken) return std::nullopt;
  broken->subject.options.plan = {};
  const auto rank = as_index(broken->place->rank);
  const auto& layers = broken->subject.options.modules.layers[rank];
  const auto faulty = static_cast<std::int32_t>(broken->subject.options.modules.list.size()) - 1;
  const auto chunk = static_cast<std::int32_t>(
      1 + (std::find(layers.begin(), layers.end(), std::vector{faulty}) - layers.begin()));
  const auto& order = broken->subject.schedule.ranks[rank].order;
  const auto first = [&](Kind kind) {
    return std::find_if(
               order.begin(), order.end(),
               [&](const Entry& entry) { return entry.kind == kind && entry.chunk == chunk; })
        ->microbatch;
  };
  if (first(Kind::Forward) == first(Kind::BackwardWeight)) return std::nullopt;
  return broken;
}

// A reduction comes before the last entry that adds to its chunk's gradients.
std::optional<Broken<Declared>> reduce_early(const Declared& sound, std::size_t choice) {
  const auto reduction = chosen(reductions(sound.schedule), choice);
  if (!reduction) return std::nullopt;
  Declared broken = sound;
  const Entry moved = take_out(broken.schedule, *reduction);
  const Position last = last_gradient(broken.schedule, reduction->rank, moved.chunk);
  const Position place = put_before(broken.schedule, last, moved);
  return {{broken, "G13", fault_place(broken.schedule, place)}};
}

// One of several chunks is not reduced.
std::optional<Broken<Declared>> reduce_missing(const Declared& sound, std::size_t choice) {
  const auto all = reductions(sound.schedule);
  if (all.size() < 2) return std::nullopt;
  Declared broken = sound;
  const Position reduction = all[choice % all.size()];
  const Entry gone = take_out(broken.schedule, reduction);
  const Position last = last_gradient(broken.schedule, reduction.rank, gone.chunk);
  return {{broken, "G14", fault_place(broken.schedule, last)}};
}

// A chunk's gradients are reduced once more, at the end of the order.
std::optional<Broken<Declared>> reduce_twice(const Declared& sound, std::size_t choice) {
  const auto reduction = chosen(reductions(sound.schedule), choice);
  if (!reduction) return std::nullopt;
  Declared broken = sound;
  auto& order = broken.schedule.ranks[reduction->rank].order;
  Entry again = order[reduction->at];
  again.group = Group::Alone;
  order.push_back(again);
  const Position place{.rank = reduction->rank, .at = order.size() - 1};
  return {{broken, "G15", fault_place(broken.schedule, place)}};
}

Entry wait_for(const Entry& reduction) {
  return {.chunk = reduction.chunk, .kind = Kind::WaitReduceGradient};
}

// Each rank waits at its end for its reductions, and for one of them again, or before it begins.
std::optional<Broken<Declared>> wait_for_no_reduction(const Declared& sound, std::size_t choice) {
  const auto all = reductions(sound.schedule);
  const auto reduction = chosen(all, choice / 2);
  if (!reduction) return std::nullopt;
  Declared broken = sound;
  for (const Position& of : all) {
    auto& order = broken.schedule.ranks[of.rank].order;
    order.push_back(wait_for(order[of.at]));
  }
  auto& order = broken.schedule.ranks[reduction->rank].order;
  const Entry wait = wait_for(order[reduction->at]);
  Position place{.rank = reduction->rank, .at = order.size()};
  if (choice % 2 == 0)
    order.push_back(wait);
  else
    place = put_before(broken.schedule, *reduction, wait);
  return {{broken, "G16", fault_place(broken.schedule, place)}};
}

// Each rank waits at its end for all reductions but one.
std::optional<Broken<Declared>> reduction_unawaited(const Declared& sound, std::size_t choice) {
  const auto all = reductions(sound.schedule);
  if (all.size() < 2) return std::nullopt;
  Declared broken = sound;
  const std::size_t left_out = choice % all.size();
  for (std::size_t k = 0; k < all.size(); ++k) {
    auto& order = broken.schedule.ranks[all[k].rank].order;
    if (k != left_out) order.push_back(wait_for(order[all[k].at]));
  }
  return {{broken, "G17", fault_place(broken.schedule, all[left_out])}};
}

// The splits of a grouped-linear move to the CPU, or it computes in fp32, which reads them there.
std::optional<Broken<Declared>> host_splits(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C01"}, [choice](Module& module) {
    const bool by_type = choice % 2 == 1;
    module.kind = ModuleKind::GroupedLinear;
    module.splits = by_type ? Splits::Device : Splits::Host;
    if (by_type) module.dtype = DataType::Fp32;
  });
}

// A module waits for the device.
std::optional<Broken<Declared>> synchronises(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C02"},
                     [](Module& module) { module.flags.synchronises = true; });
}

// Work of a module does not come back from another stream.
std::optional<Broken<Declared>> unjoined_stream(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C03"},
                     [](Module& module) { module.flags.unjoined_stream = true; });
}

// A module that delays is called twice.
std::optional<Broken<Declared>> called_twice(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, at_weight("C04"), [](Module& module) { module.calls = 2; });
}

// A grouped-linear has more groups than a product takes.
std::optional<Broken<Declared>> too_many_groups(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C05"}, [](Module& module) {
    module.kind = ModuleKind::GroupedLinear;
    module.splits = Splits::Device;
    module.shape.groups = 65;
  });
}

// The input of a fused linear needs no gradient.
std::optional<Broken<Declared>> no_gradient(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C06", .shown_at = Kind::Backward},
                     [](Module& module) { module.flags.input_requires_grad = false; });
}

// Tensors of a module are offloaded, whether its input needs a gradient or not.
std::optional<Broken<Declared>> offloaded_address(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C07", .shown_at = Kind::Backward},
                     [choice](Module& module) {
                       module.flags.offloaded = true;
                       module.flags.input_requires_grad = choice % 2 == 0;
                     });
}

// A module has hooks, or capture-time hooks that are needed at every call.
std::optional<Broken<Declared>> hooks(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C09"},
                     [](Module& module) { module.flags.hooks = true; });
}

std::optional<Broken<Declared>> hooks_each_call(const Declared& sound, std::size_t choice) {
  return with_module(sound, choice, {.rule = "C10"},
                     [](Module& module) { module.flags.hooks_each_call = true; });
}

// One backward of a chunk that runs its backwards whole is taken apart; its weight gradient comes
// right behind it.
std::optional<Broken<Declared>> half_delayed(const Declared& sound, std::size_t choice) {
  if (*sound.schedule.microbatches < 2) return std::nullopt;
  const auto backwards =
      entries_that(sound.schedule, [](const Entry& entry, const RankOrder& rank) {
        return entry.kind == Kind::Backward && (*rank.delay)[entry.chunk.index()] == Delay::Never;
      });
  const auto place = chosen(backwards, choice);
  if (!place) return std::nullopt;
  Declared broken = sound;
  RankOrder& rank = broken.schedule.ranks[place->rank];
  Entry& half = rank.order[place->at];
  half.kind = Kind::BackwardInput;
  const std::int32_t chunk = half.chunk;
  const std::int32_t microbatch = half.microbatch;
  (*rank.delay)[as_index(chunk) - 1] = Delay::Mixed;
  put_behind(broken.schedule, *place,
             {.chunk = chunk, .microbatch = microbatch, .kind = Kind::BackwardWeight});

  // The witness begins with the chunk's first backward, which contradicts a later one.
  const auto first_of = [&](Kind kind) {
    return std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
      return entry.kind == kind && entry.chunk == chunk;
    });
  };
  const auto first = std::min(first_of(Kind::Backward), first_of(Kind::BackwardInput));
  const auto at = as_index(first - rank.order.begin());
  return {{broken, "C08", fault_place(broken.schedule, {.rank = place->rank, .at = at})}};
}

// A step with a weight gradient apart is captured by Megatron's local graphs.
std::optional<Broken<Declared>> not_local(const Declared& sound, std::size_t choice) {
  const auto weights = entries_that(sound.schedule, [](const Entry& entry, const RankOrder&) {
    return entry.kind == Kind::BackwardWeight;
  });
  const auto place = chosen(weights, choice);
  if (!place) return std::nullopt;
  Declared broken = sound;
  broken.options.plan.kind = PlanKind::McoreLocal;
  const auto& order = broken.schedule.ranks[place->rank].order;
  // The finding stands at the chunk's first.
  const auto first = std::find_if(order.begin(), order.end(), [&](const Entry& entry) {
    return entry.kind == Kind::BackwardWeight && entry.chunk == order[place->at].chunk;
  });
  const auto at = as_index(first - order.begin());
  return {{broken, "C11", fault_place(broken.schedule, {.rank = place->rank, .at = at})}};
}

// A forward and the backward of another microbatch right behind it, in orders that nobody waits
// for: chunks of one rank or of ranks that are not wired.
std::vector<Position> forwards_before_others(const Schedule& schedule) {
  if (schedule.ranks.size() > 1 && schedule.topology != Topology::Independent) return {};
  std::vector<Position> found;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const auto& order = schedule.ranks[r].order;
    for (std::size_t at = 0; at + 1 < order.size(); ++at) {
      const Entry& next = order[at + 1];
      if (order[at].kind == Kind::Forward &&
          (next.kind == Kind::Backward || next.kind == Kind::BackwardInput) &&
          next.microbatch != order[at].microbatch)
        found.push_back({.rank = r, .at = at});
    }
  }
  return found;
}

// Megatron's local graphs are captured while a forward and a backward run side by side, layer by
// layer: every chunk has two.
std::optional<Broken<Declared>> layers_apart(const Declared& sound, std::size_t choice) {
  if (has_composites(sound.schedule)) return std::nullopt;
  const auto forward = chosen(forwards_before_others(sound.schedule), choice);
  if (!forward) return std::nullopt;
  Declared broken = sound;
  broken.options.plan.kind = PlanKind::McoreLocal;
  broken.options.environment.ep_overlap = true;
  for (std::size_t r = 0; r < broken.schedule.ranks.size(); ++r) {
    broken.schedule.ranks[r].layers = {.form = Layers::Form::Count, .values = {2}};
    for (auto& layers : broken.options.modules.layers[r]) layers.push_back(layers.front());
    broken.options.groups.push_back({.name = "experts" + std::to_string(r),
                                     .members = {static_cast<std::int32_t>(r)},
                                     .actions = {Kind::DispatchForward, Kind::CombineForward,
                                                 Kind::DispatchBackward, Kind::CombineBackward},
                                     .streams = {}});
  }
  auto& order = broken.schedule.ranks[forward->rank].order;
  order[forward->at].group = Group::Opens;
  order[forward->at + 1].group = Group::Continues;
  return {{broken, "C11", fault_place(broken.schedule, *forward)}};
}

constexpr std::array kModuleFaults{
    ModuleFault{"wgrad-lost", {"G01"}, wgrad_lost},
    ModuleFault{"bias-gradient-lost", {"G02"}, bias_gradient_lost},
    ModuleFault{"gradient-uninitialised", {"G03"}, gradient_uninitialised},
    ModuleFault{"frozen-weight", {"G04"}, frozen_weight},
    ModuleFault{"double-accumulation", {"G05"}, double_accumulation},
    ModuleFault{"shared-weight", {"G06"}, shared_weight},
    ModuleFault{"main-grad-layout", {"G07"}, main_grad_layout},
    ModuleFault{"hooks-not-run", {"G08"}, hooks_not_run},
    ModuleFault{"set-order", {"G09"}, set_order},
    ModuleFault{"returned-gradient-alias", {"G10"}, returned_gradient_alias},
    ModuleFault{"sharded-weight", {"G11"}, sharded_weight},
    ModuleFault{"overwriting-each", {"G12"}, overwriting_each},
    ModuleFault{"overwriting-late", {"G12"}, overwriting_late},
    ModuleFault{"reduce-early", {"G13"}, reduce_early},
    ModuleFault{"reduce-missing", {"G14"}, reduce_missing},
    ModuleFault{"reduce-twice", {"G15"}, reduce_twice},
    ModuleFault{"host-splits", {"C01"}, host_splits},
    ModuleFault{"synchronises", {"C02"}, synchronises},
    ModuleFault{"unjoined-stream", {"C03"}, unjoined_stream},
    ModuleFault{"called-twice", {"C04"}, called_twice},
    ModuleFault{"too-many-groups", {"C05"}, too_many_groups},
    ModuleFault{"no-gradient", {"C06"}, no_gradient},
    ModuleFault{"offloaded-address", {"C07"}, offloaded_address},
    ModuleFault{"half-delayed", {"C08"}, half_delayed},
    ModuleFault{"not-local", {"C11"}, not_local},
    ModuleFault{"wait-for-no-reduction", {"G16"}, wait_for_no_reduction},
    ModuleFault{"reduction-unawaited", {"G17"}, reduction_unawaited},
    ModuleFault{"hooks", {"C09"}, hooks},
    ModuleFault{"hooks-each-call", {"C10"}, hooks_each_call},
    ModuleFault{"layers-apart", {"C11"}, layers_apart},
    ModuleFault{"quantized-bias", {"C12"}, quantized_bias},
    ModuleFault{"cache-baked-in", {"C13"}, cache_baked_in},
    ModuleFault{"stale-weight", {"Y07"}, stale_weight},
    ModuleFault{"amax-out-of-step", {"T15"}, amax_out_of_step},
    ModuleFault{"recipe-refused", {"C14"}, recipe_refused},
    ModuleFault{"sizes-fetched", {"C15"}, sizes_fetched},
};

}  // namespace

std::span<const ModuleFault> module_faults() {
  return kModuleFaults;
}

}  // namespace capo::testing
