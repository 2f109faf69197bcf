// Every plan is asked for what a capture refuses or cannot hold: hooks (C09, C10) and tensors that
// are moved (C07) of declared modules, backwards of which some leave their weight gradients to W
// (C08) or any does (C11), and backwards that run beside a forward, layer by layer (C11).
//
//   F1.0 F1.1 I1.0 W1.0 B1.1     plan te: C08 at B1.1; plan mcore-local: C11 at W1.0
//
// Every sound order of a size of one rank, with each choice of hooks for each chunk, of backwards
// that are taken apart, or of a forward and the backward behind it that run side by side. Only a
// declared plan of a framework makes errors of them. Quick: the smallest sizes of each.

#include "testing/oracle/captures.h"
#include "core/text/order_text.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/misreads.h"
#include "tests/exhaustive/one_rank.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::exhaustive {

namespace {

using oracle::CaptureFault;
using oracle::ChunkToCapture;
using oracle::GraphToCapture;
using Chunks = std::vector<ChunkToCapture>;

constexpr std::array kPlans{std::optional(PlanKind::Te), std::optional(PlanKind::McoreLocal),
                            std::optional(PlanKind::Safe), std::optional<PlanKind>()};

std::string_view rule_of(CaptureFault::Kind kind) {
  switch (kind) {
    case CaptureFault::Refused:
      return "C09";
    case CaptureFault::HooksNotRun:
      return "C10";
    case CaptureFault::Moved:
      return "C07";
    case CaptureFault::HalfDelayed:
      return "C08";
    case CaptureFault::InNoGraph:
    case CaptureFault::BetweenLayers:
      break;
  }
  return "C11";
}

GraphToCapture::Kind kind_of(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return GraphToCapture::Forward;
    case Kind::Backward:
      return GraphToCapture::Backward;
    case Kind::BackwardInput:
      return GraphToCapture::HalfBackward;
    default:
      return GraphToCapture::Weight;
  }
}

std::vector<GraphToCapture> graphs_of(const std::vector<Entry>& order) {
  std::vector<GraphToCapture> graphs;
  for (const Entry& entry : order) {
    graphs.push_back({.kind = kind_of(entry.kind),
                      .chunk = entry.chunk - 1,
                      .beside = entry.group == Group::Continues});
  }
  return graphs;
}

Answer oracle_of(std::optional<PlanKind> plan, const Chunks& chunks,
                 const std::vector<Entry>& order) {
  if (plan != PlanKind::Te && plan != PlanKind::McoreLocal) return {};
  const auto who =
      plan == PlanKind::Te ? oracle::Capturer::TransformerEngine : oracle::Capturer::Megatron;
  Answer first;
  for (const CaptureFault& fault : oracle::faults_of_capture(who, chunks, graphs_of(order)))
    first = earlier(first, {.rule = rule_of(fault.kind), .position = fault.position});
  return first;
}

// One declaration, and the orders that are judged under it.
class Captures {
 public:
  Captures(const Size& size, const Chunks& chunks, Verdicts::Declared declared,
           Comparison& comparison, const Options& options)
      : rank(size, computations_of(size)),
        chunks_(chunks),
        plan_(declared.options.plan.kind),
        judge_(std::move(declared), options),
        comparison_(comparison) {}

  void compare() {
    if (!comparison_.mine()) return;
    comparison_.compare(judge_.of(rank.input), oracle_of(plan_, chunks_, rank.rank().order),
                        [&] { return print_order_file(rank.input.schedule); });
  }

  OneRank rank;

 private:
  const Chunks& chunks_;
  std::optional<PlanKind> plan_;
  Judge judge_;
  Comparison& comparison_;
};

Verdicts::Declared declared_under(std::optional<PlanKind> plan) {
  Verdicts::Declared declared;
  declared.options.plan = {.kind = plan, .aliases = Aliases{}};
  return declared;
}

// --- declared modules ----------------------------------------------------------------------------

// Delayed and fused: TransformerEngine keeps all gradients, and gradients/ has nothing to say.
ModuleTable modules_of(const Chunks& chunks, const Size& size) {
  ModuleTable table{.list = {}, .layers = {{}}};
  for (const ChunkToCapture& chunk : chunks) {
    table.layers[0].push_back({static_cast<std::int32_t>(table.list.size())});
    Module module{.name = fmt::format("m{}", table.list.size() + 1)};
    module.flags.delay_wgrad = size.weights;
    module.flags.fuse_wgrad_accumulation = size.weights;
    module.flags.hooks = chunk.hooks;
    module.flags.hooks_each_call = chunk.hooks_each_call;
    module.flags.offloaded = chunk.offloaded;
    table.list.push_back(std::move(module));
  }
  return table;
}

// Each choice for each of so many chunks.
std::vector<Chunks> modules_for(int chunks) {
  const Chunks choices{{},
                       {.hooks = true},
                       {.hooks_each_call = true},
                       {.offloaded = true},
                       {.hooks = true, .hooks_each_call = true, .offloaded = true}};
  std::vector<Chunks> all{{}};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::vector<Chunks> longer;
    for (const Chunks& front : all) {
      for (const ChunkToCapture& choice : choices) {
        longer.push_back(front);
        longer.back().push_back(choice);
      }
    }
    all = std::move(longer);
  }
  return all;
}

bool compare_modules(const Size& size, const Options& options) {
  Comparison comparison(fmt::format("captures of modules with hooks, {}", name_of(size)), options);
  for (const Chunks& chunks : modules_for(size.chunks)) {
    for (const std::optional<PlanKind> plan : kPlans) {
      Verdicts::Declared declared = declared_under(plan);
      declared.options.modules = modules_of(chunks, size);
      Captures captures(size, chunks, std::move(declared), comparison, options);
      const Needs needs = needs_of_each_chunk(size);
      Interleavings(needs, size.microbatches).for_each([&](const auto& tokens) {
        captures.rank.capture(tokens);
        captures.compare();
        return !comparison.stopped();
      });
    }
  }
  return comparison.finish();
}

// --- backwards that are taken apart --------------------------------------------------------------

// The entries of a step in which some backwards leave their weight gradients to W, and by each what
// it stands behind: those of its microbatch, and its like of the microbatch before.
struct Halves {
  std::vector<Entry> entries;
  Needs needs;
};

// `halved`: bit microbatch + chunk * microbatches is set where a backward is taken apart.
Halves halves_of(const Size& size, unsigned halved) {
  Halves halves;
  const auto add = [&](std::int32_t chunk, std::int32_t microbatch, Kind kind,
                       Needs::value_type behind) {
    halves.entries.push_back(
        {.chunk = chunk + 1, .microbatch = microbatch, .length = 1, .kind = kind});
    halves.needs.push_back(std::move(behind));
    return halves.entries.size() - 1;
  };
  for (std::int32_t chunk = 0; chunk < size.chunks; ++chunk) {
    Needs::value_type forward;  // the last one, if any
    Needs::value_type backward;
    Needs::value_type weight;
    for (std::int32_t m = 0; m < size.microbatches; ++m) {
      forward = {add(chunk, m, Kind::Forward, forward)};
      const bool half = (halved >> (m + chunk * size.microbatches) & 1U) != 0;
      backward.push_back(forward.front());
      backward = {add(chunk, m, half ? Kind::BackwardInput : Kind::Backward, backward)};
      if (!half) continue;
      weight.push_back(backward.front());
      weight = {add(chunk, m, Kind::BackwardWeight, weight)};
    }
  }
  return halves;
}

std::vector<Entry> in_order(const std::vector<Entry>& entries,
                            const std::vector<std::size_t>& order) {
  std::vector<Entry> ordered;
  for (const std::size_t at : order) {
    ordered.push_back(entries[at]);
    ordered.back().offset = static_cast<std::uint32_t>(ordered.size());
  }
  return ordered;
}

int count_of(unsigned bits) {
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

// How many backwards are taken apart at most.
struct HalfScope {
  Size size;
  int most;
};

bool compare_halves(const HalfScope& scope, const Options& options) {
  const Size& size = scope.size;
  Comparison comparison(
      fmt::format("captures of {}, {} backwards at most taken apart", name_of(size), scope.most),
      options);
  const Chunks chunks(static_cast<std::size_t>(size.chunks));
  for (const std::optional<PlanKind> plan : kPlans) {
    Captures captures(size, chunks, declared_under(plan), comparison, options);
    captures.rank.rank().delay.reset();
    for (unsigned halved = 0; halved < 1U << (size.chunks * size.microbatches); ++halved) {
      if (count_of(halved) > scope.most) continue;
      const Halves halves = halves_of(size, halved);
      Interleavings(halves.needs, 1).for_each([&](const std::vector<std::size_t>& order) {
        captures.rank.rank().order = in_order(halves.entries, order);
        captures.compare();
        return !comparison.stopped();
      });
    }
  }
  return comparison.finish();
}

// --- layers side by side -------------------------------------------------------------------------

bool may_run_beside(const Entry& forward, const Entry& backward) {
  return forward.kind == Kind::Forward && backward.kind == Kind::Backward &&
         (forward.chunk != backward.chunk || forward.microbatch != backward.microbatch);
}

Verdicts::Declared with_overlap(std::optional<PlanKind> plan) {
  Verdicts::Declared declared = declared_under(plan);
  declared.options.environment.ep_overlap = true;
  declared.options.groups = {{.name = "experts",
                              .members = {0},
                              .actions = {Kind::DispatchForward, Kind::CombineForward,
                                          Kind::DispatchBackward, Kind::CombineBackward},
                              .streams = {}}};
  return declared;
}

// Each order as it is, and with each pair that may run side by side as a composite.
bool compare_layers(const Size& size, const Options& options) {
  Comparison comparison(fmt::format("captures of layers side by side, {}", name_of(size)), options);
  for (const std::optional<PlanKind> plan : {kPlans[1], kPlans[2]}) {
    for (const int layers : {1, 2}) {
      const Chunks chunks(static_cast<std::size_t>(size.chunks), {.layers = layers});
      Captures captures(size, chunks, with_overlap(plan), comparison, options);
      RankOrder& rank = captures.rank.rank();
      rank.layers = {.form = Layers::Form::Count, .values = {layers}};
      const Needs needs = needs_of_each_chunk(size);
      Interleavings(needs, size.microbatches).for_each([&](const auto& tokens) {
        captures.rank.capture(tokens);
        captures.compare();
        for (std::size_t at = 0; at + 1 < rank.order.size(); ++at) {
          if (!may_run_beside(rank.order[at], rank.order[at + 1])) continue;
          captures.rank.capture(tokens);
          rank.order[at].group = Group::Opens;
          rank.order[at + 1].group = Group::Continues;
          captures.compare();
        }
        return !comparison.stopped();
      });
    }
  }
  return comparison.finish();
}

}  // namespace

bool captures(const Options& options) {
  bool agree = true;
  const auto goes_on = [&](bool agreed) {
    agree = agreed && agree;
    return agree || !options.stop_at_first;
  };
  const bool quick = options.effort == Effort::Quick;
  std::vector<Size> modules{{1, 2, false}, {2, 1, true}};
  std::vector<HalfScope> halves{{{1, 2, false}, 2}, {{2, 1, false}, 2}};
  std::vector<Size> layers{{1, 2, false}, {2, 1, false}};
  if (!quick) {
    modules.insert(modules.end(), {{1, 3, true}, {2, 2, false}});
    halves.insert(halves.end(), {{{1, 3, false}, 3}, {{2, 2, false}, 1}});
    layers.insert(layers.end(), {{1, 3, false}, {2, 2, false}});
  }
  for (const Size& size : modules) {
    if (!goes_on(compare_modules(size, options))) return false;
  }
  for (const HalfScope& scope : halves) {
    if (!goes_on(compare_halves(scope, options))) return false;
  }
  for (const Size& size : layers) {
    if (!goes_on(compare_layers(size, options))) return false;
  }
  return agree;
}

}  // namespace capo::exhaustive
