#include "testing/truth/across.h"

#include "core/rules/verify.h"
#include "core/rules/wiring.h"
#include "core/text/order_text.h"
#include "run/host/host_engine.h"
#include "run/processes/walk_all.h"
#include "run/run.h"
#include "run/setup/complete_model.h"
#include "testing/generators/moved_transfers.h"
#include "testing/truth/drawn_modules.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>
#include <variant>

namespace capo::testing {

namespace {

struct Drawn {
  Schedule schedule;
  Environment environment;
};

// An order of no more ranks than there are processes.
Drawn draw_across(std::uint64_t seed, std::uint64_t number, std::int32_t processes) {
  constexpr std::array kLayouts{Communicators::PerRank, Communicators::PerPair,
                                Communicators::PerEdge, Communicators::PerDirection,
                                Communicators::LazyHybrid};
  rc::Random random(seed * 1'000'003 + number);
  Dice dice(random.split());
  Drawn drawn;
  drawn.environment.communicators = dice.pick(std::span<const Communicators>(kLayouts));
  drawn.environment.transfers = dice.one_in(2) ? TransferMode::Buffered : TransferMode::Rendezvous;
  do {
    drawn.schedule = moved_transfers()(random.split(), 0).value();
  } while (std::ssize(drawn.schedule.ranks) > processes);
  return drawn;
}

run::Walkable walkable(const Wiring& wiring) {
  return {.graph = wiring.transfers().graph,
          .lowered = wiring.lowered(),
          .map = wiring.map(),
          .execution = wiring.execution(),
          .environment = wiring.environment(),
          .faults = wiring.transfers().faults};
}

// Runs an accepted order with tensors; says what was wrong, or nothing.
std::string wrong_in_run(run::Processes& processes, const Drawn& drawn, Dice dice) {
  CheckOptions declared;
  declared.environment = drawn.environment;
  declared.modules = {.list = {draw_truth_module(dice, ModuleKind::Linear)}, .layers = {{{0}}}};
  declared.plan.kind = PlanKind::Safe;
  const Input input{.form = Form::OrderFile, .schedule = drawn.schedule};
  const auto plan = verify(input, run::complete_model(declared, drawn.schedule).options);
  if (const auto* why = std::get_if<NotVerified>(&plan)) return "not verified: " + why->reason;
  run::host::HostEngine engine;
  const auto report = run::run(engine, std::get<VerifiedPlan>(plan),
                               {.replays = 1,
                                .float64 = run::Float64::LeftOut,
                                .processes = &processes,
                                .sends = run::mode_of(drawn.environment)});
  if (!report) return report.error().message;
  return report->bit_equal ? "" : "gradients differ from eager execution";
}

class Across {
 public:
  Across(run::Processes& processes, std::uint64_t seed) : processes_(processes), seed_(seed) {}

  // Walks and, if it is accepted, runs an order.
  void order(std::uint64_t number) {
    const Drawn drawn = draw_across(seed_, number, processes_.size());
    const Wiring wiring(drawn.schedule, drawn.environment, {}, *drawn.schedule.microbatches, false);
    if (!run::can_be_walked(walkable(wiring))) {
      ++tally.left_out;
      return;
    }
    const run::WalkedRanks walked = run::walk_all(processes_, walkable(wiring));
    ++tally.orders;
    if (processes_.rank() == 0) count(wiring, walked);
    const bool accepted = wiring.execution().finishes() && wiring.transfers().faults.empty();
    if (accepted && tally.disagreement.empty()) {
      tally.disagreement = wrong_in_run(processes_, drawn, Dice(rc::Random(number)));
      ++tally.right;
    }
    if (!tally.disagreement.empty()) {
      tally.disagreement = fmt::format(
          "order {} ({}, {}): {}\n{}", number, name_of(drawn.environment.layout()),
          transfers_text(drawn.environment), tally.disagreement, print_order_file(drawn.schedule));
    }
  }

  AcrossTally tally;

 private:
  void count(const Wiring& wiring, const run::WalkedRanks& walked) {
    const TaskGraph& graph = wiring.transfers().graph;
    tally.disagreement = run::difference(walkable(wiring), walked);
    const std::uint64_t pairs = run::mismatches(graph, walked);
    tally.pairs += pairs;
    tally.mismatched += pairs > 0 ? 1 : 0;
    if (wiring.execution().finishes()) {
      tally.late += pairs == 0 && !wiring.transfers().faults.empty() ? 1 : 0;
    } else {
      ++(shortest_cycle(graph, wiring.execution()).empty() ? tally.waiting : tally.circles);
    }
  }

  run::Processes& processes_;
  std::uint64_t seed_;
};

}  // namespace

AcrossTally run_across(run::Processes& processes, std::uint64_t orders, std::uint64_t seed) {
  Across across(processes, seed);
  for (std::uint64_t number = 0; across.tally.orders < orders && across.tally.disagreement.empty();
       ++number) {
    across.order(number);
  }
  return std::move(across.tally);
}

std::string to_text(const AcrossTally& tally) {
  std::string out = fmt::format(
      "{} orders over processes\n"
      "  {} accepted: finished, gradients equal to eager execution\n"
      "  {} stuck at the predicted circle of waits\n"
      "  {} stuck at the predicted place, for what nobody makes\n"
      "  {} with mismatched messages, {} pairs, as predicted\n"
      "  {} rejected for something else: finished as predicted\n"
      "{} left out, in which a transfer has no partner\n",
      tally.orders, tally.right, tally.circles, tally.waiting, tally.mismatched, tally.pairs,
      tally.late, tally.left_out);
  if (!tally.disagreement.empty()) out += "disagreement: " + tally.disagreement + "\n";
  return out;
}

}  // namespace capo::testing
