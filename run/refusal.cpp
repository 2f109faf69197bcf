#include "run/refusal.h"

#include "core/text/action_token.h"
#include "run/execute/loaded_step.h"
#include "run/execute/step_inputs.h"
#include "run/reference/sampled_reference.h"
#include "run/setup/reductions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::run {

// Multiply-adds of the float64 reference of one step: products forward, and backward two ways.
double float64_work(const StepLayers& layers, std::int32_t microbatches,
                    const RunOptions& options) {
  if (options.float64 == Float64::Sampled) {
    return sampled_work(layers, microbatches, options.float64_samples);
  }
  double work = 0;
  for (std::uint32_t p = 0; p < layers.parameters().size(); ++p) {
    const ParameterForm& form = layers.parameters()[p];
    if (!is_of_product(form.role) || form.role == Role::Router) continue;
    const LayerShape& shape = layers.layer_of(p).shape;
    const bool of_attention = form.role == Role::Qkv || form.role == Role::Projection;
    const std::int64_t rows = of_attention ? shape.tokens : product_rows(shape);
    work += 3.0 * static_cast<double>(rows) * static_cast<double>(form.elements);
  }
  return work * microbatches;
}

std::uint32_t float64_steps(const RunOptions& options) {
  if (options.float64 == Float64::LeftOut) return 0;
  return options.float64 == Float64::EveryReplay ? std::max(options.replays, 1U) : 1;
}

namespace {

std::optional<std::string> refusal_of_float64(const PlannedStep& step, const StepLayers& layers,
                                              const RunOptions& options) {
  const auto any = [&](auto is) {
    return std::any_of(layers.all().begin(), layers.all().end(), is);
  };
  const bool sampled = options.float64 == Float64::Sampled;
  if (sampled && any([](const StepLayer& layer) { return layer.shape.scaling.has_value(); })) {
    return "a layer whose products read codes is compared with float64 as a whole or not at all: "
           "leave it out (--float64 none) or compare all of a step (--float64 first)";
  }
  if (sampled && any([](const StepLayer& layer) { return has_router(layer.shape); })) {
    return "a layer with a router is compared with float64 as a whole or not at all: leave it out "
           "(--float64 none) or compare all of a step (--float64 first)";
  }
  if (sampled && any([](const StepLayer& layer) { return has_two_halves(layer.shape.kind); })) {
    return "a transformer-layer is compared with float64 as a whole or not at all: leave it out "
           "(--float64 none) or compare all of a step (--float64 first)";
  }
  const double work =
      float64_work(layers, step.view().table().microbatches(), options) * float64_steps(options);
  if (work <= options.float64_limit) return std::nullopt;
  return fmt::format(
      "the comparison with float64 takes {:.3g} multiply-adds of this machine's processor, and the "
      "limit is {:.3g}: {}, leave it out (--float64 none) or raise the limit (--float64-limit)",
      work, options.float64_limit,
      options.float64 == Float64::Sampled ? "take fewer samples (--float64-samples)"
                                          : "take a sample (--float64 sampled)");
}

// Whether all that may lie over the input of a layer has sizes of as many groups where it has them:
// TransformerEngine's plan gives the memory of an input to inputs that are alike.
bool sizes_take_over_sizes(const PlannedStep& step, const StepLayers& layers,
                           const Buffer& victim) {
  if (step.view().plan().kind != PlanKind::Te) return false;
  const BufferTable& table = step.view().table();
  const std::uint32_t key = table.facts(victim.rank, victim.chunk, victim.layer).input_key;
  const std::int64_t groups = layers.at(victim.rank, victim.chunk, victim.layer).shape.groups;
  return std::all_of(layers.all().begin(), layers.all().end(), [&](const StepLayer& other) {
    const bool alike = other.rank == victim.rank &&
                       table.facts(other.rank, other.chunk, other.layer).input_key == key;
    return !alike || (other.sizes_in_input && other.shape.groups == groups);
  });
}

// Why a buffer has to stay; nullopt if it may be overwritten, and the run shows that it was.
// Whoever reads a choice, or the size of a group, reads memory by it: where another buffer may lie
// over them there is no telling what would be read.
std::optional<std::string> refusal_of_victim(const PlannedStep& step, const StepLayers& layers,
                                             const Buffer& victim) {
  const auto layer = [&]() -> const StepLayer& {
    return layers.at(victim.rank, victim.chunk, victim.layer);
  };
  const std::string named =
      fmt::format("layer {} of chunk {} of rank {}", victim.layer, victim.chunk, victim.rank);
  if (victim.kind == BufferKind::Activations && has_router(layer().shape)) {
    return fmt::format(
        "the choices of a router may be overwritten before they are read, and they are addresses "
        "of rows: what {} keeps of microbatch {} has to stay",
        named, victim.microbatch);
  }
  if (victim.kind == BufferKind::StaticInput && layer().sizes_in_input &&
      !sizes_take_over_sizes(step, layers, victim)) {
    return fmt::format(
        "the sizes of groups may be overwritten before they are read, and they say where rows are: "
        "the input of {}, microbatch {}, has to stay",
        named, victim.microbatch);
  }
  return std::nullopt;
}

std::optional<std::string> refusal_of_victims(const PlannedStep& step, const StepLayers& layers) {
  if (!step.result().plan) return std::nullopt;
  for (const FoundHazard& hazard : step.result().plan->hazards) {
    if (auto why = refusal_of_victim(step, layers, hazard.victim)) return why;
  }
  return std::nullopt;
}

// The ranks over which a rank performs an action: itself, if no group does.
std::set<std::int32_t> performed_over(const PlannedStep& step, std::int32_t rank, Kind kind) {
  for (const CollectiveGroup& group : step.options().groups) {
    const std::set<std::int32_t> members(group.members.begin(), group.members.end());
    if (group.performs(kind) && members.contains(rank)) return members;
  }
  return {rank};
}

// Rows lie on the ranks to which a dispatch took them, and only those can bring them back.
std::optional<std::string> refusal_of_exchanges(const PlannedStep& step) {
  if (step.replayed().graph == nullptr) return std::nullopt;
  std::set<std::pair<std::int32_t, Kind>> performed;
  for (const Task& task : step.replayed().graph->tasks) {
    if (is_exchange(task.kind)) performed.emplace(task.rank, task.kind);
  }
  for (const auto& [rank, out] : performed) {
    const bool forward = out == Kind::DispatchForward;
    if (!forward && out != Kind::CombineBackward) continue;
    const Kind back = forward ? Kind::CombineForward : Kind::DispatchBackward;
    if (!performed.contains({rank, back})) continue;
    const auto over = performed_over(step, rank, out);
    const auto back_over = performed_over(step, rank, back);
    if (over == back_over) continue;
    return fmt::format(
        "rank {} performs {} over ranks {} and {} over ranks {}: the rows that a run sends come "
        "back from where they went, so one group has both",
        rank, word_of(out), fmt::join(over, ", "), word_of(back), fmt::join(back_over, ", "));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refusal(const PlannedStep& step, const StepLayers& layers,
                                   const RunOptions& options) {
  if (auto why = refusal_of_victims(step, layers)) return why;
  if (auto why = refusal_of_replicas(step, layers)) return why;
  if (auto why = refusal_of_exchanges(step)) return why;
  if (!reductions_due(step).empty() && options.float64 == Float64::Sampled) {
    return "gradients that ranks reduce are compared with float64 as a whole or not at all: "
           "leave it out (--float64 none) or compare all of a step (--float64 first)";
  }
  if (auto why = refusal_of_float64(step, layers, options)) return why;
  if (options.graphs == Granularity::PerStep && options.processes != nullptr &&
      !options.between.can_be_captured) {
    return "a host waits for what another process sends, and no graph can hold that: give --graphs "
           "per-action";
  }
  if (options.graphs == Granularity::PerStep && !step.replays_as_captured()) {
    return "a step that is one graph is replayed as it was captured: give --graphs per-action "
           "for a replay order of its own";
  }
  if (options.replays > 0 && has_resets(step.input().schedule)) {
    return "the order resets graphs, and a run replays them again and again: leave the resets out";
  }
  if (options.hooks.substitute_saved && options.replays > 0) {
    return "graphs read what was saved where it was at their capture: saved tensors can be "
           "substituted in eager execution only";
  }
  return std::nullopt;
}

namespace {

std::string_view word_of_way(const Exchange& exchange) {
  return exchange.way == Way::Forward ? "forward" : "backward";
}

// Whoever reads rows that stay away reads those of another rank.
std::optional<std::string> refusal_of_rows_away(const Program& program, const Cells& cells) {
  std::vector<std::int32_t> away(program.exchanges.size(), 0);
  for (const OpPart& part : program.parts) {
    if (part.kind == OpPart::Kind::Permute) ++away[part.to];
    if (part.kind == OpPart::Kind::Return) --away[part.to];
  }
  for (std::uint32_t at = 0; at < away.size(); ++at) {
    const Exchange& exchange = program.exchanges[at];
    if (away[at] == 0 || !exchange.crosses()) continue;
    const Cells::Cell cell = cells.at(exchange.cell);
    return fmt::format(
        "rank {} sends rows of the {} of chunk {}, microbatch {}, to other ranks and never brings "
        "them back: whoever reads them would read rows of other ranks in their place",
        cell.rank, word_of_way(exchange), cell.chunk, cell.microbatch);
  }
  return std::nullopt;
}

// Rows that stay on their rank show no block that is missing, but float64 knows of no permutation
// that is not undone.
std::optional<std::string> refusal_of_permuted_rows(const Program& program, const Cells& cells) {
  for (const OpPart& part : program.parts) {
    if (part.kind != OpPart::Kind::Work || part.origin.kind != Origin::Kind::Permuted) continue;
    const Exchange& exchange = program.exchanges[part.origin.id];
    if (exchange.around_experts()) continue;
    const Cells::Cell cell = cells.at(exchange.cell);
    return fmt::format(
        "rank {} permutes rows of the {} of chunk {}, microbatch {}, and never brings them back: "
        "{} would read them as they are permuted",
        cell.rank, word_of_way(exchange), cell.chunk, cell.microbatch,
        name_of(part.rank, part.work));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refusal_of_crossings(const PlannedStep& step, const StepLayers& layers,
                                                const Program& program) {
  const Cells cells(step.view().table());
  if (auto why = refusal_of_rows_away(program, cells)) return why;
  if (auto why = refusal_of_permuted_rows(program, cells)) return why;
  for (const Exchange& exchange : program.exchanges) {
    const Cells::Cell own = cells.at(exchange.cell);
    for (const std::uint32_t at : exchange.among) {
      const Exchange& member = program.exchanges[at];
      if (exchange.around_experts() || member.around_experts()) continue;
      if (form_of_rows(layers, cells, exchange) == form_of_rows(layers, cells, member)) continue;
      return fmt::format(
          "rank {} exchanges rows of the {} of chunk {} with rank {}, whose rows are others: those "
          "that ranks exchange need to be as many, of one width and of one type on all of them",
          own.rank, word_of_way(exchange), own.chunk, cells.at(member.cell).rank);
    }
  }
  return std::nullopt;
}

namespace {

// The layers that read the rows of an exchange around experts first, and make those that go back.
struct ExpertLayers {
  const LayerShape& first;
  const LayerShape& last;
};

ExpertLayers layers_around(const StepLayers& layers, const BufferTable& table,
                           const Cells::Cell& cell) {
  return {layers.at(cell.rank, cell.chunk, 0).shape,
          layers.at(cell.rank, cell.chunk, table.layers(cell.rank, cell.chunk) - 1).shape};
}

bool rows_alike(const ExpertLayers& one, const ExpertLayers& other) {
  return one.first.tokens == other.first.tokens && one.last.tokens == other.first.tokens &&
         one.first.hidden == other.first.hidden && one.first.type == other.first.type &&
         output_columns(one.last) == output_columns(other.last) && one.last.type == other.last.type;
}

std::set<std::uint32_t> cells_among(const Program& program, const Exchange& exchange) {
  std::set<std::uint32_t> cells{exchange.cell};
  for (const std::uint32_t other : exchange.among) cells.insert(program.exchanges[other].cell);
  return cells;
}

// Rows and their gradients go by one way: the cells to whose experts the rows of a cell go are
// those to which their gradients do.
bool go_one_way(const Program& program) {
  std::map<std::uint32_t, std::set<std::uint32_t>> ways[2];
  for (const Exchange& exchange : program.exchanges) {
    if (!exchange.around_experts()) continue;
    ways[exchange.way == Way::Forward ? 0 : 1][exchange.cell] = cells_among(program, exchange);
  }
  return ways[0] == ways[1];
}

std::optional<std::string> refusal_of_members(const BufferTable& table, const StepLayers& layers,
                                              const Program& program) {
  const Cells cells(table);
  for (const Exchange& exchange : program.exchanges) {
    if (!exchange.around_experts()) continue;
    const Cells::Cell own = cells.at(exchange.cell);
    for (const std::uint32_t other : exchange.among) {
      if (program.exchanges[other].around_experts()) continue;
      return fmt::format(
          "chunk {} of rank {} computes on the rows that a dispatch brings, and rank {} does not: "
          "experts are on all ranks of a group or on none",
          own.chunk, own.rank, cells.at(program.exchanges[other].cell).rank);
    }
    const ExpertLayers here = layers_around(layers, table, own);
    for (const std::uint32_t cell : cells_among(program, exchange)) {
      const Cells::Cell other = cells.at(cell);
      if (rows_alike(here, layers_around(layers, table, other))) continue;
      return fmt::format(
          "chunk {} of rank {} computes on rows of rank {}, whose rows are others: the layers of "
          "experts that exchange rows need as many of one width and type on all ranks, and as many "
          "in each layer",
          own.chunk, own.rank, other.rank);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refusal_of_experts(const PlannedStep& step, const StepLayers& layers,
                                              const Program& program, const RunOptions& options) {
  const auto around = [](const Exchange& exchange) { return exchange.around_experts(); };
  if (std::none_of(program.exchanges.begin(), program.exchanges.end(), around)) return std::nullopt;
  if (options.float64 == Float64::Sampled) {
    return "layers that compute on rows of other ranks are compared with float64 as a whole or not "
           "at all: leave it out (--float64 none) or compare all of a step (--float64 first)";
  }
  if (step.result().plan && !step.result().plan->hazards.empty()) {
    return "a buffer is overwritten before it is read, and what experts make of it goes to all "
           "ranks of their group, where no victim of it can be told from others";
  }
  if (!go_one_way(program)) {
    return "a chunk that runs between its dispatch and its combine is what experts do, and its "
           "backward has to run between its combine and its dispatch, over the same ranks: the "
           "gradient of a row goes where the row went";
  }
  return refusal_of_members(step.view().table(), layers, program);
}

}  // namespace capo::run
