#include <capo/testing/generators/sound_declared.h>

#include <capo/core/gradients/contract.h>
#include <capo/core/model/module_kinds.h>
#include <capo/core/text/order_printer.h>
#include <capo/testing/faults/transfers.h>
#include <capo/testing/generators/fewer_microbatches.h>
#include <capo/testing/generators/sound_schedule.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

constexpr std::int32_t kModulesOfASort = 2;

ModuleKind draw_kind(Dice& dice, bool delays) {
  // The last kind, ops.BasicLinear, has no delay.
  return static_cast<ModuleKind>(dice.below(delays ? 7 : 8));
}

ModuleFlags draw_flags(Dice& dice, ModuleKind kind, bool delays) {
  const bool operation = gradients::is_operation(kind);
  ModuleFlags flags{.delay_wgrad = delays,
                    .fuse_wgrad_accumulation = delays || dice.one_in(2),
                    .shared_weight = dice.one_in(4),
                    .save_original_input = dice.one_in(4),
                    .gathered_input = dice.one_in(4)};
  flags.grad_added_to_main_grad = flags.fuse_wgrad_accumulation && dice.one_in(2);
  flags.zero_out_wgrad = flags.grad_added_to_main_grad && dice.one_in(4);
  flags.wgrad_hooks = delays && !operation && dice.one_in(2);
  flags.bias = (!delays || operation) && dice.one_in(2);
  flags.single_weight = is_grouped(kind) && dice.one_in(2);
  flags.input_requires_grad = !flags.grad_added_to_main_grad || dice.one_in(2);
  // Copies may be left out where somebody takes what is returned, or nothing is (G10).
  const bool norms = has_norm(kind) || kind == ModuleKind::TransformerLayer;
  const bool returns = !flags.fuse_wgrad_accumulation || flags.bias || norms;
  flags.clone_param_grads = (returns && !flags.grad_added_to_main_grad) || dice.one_in(2);
  return flags;
}

MainGrad draw_main_grad(Dice& dice, const ModuleShape& shape, ModuleKind kind) {
  const std::int64_t in = *shape.hidden;
  const std::int64_t out = *shape.ffn;
  const std::int64_t groups = *shape.groups;
  // A grouped-mlp has two weights, of which the sizes alone do not say which is meant.
  if (kind == ModuleKind::GroupedMlp || dice.one_in(2))
    return {.shape = {groups, out, in}, .strides = {out * in, in, 1}};
  return {.shape = {groups * out * in}, .strides = {1}};
}

Module draw_module(Dice& dice, bool delays, const std::string& name) {
  const ModuleKind kind = draw_kind(dice, delays);
  Module module{.name = name, .kind = kind, .flags = draw_flags(dice, kind, delays)};
  if (!dice.one_in(3)) module.dtype = static_cast<DataType>(dice.below(4));
  if (kind != ModuleKind::TransformerLayer) module.grad_buckets = dice.between(1, 3);
  if (!delays) module.calls = dice.between(1, 2);
  if (!is_grouped(kind)) return module;
  if (module.dtype == DataType::Fp32) module.dtype = DataType::Bf16;  // has no path of its own
  module.shape = {
      .hidden = dice.between(1, 8), .ffn = dice.between(1, 8), .groups = dice.between(1, 64)};
  module.splits = dice.one_in(2) ? Splits::Device : Splits::Input;
  if (module.flags.single_weight) module.main_grad = draw_main_grad(dice, module.shape, kind);
  return module;
}

// Behind every chunk's last gradient.
void reduce_all(Schedule& schedule) {
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankOrder& rank = schedule.ranks[r];
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
      std::size_t last = 0;
      for (std::size_t at = 0; at < rank.order.size(); ++at) {
        const Entry& entry = rank.order[at];
        if (is_compute(entry.kind) && entry.chunk == chunk) last = at;
      }
      faults::put_behind(schedule, {.rank = r, .at = last},
                         {.chunk = chunk, .kind = Kind::ReduceGradient});
    }
  }
}

bool has(const RankOrder& rank, Kind kind, std::int32_t chunk) {
  return std::any_of(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
    return entry.kind == kind && entry.chunk == chunk;
  });
}

// Whether a chunk leaves some of its weight gradients to W and not the others.
bool delays_some(const Schedule& schedule) {
  for (const RankOrder& rank : schedule.ranks) {
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
      if (has(rank, Kind::BackwardInput, chunk) && has(rank, Kind::Backward, chunk)) return true;
    }
  }
  return false;
}

}  // namespace

Declared draw_sound_declared(Dice& dice) {
  Declared declared{.schedule = draw_sound_named_schedule(dice), .options = {}};
  while (delays_some(declared.schedule)) declared.schedule = draw_sound_named_schedule(dice);
  if (dice.one_in(2)) reduce_all(declared.schedule);
  declared.options.plan = {.kind = PlanKind::Te, .aliases = Aliases{}};

  ModuleTable& table = declared.options.modules;
  for (std::int32_t i = 0; i < 2 * kModulesOfASort; ++i)
    table.list.push_back(draw_module(dice, i < kModulesOfASort, "m" + std::to_string(i)));
  for (const RankOrder& rank : declared.schedule.ranks) {
    auto& chunks = table.layers.emplace_back();
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
      const std::int32_t first = has(rank, Kind::BackwardWeight, chunk) ? 0 : kModulesOfASort;
      chunks.push_back({dice.between(first, first + kModulesOfASort - 1)});
    }
  }
  return declared;
}

rc::Gen<Declared> sound_declared() {
  return generator(draw_sound_declared, with_fewer_microbatches<Declared>);
}

void showValue(const Declared& declared, std::ostream& out) {
  for (const Module& module : declared.options.modules.list) {
    out << module.name << ": " << (module.kind ? name_of(*module.kind) : "of any kind");
    out << (module.flags.delay_wgrad ? ", delayed" : "")
        << (module.flags.fuse_wgrad_accumulation ? ", fused" : "") << "\n";
  }
  for (const auto& rank : declared.options.modules.layers) {
    out << "rank:";
    for (const auto& chunk : rank) {
      for (const std::int32_t layer : chunk) out << " " << layer;
      out << ";";
    }
    out << "\n";
  }
  out << print_order_file(declared.schedule);
}

}  // namespace capo::testing
