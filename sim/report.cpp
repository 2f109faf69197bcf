#include "sim/report.h"

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/text/number.h"
#include "core/timeline/table.h"
#include "sim/words.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

std::string links_in_words(const Simulation& simulation) {
  switch (simulation.subject().links) {
    case Links::Ideal:
      return "links ideal: a message takes its time, occupies nobody and never queues";
    case Links::Rendezvous:
      return "links queue, and a send lasts until its receive";
    case Links::Buffered:
      return "links queue, and a send does not wait for its receive";
  }
  CAPO_UNREACHABLE();
}

std::string memory_words(const RankMemory& memory) {
  return byte_words(memory.peak() + memory.weights);
}

std::string bound_in_words(const Simulation& simulation, const Bound& bound, double value) {
  if (bound.value <= 0) return "";
  return fmt::format("at least {} ({}{}), {} above", time_in_words(simulation, bound.value),
                     bound.by, bound.rank < 0 ? "" : fmt::format(" at rank {}", bound.rank),
                     percent(bound.exceeded_by(value)));
}

std::string idle_in_words(const Simulation& simulation, const Idle& idle) {
  const auto at = [&](double value) { return time_in_words(simulation, value); };
  std::string text = fmt::format("{} from {} to {} ({})", name_of(idle.cause), at(idle.begin),
                                 at(idle.end), at(idle.end - idle.begin));
  if (idle.next == kNoTask) return text;
  text += fmt::format(" before {}", simulation.label(idle.next));
  if (idle.waits_for != kNoTask) {
    text += fmt::format(", behind {} of rank {}", simulation.label(idle.waits_for),
                        simulation.graph().tasks[idle.waits_for].rank);
  }
  if (idle.exposed > 0) text += fmt::format("; {} of it communication", at(idle.exposed));
  return text;
}

std::string rank_table(const Simulation& simulation) {
  const std::optional<PlanResult>& planned = simulation.planned();
  std::vector<std::vector<std::string>> rows{
      {"rank", "busy", "bubble", "exposed comm", "first", "last", "peak", "at", "microbatches"}};
  const bool quantizes = simulation.tells_quantization();
  if (quantizes) rows.front().insert(rows.front().begin() + 2, "quantizing");
  if (planned) rows.front().emplace_back("memory");
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    const RankTimes& rank = simulation.ranks()[r];
    const MemoryPeak& peak = simulation.peaks()[r];
    const auto at = [&](double value) { return time_in_words(simulation, value); };
    rows.push_back({std::to_string(r), at(rank.busy), at(rank.bubble), at(rank.exposed),
                    at(rank.first), at(rank.last), figure(peak.held), at(peak.time),
                    std::to_string(peak.microbatches)});
    if (quantizes) rows.back().insert(rows.back().begin() + 2, at(simulation.quantizing_of(r)));
    if (planned) rows.back().push_back(memory_words(planned->ranks[r]));
  }
  return table(rows);
}

// The memory column is no part of the simulation, but of a plan.
std::string memory_note(const Simulation& simulation) {
  if (!simulation.planned()) return "";
  return fmt::format(
      "memory: buffers under plan {} and weights, as `capo check --plan {}` counts them\n",
      name_of(simulation.planned()->kind), name_of(simulation.planned()->kind));
}

std::string longest_waits(const Simulation& simulation) {
  struct Wait {
    std::size_t rank;
    const Idle* idle;
  };
  std::vector<Wait> waits;
  for (std::size_t r = 0; r < simulation.ranks().size(); ++r) {
    for (const Idle& idle : simulation.ranks()[r].idle) waits.push_back({r, &idle});
  }
  if (waits.empty()) return "\nNo rank is ever idle.\n";
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.idle->end - a.idle->begin > b.idle->end - b.idle->begin;
  });
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format("\nIdle {}, the longest:\n", counted(waits.size(), "time"));
  for (std::size_t i = 0; i < std::min(kShown, waits.size()); ++i) {
    text +=
        fmt::format("  rank {}: {}\n", waits[i].rank, idle_in_words(simulation, *waits[i].idle));
  }
  return text;
}

std::string path_in_words(const Simulation& simulation) {
  const auto path = critical_path(simulation.subject(), simulation.times());
  constexpr std::size_t kEnds = 4;
  std::string text = fmt::format("\nCritical path, {}:", counted(path.size(), "task"));
  std::int32_t rank = -1;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i == kEnds && path.size() > 2 * kEnds + 1) {
      text += " ...";
      i = path.size() - kEnds;
    }
    const Task& task = simulation.graph().tasks[path[i]];
    if (task.rank != rank) text += fmt::format(" [rank {}]", task.rank);
    rank = task.rank;
    text += ' ' + simulation.label(path[i]);
  }
  return text + '\n';
}

}  // namespace

std::string recomputed_in_words(const Recomputed& recomputed, double keep) {
  return fmt::format("{}, keeping {}", to_text(recomputed),
                     keep > 0 ? fmt::format("{} of f", figure(keep)) : "nothing");
}

std::string text_report(const Simulation& simulation) {
  const MemoryChange& memory = simulation.memory_model();
  const Recomputed& recomputed = simulation.costs().recomputed;
  const std::string again =
      recomputed.any() ? "recomputed: " + recomputed_in_words(recomputed, memory.keep) + '\n' : "";
  std::string text =
      fmt::format("{}, {}, {}{}; {}\ntimes in {}, memory f={},b={},w={} of a microbatch\n{}\n",
                  counted(simulation.ranks().size(), "rank"),
                  counted(simulation.microbatches(), "microbatch", "microbatches"),
                  counted(simulation.graph().tasks.size(), "task"),
                  simulation.replayed() ? ", as replayed" : "", links_in_words(simulation),
                  unit_of_time(simulation), figure(memory.forward), figure(memory.backward),
                  figure(memory.weight), again);
  text += table({{"makespan", time_in_words(simulation, simulation.makespan()), "bubble",
                  percent(simulation.bubble_rate_of_makespan()),
                  bound_in_words(simulation, simulation.bounds().makespan, simulation.makespan())},
                 {"span", time_in_words(simulation, simulation.span()), "bubble",
                  percent(simulation.bubble_rate()),
                  bound_in_words(simulation, simulation.bounds().span, simulation.span())}},
                4);
  text += '\n' + rank_table(simulation) + memory_note(simulation);
  return text + longest_waits(simulation) + path_in_words(simulation) +
         origins_in_words(simulation);
}

std::string times_in_words(const Simulation& simulation) {
  return fmt::format("predicted: makespan {}, the busiest rank is idle {} of its span, links {}",
                     figure(simulation.makespan()), percent(simulation.bubble_rate()),
                     name_of(simulation.subject().links));
}

std::string why_untimed(const Result<std::unique_ptr<Simulation>, CannotSimulate>& simulation) {
  if (!simulation) return simulation.error().why;
  return (*simulation)->makespan() > 0 ? "" : "no task takes any time";
}

}  // namespace capo
