// Reads each text as `--cost` does, as `--mem` does, and as `--recompute` does.
//
// A text is refused in words, or every number in it can be reckoned with: whatever task or link is
// asked for, what it takes is finite and never negative, and what a microbatch takes of memory it
// gives up again.

#include "fuzz/bytes.h"
#include "fuzz/laws.h"
#include "sim/costs.h"
#include "sim/memory.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace {

using namespace capo;

bool is_amount(double value) {
  return std::isfinite(value) && value >= 0;
}

void require_amounts(const TaskCosts& costs) {
  for (const double value :
       {costs.forward, costs.backward, costs.weight, costs.again, costs.dispatch, costs.combine,
        costs.unshard, costs.reshard, costs.reduce}) {
    fuzz::require(is_amount(value), "a task takes a finite time");
  }
  fuzz::require(costs.experts >= 0 && costs.experts <= 1, "experts are a part of a layer");
}

void require_costs(const std::string& text) {
  const auto settings = read_costs(text);
  if (!settings) return fuzz::require(!settings.error().empty(), "a refusal has a reason");
  fuzz::require(!settings->empty(), "what is read says something");
  Costs costs;
  for (const CostSetting& setting : *settings) {
    costs.set(setting);
    const CostScope& scope = setting.scope;
    fuzz::require(scope == settings->front().scope, "a text has one scope");
    const std::int32_t rank = std::max(scope.rank, 0);
    require_amounts(costs.of_layer(rank, std::max(scope.chunk, 1), std::max(scope.layer, 0), 3));
    require_amounts(costs.of_chunk(rank, std::max(scope.chunk, 1), 3));
    const LinkCosts link = costs.between(rank, std::max(scope.peer, 0));
    fuzz::require(is_amount(link.occupied()) && is_amount(link.total()), "so does a message");
  }
  fuzz::require(is_amount(costs.overlap) && is_amount(costs.slowdown) && costs.slowdown >= 1,
                "of a composite and of a device that communicates too");
  fuzz::require(costs.uniform() == (settings->front().scope == CostScope{}),
                "costs without a scope are those of all");
}

void require_memory(const std::string& text) {
  const auto change = read_memory(text);
  if (!change) return fuzz::require(!change.error().empty(), "a refusal has a reason");
  const double left = change->forward + change->backward + change->weight;
  fuzz::require(is_amount(change->forward), "a forward takes something, or nothing");
  fuzz::require(std::abs(left) <= 1e-9 * std::max(1.0, change->forward),
                "what a microbatch takes it gives up");
  fuzz::require(change->keep >= 0 && change->keep <= 1, "a part of it is kept");
}

void require_recomputed(const std::string& text) {
  const auto recomputed = read_recomputed(text);
  if (!recomputed) return fuzz::require(!recomputed.error().empty(), "a refusal has a reason");
  fuzz::require(recomputed->any(), "what is read names chunks");
  const auto again = read_recomputed(to_text(*recomputed));
  fuzz::require(again && *again == *recomputed, "and is written as it is read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::Bytes(data, size).rest();
  require_costs(text);
  require_memory(text);
  require_recomputed(text);
  return 0;
}
