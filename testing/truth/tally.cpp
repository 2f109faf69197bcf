#include "testing/truth/tally.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::testing {

namespace {

std::uint64_t count_of(const run::Victims& victims) {
  return victims.static_input.size() + victims.grad_output.size() + victims.grad_input.size() +
         victims.other.size();
}

}  // namespace

void Tally::add(const TruthLine& line) {
  const std::size_t way = as_index(line.came);
  ++lines;
  ++came[way];
  for (const std::string& rule : line.rules) ++by_rule[rule][way];
  if (!line.fault.empty()) ++by_fault[line.fault][way];
  ++by_module[line.module][way];
  ++by_graphs[line.graphs][way];
  ++by_plan[line.plan][way];
  const bool accepted = line.verdict == "accepted";
  if (!line.across.empty()) ++(accepted ? undeclared_accepted : undeclared_rejected);
  if (!line.ran) return;
  const bool right = line.bit_equal && line.within_bounds;
  ++(accepted ? (right ? accepted_right : accepted_wrong)
              : (right ? rejected_right : rejected_wrong));
  gradients += line.gradients * line.replays;
  victims += count_of(line.victims);
  float64 = std::max(float64, line.float64);
}

std::uint64_t Tally::disagreements() const {
  return came[as_index(Came::Disagrees)];
}

std::string matrix_text(const Tally& tally) {
  std::string text = "            gradients right   some wrong\n";
  text += fmt::format("  accepted  {:>15}   {:>10}\n", tally.accepted_right, tally.accepted_wrong);
  text += fmt::format("  rejected  {:>15}   {:>10}\n", tally.rejected_right, tally.rejected_wrong);
  const auto count = [&](Came came) { return tally.came[as_index(came)]; };
  text += fmt::format("rejected and seen {}, explained {}, nothing to run {}; disagreements {}\n",
                      count(Came::Seen), count(Came::Explained), count(Came::NotRun),
                      tally.disagreements());
  text += fmt::format("{} gradients compared to the bit, {} victims seen; largest error {:.3g}\n",
                      tally.gradients, tally.victims, tally.float64);
  text +=
      fmt::format("{} of several ranks whose communication was not declared, {} rejected\n",
                  tally.undeclared_accepted + tally.undeclared_rejected, tally.undeclared_rejected);
  return text;
}

std::string rules_text(const Tally& tally) {
  std::string text = "  rule      seen   explained   nothing to run\n";
  for (const auto& [rule, counts] : tally.by_rule) {
    text += fmt::format("  {:<4}  {:>8}   {:>9}   {:>14}\n", rule, counts[as_index(Came::Seen)],
                        counts[as_index(Came::Explained)], counts[as_index(Came::NotRun)]);
  }
  return text;
}

}  // namespace capo::testing
