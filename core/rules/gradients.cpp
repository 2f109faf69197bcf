// The rules about the order in which gradients are written and reduced.
//
//   rank 0: F1.0 B1.0 reduce1 W1.0     reduce1 reads what W1.0 has yet to add to: G13
//
// module_gradients.cpp has the rules about what a module does to its gradient by itself. Tested by
// gradients_test.cpp and tests/corpus/rules/G12 to G15.

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/modules.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace capo::rules {

namespace {

// Whether the entry makes a weight gradient: a W, or a B that is whole. The order knows its chunk.
bool makes_weight_gradient(const OrderView& order, const Entry& entry) {
  return entry.kind == Kind::BackwardWeight ||
         (entry.kind == Kind::Backward && order.delay_of(entry.chunk) != Delay::Always);
}

// When a chunk is reduced first, and whether all of its gradients are made by then.
struct Reduced {
  std::size_t at = 0;        ///< the first reduction of the chunk
  std::size_t gradient = 0;  ///< the first gradient behind it; neither yet: entries.size()
};

// Every chunk of the order; empty if the order reduces none.
std::vector<Reduced> reduced_chunks(const OrderView& order) {
  if (std::none_of(order.entries.begin(), order.entries.end(),
                   [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; }))
    return {};
  const std::size_t none = order.entries.size();
  std::vector<Reduced> chunks(order.tally.size(), {none, none});
  for (std::size_t at = 0; at < none; ++at) {
    const Entry& entry = order.entries[at];
    if (!order.knows(entry.chunk)) continue;
    Reduced& of = chunks[entry.chunk.index()];
    if (entry.kind == Kind::ReduceGradient && of.at == none) of.at = at;
    if (of.at == none || of.gradient != none) continue;
    if (makes_weight_gradient(order, entry)) of.gradient = at;
  }
  return chunks;
}

bool writes_main_grad(const Module& module) {
  return module.flags.fuse_wgrad_accumulation && !module.flags.frozen_weight;
}

bool always_overwrites(const Module& module) {
  return writes_main_grad(module) && module.flags.overwrite_main_grad;
}

// Whether a module that does not always overwrite does so when its call says so.
bool overwrites_by_call(const Module& module) {
  return writes_main_grad(module) && module.flags.is_first_microbatch &&
         !(module.kind && gradients::is_operation(*module.kind));
}

// The positions of a chunk's gradients in an order; entries.size() if there is none.
struct Writes {
  std::size_t first = 0;
  std::size_t second = 0;
  std::size_t of_first_forward = 0;  ///< that of the microbatch whose forward is the first
};

std::vector<Writes> writes_of(const OrderView& order) {
  const std::size_t none = order.entries.size();
  std::vector<Writes> writes(order.tally.size(), {none, none, none});
  std::vector<std::int32_t> first_forward(order.tally.size(), kNoMicrobatch);
  for (std::size_t at = 0; at < none; ++at) {
    const Entry& entry = order.entries[at];
    if (!is_compute(entry.kind)) continue;
    const auto chunk = entry.chunk.index();
    if (entry.kind == Kind::Forward && first_forward[chunk] == kNoMicrobatch)
      first_forward[chunk] = entry.microbatch;
    if (!makes_weight_gradient(order, entry)) continue;
    Writes& of = writes[chunk];
    std::size_t& slot = of.first == none ? of.first : of.second;
    if (slot == none) slot = at;
    if (entry.microbatch == first_forward[chunk]) of.of_first_forward = at;
  }
  return writes;
}

Diagnostic overwritten(const Context& context, const Module& module, const OrderView& order,
                       std::size_t lost, std::size_t by, const std::string& why,
                       const std::string& help) {
  Diagnostic finding{.message = fmt::format("{} overwrites what {} wrote to main_grad: {}",
                                            words::placed(context, order, by),
                                            words::quoted(context, order.entries[lost]), why),
                     .labels = {{order.entries[lost].span(), "this gradient is lost"},
                                {order.entries[by].span(),
                                 fmt::format("module `{}` overwrites here", module.name)}},
                     .help = {.text = help},
                     .witness = words::entries(context, order, {lost, by})};
  finding.witness.kind = WitnessKind::Replay;
  if (context.options().plan.kind == PlanKind::Given) {
    finding.notes.push_back(
        {.text = "a given plan does not say whose modules run; those of --plan safe are capo's, "
                 "whose first write of a step overwrites, whichever it is",
         .span = std::nullopt});
  }
  return finding;
}

Diagnostic overwritten_by_all(const Context& context, const Module& module, const OrderView& order,
                              const Writes& writes) {
  return overwritten(
      context, module, order, writes.first, writes.second,
      fmt::format("module `{}` has overwrite_main_grad, and the step has {}", module.name,
                  counted(context.microbatches(), "microbatch", "microbatches")),
      "let the weight gradient add, and clear main_grad before the step");
}

Diagnostic overwritten_late(const Context& context, const Module& module, const OrderView& order,
                            const Writes& writes) {
  return overwritten(
      context, module, order, writes.first, writes.of_first_forward,
      fmt::format("module `{}` has is_first_microbatch, and this is the microbatch whose forward "
                  "was first",
                  module.name),
      "run the weight gradient of the first forward before the others, or clear main_grad before "
      "the step and leave is_first_microbatch out");
}

// Whoever overwrites main_grad must be the first to write it in a step.
//
//   overwrite_main_grad     [1, 1, -1, -1.5, -1, -1.5]     every W overwrites, the last one remains
//   is_first_microbatch     F1.0 F1.1 B1.1 W1.1 B1.0 W1.0  microbatch 0 was the first forward, so
//                                                          W1.0 overwrites, and erases W1.1's
//
// Both are about a fused gradient; without fuse nobody writes main_grad. The first is for weights
// with one microbatch a step, or for a reader that takes main_grad after every microbatch. The
// second is a flag of the call: operations do not look at it, and a capture bakes in that W adds,
// so under TE's plan there is nothing to erase. Under capo's plan the first write of
// a step overwrites, whichever it is, and the rule is silent.
//
// There is one finding for each module.
void first_writer(const Context& context, Findings& out) {
  const std::optional<PlanKind> plan = context.options().plan.kind;
  const ModuleTable& modules = context.options().modules;
  if (plan == PlanKind::Safe || modules.layers.empty()) return;
  if (std::none_of(modules.list.begin(), modules.list.end(), [](const Module& module) {
        return always_overwrites(module) || overwrites_by_call(module);
      })) {
    return;
  }
  std::set<const Module*> reported;
  const auto report = [&](const Module* module, auto describe) {
    if (!reported.insert(module).second || !out.found()) return;
    out.report(describe(*module));
  };
  for (const OrderView& order : context.orders()) {
    const std::vector<Writes> writes = writes_of(order);
    for (std::int32_t chunk = 1; chunk <= order.holder->chunks; ++chunk) {
      const Writes& of = writes[ChunkId(chunk).index()];
      if (of.second == order.entries.size()) continue;
      const bool late = !(plan && is_a_frameworks(*plan)) && of.of_first_forward != of.first;
      const std::int32_t layers = distinct_layers(context, order.rank, chunk);
      for (std::int32_t layer = 0; layer < layers; ++layer) {
        const Module* module = context.module_of(order.rank, chunk, layer);
        if (always_overwrites(*module)) {
          report(module, [&](const Module& at_fault) {
            return overwritten_by_all(context, at_fault, order, of);
          });
        } else if (late && overwrites_by_call(*module)) {
          report(module, [&](const Module& at_fault) {
            return overwritten_late(context, at_fault, order, of);
          });
        }
      }
    }
  }
}

Diagnostic early(const Context& context, const OrderView& order, const Reduced& reduced) {
  const Entry& gradient = order.entries[reduced.gradient];
  return {.message = fmt::format("{} reduces the gradients of {} before they are complete: {} adds "
                                 "to them {}",
                                 words::placed(context, order, reduced.at),
                                 words::part(context, order, gradient.chunk),
                                 words::quoted(context, gradient),
                                 words::later(order, reduced.at, reduced.gradient)),
          .labels = {{order.entries[reduced.at].span(), "reduces an incomplete gradient"},
                     {gradient.span(), "this part comes too late"}},
          .help = {.text = "put the reduction behind the last weight gradient of the chunk, which "
                           "is its last B where B is whole"},
          .witness = words::entries(context, order, {reduced.at, reduced.gradient})};
}

// A chunk's gradients are all there before they are reduced.
//
//   rank 0: F1.0 B1.0 reduce1 W1.0     the reduction reads main_grad, which W1.0 has yet to add to
//
// A gradient is made by W, or by a whole B, of any microbatch of the chunk. A flag such as
// grad_added_to_main_grad, which TE sets at B already, changes nothing about it.
// Lists and tables without reductions are at no fault; a chunk that is never reduced is
// reduce_missing's, one that is reduced twice behind all of its gradients reduce_twice's. There is
// one finding for each chunk of an order.
void reduce_early(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    for (const Reduced& reduced : reduced_chunks(order)) {
      if (reduced.gradient == order.entries.size() || !out.found()) continue;
      out.report(early(context, order, reduced));
    }
  }
}

struct Reduction {
  const OrderView* order;
  std::size_t at;
};

std::optional<Reduction> first_reduction(const Context& context) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      if (order.entries[at].kind == Kind::ReduceGradient) return Reduction{&order, at};
    }
  }
  return std::nullopt;
}

bool trains(const Module& module) {
  return !module.flags.frozen_weight || module.flags.bias;
}

// Whether all layers of the chunk are declared and have nothing to train.
bool frozen(const Context& context, std::int32_t rank, std::int32_t chunk) {
  return distinct_layers(context, rank, chunk) > 0 &&
         module_at_fault(context, rank, chunk, trains) == nullptr;
}

// Whether a chunk is reduced, and the position of its last gradient.
struct Chunk {
  bool reduced = false;
  std::size_t gradient = 0;
};

std::vector<Chunk> chunks_of(const OrderView& order) {
  std::vector<Chunk> chunks(order.tally.size(), {false, order.entries.size()});
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (!order.knows(entry.chunk)) continue;
    Chunk& of = chunks[entry.chunk.index()];
    of.reduced = of.reduced || entry.kind == Kind::ReduceGradient;
    if (makes_weight_gradient(order, entry)) of.gradient = at;
  }
  return chunks;
}

Diagnostic missing(const Context& context, const OrderView& order, std::size_t gradient,
                   const Reduction& other) {
  CAPO_ASSERT(gradient < order.entries.size(), "every chunk of a clean order has gradients");
  const Entry& last = order.entries[gradient];
  const Entry& reduction = other.order->entries[other.at];
  const Action reduce{.kind = Kind::ReduceGradient, .chunk = last.chunk};
  return {
      .message = fmt::format("the gradients of {}{} are never reduced, though {} reduces those "
                             "of {}{}",
                             words::part(context, order, last.chunk),
                             words::on_order(context, order), words::quoted(context, reduction),
                             words::part(context, *other.order, reduction.chunk),
                             words::on_order(context, *other.order)),
      .labels = {{last.span(), "the last gradient, which nobody reduces"},
                 {reduction.span(), "reduced here"}},
      .help = {.text = fmt::format("add `{}` after it", words::entry_text(context, order, reduce)),
               .edits = words::insert_after(context, order, gradient, reduce)},
      .witness = words::entries(context, order, {gradient})};
}

// If one chunk's gradients are reduced, every chunk's are.
//
//   rank 0: F1.0 B1.0 reduce1
//   rank 1: F1.0 B1.0             stage 1 keeps gradients of its own, and its replicas drift apart
//
// An order without any reduction leaves reductions to others; with one, the missing ones were
// forgotten. A chunk accumulates gradients if it has a W or a whole B, unless it is
// declared and all its layers are frozen. A replay order is judged like a capture order.
void reduce_missing(const Context& context, Findings& out) {
  const std::optional<Reduction> other = first_reduction(context);
  if (!other) return;
  for (const OrderView& order : context.orders()) {
    const std::vector<Chunk> chunks = chunks_of(order);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      if (chunks[c].reduced) continue;
      if (frozen(context, order.rank, static_cast<std::int32_t>(c) + 1)) continue;
      if (out.found()) out.report(missing(context, order, chunks[c].gradient, *other));
    }
  }
}

Diagnostic twice(const Context& context, const OrderView& order, std::size_t first,
                 std::size_t again) {
  return {.message = fmt::format("{} reduces the gradients of {} a second time",
                                 words::placed(context, order, again),
                                 words::part(context, order, order.entries[again].chunk)),
          .labels = {{order.entries[again].span(), ""},
                     {order.entries[first].span(), "reduced here already"}},
          .help = {.text = "remove one of the two"},
          .witness = words::entries(context, order, {again, first})};
}

// A chunk's gradients are reduced once.
//
//   rank 0: F1.0 B1.0 reduce1 reduce1     the sum over all replicas is summed over them again
//
// A first reduction that comes too early for a gradient is reduce_early's, with all that follow it.
// There is one finding for each reduction behind the first.
void reduce_twice(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    const std::vector<Reduced> chunks = reduced_chunks(order);
    if (chunks.empty()) continue;
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      const Entry& entry = order.entries[at];
      if (entry.kind != Kind::ReduceGradient) continue;
      CAPO_ASSERT(order.knows(entry.chunk), "orders that name unknown chunks come no further");
      const Reduced& of = chunks[entry.chunk.index()];
      if (at == of.at || of.gradient != order.entries.size()) continue;
      if (out.found()) out.report(twice(context, order, of.at, at));
    }
  }
}

constexpr Rule kGradientsRules[] = {
    {"G12", "first-writer", "a weight gradient that overwrites another", Family::Gradients,
     Pass::Gradients, first_writer},
    {"G13", "reduce-early", "a reduction before the last gradient", Family::Gradients,
     Pass::Gradients, reduce_early},
    {"G14", "reduce-missing", "a chunk whose gradients are never reduced", Family::Gradients,
     Pass::Gradients, reduce_missing},
    {"G15", "reduce-twice", "gradients that are reduced a second time", Family::Gradients,
     Pass::Gradients, reduce_twice},
};

}  // namespace

std::span<const Rule> gradient_rules() {
  return kGradientsRules;
}

}  // namespace capo::rules
