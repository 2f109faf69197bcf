#include "testing/truth/across.h"

#include "core/rules/verify.h"
#include "core/rules/wiring.h"
#include "core/text/order_text.h"
#include "core/text/stated_transfers.h"
#include "run/host/host_engine.h"
#include "run/processes/walk_all.h"
#include "run/run.h"
#include "run/setup/complete_model.h"
#include "testing/generators/moved_transfers.h"
#include "testing/truth/drawn_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::testing {

namespace {

struct Drawn {
  Schedule schedule;
  Environment environment;
  std::vector<CollectiveGroup> groups;
};

// Puts an entry somewhere from `from` on, though not into a composite or a fused group; returns the
// place behind it.
std::size_t put_somewhere(Dice& dice, std::vector<Entry>& order, std::size_t from, Entry entry) {
  std::size_t at = from + dice.below(order.size() - from + 1);
  while (at < order.size() && order[at].group == Group::Continues) ++at;
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), entry);
  return at + 1;
}

// All ranks reduce the chunks that each of them has, together and anywhere. One rank in four does
// it the other way round, and one reduction in two is waited for.
void add_reductions(Dice& dice, Drawn& drawn) {
  auto& ranks = drawn.schedule.ranks;
  CollectiveGroup all{.name = "all", .actions = {Kind::ReduceGradient}};
  std::int32_t chunks = ranks.front().chunks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    all.members.push_back(static_cast<std::int32_t>(rank));
    chunks = std::min(chunks, ranks[rank].chunks);
  }
  for (RankOrder& rank : ranks) {
    const bool backwards = dice.one_in(4);
    std::size_t from = 0;
    for (std::int32_t n = 1; n <= chunks; ++n) {
      const std::int32_t chunk = backwards ? chunks + 1 - n : n;
      from = put_somewhere(dice, rank.order, from, {.chunk = chunk, .kind = Kind::ReduceGradient});
      if (!dice.one_in(2)) continue;
      put_somewhere(dice, rank.order, from, {.chunk = chunk, .kind = Kind::WaitReduceGradient});
    }
  }
  drawn.groups = {std::move(all)};
}

enum class Reductions : std::uint8_t { InOneOfThree, InNone };

// An order of no more ranks than there are processes.
Drawn draw_across(std::uint64_t seed, std::uint64_t number, std::int32_t processes,
                  Reductions reductions) {
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
  if (reductions == Reductions::InOneOfThree && dice.one_in(3)) add_reductions(dice, drawn);
  return drawn;
}

// Runs an accepted order with tensors; says what was wrong, or nothing.
std::string wrong_in_run(run::Processes& processes, const AcrossDevices* devices,
                         const Drawn& drawn, Dice dice) {
  CheckOptions declared;
  declared.environment = drawn.environment;
  declared.modules = {.list = {draw_truth_module(dice, ModuleKind::Linear)}, .layers = {{{0}}}};
  declared.plan.kind = PlanKind::Safe;
  const Input input{.form = Form::OrderFile, .schedule = drawn.schedule};
  const auto plan = verify(input, run::complete_model(declared, drawn.schedule).options);
  if (const auto* why = std::get_if<NotVerified>(&plan)) return "not verified: " + why->reason;
  run::host::HostEngine host;
  run::RunOptions options{.replays = 1,
                          .float64 = run::Float64::LeftOut,
                          .processes = &processes,
                          .sends = run::mode_of(drawn.environment)};
  if (devices != nullptr) options.between = devices->between;
  run::Engine& engine = devices == nullptr ? host : devices->engine;
  const auto report = run::run(engine, std::get<VerifiedPlan>(plan), options);
  if (!report) return report.error().message;
  return report->bit_equal ? "" : "gradients differ from eager execution";
}

// Over devices a run with tensors makes its own communicators, which takes a second: one accepted
// order in so many is run, all are walked.
constexpr std::uint64_t kOneIn = 8;

class Across {
 public:
  Across(run::Processes& processes, std::uint64_t seed, const AcrossDevices* devices)
      : processes_(processes), seed_(seed), devices_(devices) {}

  // Walks and, if it is accepted, runs an order.
  void order(std::uint64_t number) {
    Drawn drawn = draw_across(seed_, number, processes_.size(),
                              devices_ == nullptr ? Reductions::InOneOfThree : Reductions::InNone);
    // Large messages of NCCL wait.
    if (devices_ != nullptr) drawn.environment.transfers = TransferMode::Rendezvous;
    const Wiring wiring(drawn.schedule, drawn.environment, drawn.groups,
                        *drawn.schedule.microbatches, false);
    if (!run::can_be_walked(run::walkable(wiring), meetings())) {
      ++tally.left_out;
      return;
    }
    name_ = fmt::format("order {} ({})", number, name_of(drawn.environment.layout()));
    const run::WalkedRanks walked = walk(run::walkable(wiring));
    ++tally.orders;
    tally.disagreement = walked.silent;
    if (processes_.rank() == 0) count(wiring, walked);
    const bool accepted = wiring.execution().finishes() && wiring.transfers().faults.empty();
    const bool reduces = !drawn.groups.empty();
    if (accepted && reduces) ++tally.met;
    if (accepted && !reduces && tally.disagreement.empty()) {
      ++tally.right;
      const bool runs = devices_ == nullptr || tally.right % kOneIn == 1;
      if (runs) {
        tell("run with tensors");
        tally.disagreement = wrong_in_run(processes_, devices_, drawn, Dice(rc::Random(number)));
        ++tally.ran;
      }
    }
    if (!tally.disagreement.empty()) {
      tally.disagreement = fmt::format(
          "order {} ({}, {}): {}\n{}", number, name_of(drawn.environment.layout()),
          transfers_text(drawn.environment), tally.disagreement, print_order_file(drawn.schedule));
    }
  }

  AcrossTally tally;

 private:
  // Says which part of the order begins.
  void tell(std::string_view part) {
    if (devices_ != nullptr) devices_->at(fmt::format("{}, which is {}", name_, part));
  }

  [[nodiscard]] run::Meetings meetings() const {
    return devices_ == nullptr ? run::Meetings::AreWalked : run::Meetings::AreNot;
  }

  [[nodiscard]] run::WalkedRanks walk(const run::Walkable& of) {
    if (devices_ == nullptr) return run::walk_all(processes_, of);
    const Communicators layout = of.environment.layout();
    tell("given its communicators");
    run::MessageLibrary& messages = devices_->messages(layout);
    tell("walked");
    run::WalkedRanks walked = run::observe(processes_, messages, of, devices_->patience);
    note_error(messages, walked);
    if (!walked.silent.empty()) return walked;
    const bool stuck = walked.ran.size() < of.graph.task_of.size();
    const auto go_on = processes_.spread(stuck ? "renew" : "");
    if (!go_on) {
      walked.silent = "rank 0 does not answer";
    } else if (!go_on->empty()) {
      tell("stuck, and given new communicators");
      devices_->renew(layout);
      note_error(messages, walked);
    }
    return walked;
  }

  void note_error(const run::MessageLibrary& messages, run::WalkedRanks& walked) {
    std::string error = run::error_of_any(processes_, messages);
    if (!error.empty()) walked.silent = std::move(error);
  }

  void count(const Wiring& wiring, const run::WalkedRanks& walked) {
    const TaskGraph& graph = wiring.transfers().graph;
    tally.disagreement = run::difference(run::walkable(wiring), walked);
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
  const AcrossDevices* devices_;
  std::string name_;  // of the order
};

}  // namespace

AcrossTally run_across(run::Processes& processes, std::uint64_t orders, std::uint64_t seed,
                       const AcrossDevices* devices) {
  Across across(processes, seed, devices);
  for (std::uint64_t number = 0; across.tally.orders < orders && across.tally.disagreement.empty();
       ++number) {
    across.order(number);
    if (devices != nullptr) devices->progress(across.tally);
  }
  return std::move(across.tally);
}

std::string to_text(const AcrossTally& tally) {
  std::string out = fmt::format(
      "{} orders over processes\n"
      "  {} accepted: finished, gradients equal to eager execution{}\n"
      "  {} accepted, with reductions over all ranks: finished, walked alone\n"
      "  {} stuck at the predicted circle of waits\n"
      "  {} stuck at the predicted place, for what nobody makes\n"
      "  {} with mismatched messages, {} pairs, as predicted\n"
      "  {} rejected for something else: finished as predicted\n"
      "{} left out, in which a transfer has no partner\n",
      tally.orders, tally.right,
      tally.ran == tally.right ? "" : fmt::format(" in the {} that were run", tally.ran), tally.met,
      tally.circles, tally.waiting, tally.mismatched, tally.pairs, tally.late, tally.left_out);
  if (!tally.disagreement.empty()) out += "disagreement: " + tally.disagreement + "\n";
  return out;
}

}  // namespace capo::testing
