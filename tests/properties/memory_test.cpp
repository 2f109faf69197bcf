// Memory: who TransformerEngine's reuse hurts is what a replay with tagged cells says that shares
// no code with capo; capo's own plan shares memory only where every path through the step orders
// its uses; and a plan is found wrong exactly where it does otherwise.

#include "testing/oracle/memory.h"
#include "core/base/index.h"
#include "core/frameworks/te/from_te_list.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_schedule.h"
#include "testing/oracle/declared.h"
#include "tests/core/plan/planned.h"
#include "tests/core/plan/sharing.h"
#include "tests/properties/drawn_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::PlannedStep;
using testing_support::Sharing;

// A product whose tensors have these keys.
Module module_of(const oracle::LayerKeys& keys) {
  return {.name = fmt::format("m{}-{}", keys.input, keys.output),
          .kind = ModuleKind::Linear,
          .shape = {.tokens = 1, .hidden = keys.input + 1, .ffn = keys.output + 1}};
}

struct Keyed {
  Schedule schedule;
  ModuleTable modules;
  oracle::Capture capture;
};

// One module of unknown shape might be like any other, so that all tensors are of one key.
void forget_a_shape(Keyed& made) {
  const auto which = below(static_cast<std::int32_t>(made.modules.list.size()));
  made.modules.list[static_cast<std::size_t>(which)].shape = {};
  for (auto& layers : made.capture.chunks) {
    for (oracle::LayerKeys& keys : layers) keys = {};
  }
}

oracle::Capture::Kind oracle_kind(Kind kind) {
  if (kind == Kind::Forward) return oracle::Capture::Forward;
  return kind == Kind::Backward ? oracle::Capture::Backward : oracle::Capture::Weight;
}

Keyed keyed(const TeOrder& order) {
  Keyed made{.schedule = from_te_list(order.list, order.declarations()).schedule,
             .modules = {.list = {}, .layers = {{}}},
             .capture = {}};
  RankOrder& rank = made.schedule.ranks.front();
  rank.layers = {.form = Layers::Form::List, .values = {}};
  const std::int32_t keys = 1 + below(3);
  for (std::int32_t chunk = 0; chunk < order.chunks(); ++chunk) {
    rank.layers.values.push_back(1 + below(3));
    auto& of_chunk = made.modules.layers[0].emplace_back();
    auto& layers = made.capture.chunks.emplace_back();
    for (std::int64_t layer = 0; layer < rank.layers.values.back(); ++layer) {
      layers.push_back({.input = below(keys), .output = below(keys)});
      of_chunk.push_back(static_cast<std::int32_t>(made.modules.list.size()));
      made.modules.list.push_back(module_of(layers.back()));
    }
  }
  if (below(3) == 0) forget_a_shape(made);
  for (const Entry& entry : rank.order) {
    made.capture.order.push_back({oracle_kind(entry.kind), entry.chunk - 1});
  }
  return made;
}

// The buffers of others that weight gradients read.
std::vector<oracle::Misread> misreads_of(const std::vector<Hazard>& hazards) {
  std::vector<oracle::Misread> misreads;
  for (const Hazard& hazard : hazards) {
    const Buffer& victim = hazard.victim;
    if (hazard.reader.kind != Kind::BackwardWeight) continue;
    misreads.push_back({.chunk = victim.chunk - 1,
                        .layer = victim.layer,
                        .microbatch = victim.microbatch,
                        .operand = victim.kind == BufferKind::StaticInput
                                       ? oracle::Misread::Input
                                       : oracle::Misread::Gradient,
                        .position = static_cast<int>(hazard.reader.entry)});
  }
  std::sort(misreads.begin(), misreads.end());
  return misreads;
}

RC_GTEST_PROP(Memory, HurtsUnderTesPlanWhomTheOracleSays, ()) {
  const Keyed made = keyed(*te_capturable_order());
  const oracle::Replay replay = oracle::replay(made.capture);
  const PlannedStep step(made.schedule, made.modules);
  const Plan plan = step.plan(PlanKind::Te);
  const std::vector<Hazard> hazards = step.hazards(plan);
  RC_CLASSIFY(!hazards.empty());
  RC_ASSERT(misreads_of(hazards) == replay.misreads);
  RC_ASSERT(hazards.size() == replay.misreads.size());
  RC_ASSERT(plan.ranks.at(0).input_slots == static_cast<std::size_t>(replay.inputs));
  RC_ASSERT(plan.ranks.at(0).static_inputs == replay.inputs);
  RC_ASSERT(plan.ranks.at(0).grad_outputs == replay.gradients);
}

// One rank whose chunks follow each other, in any order that it can execute; chunks of one layer
// that all look alike. The k-th entry of a kind is of microbatch k.
class ChainInTurn {
 public:
  ChainInTurn() : chunks_(1 + below(3)), microbatches_(1 + below(4)) {
    made.schedule = {.naming = Naming::Named, .microbatches = microbatches_};
    made.schedule.topology = Topology::Chain;
    made.capture.chain = true;
    RankOrder& rank = made.schedule.ranks.emplace_back();
    rank.chunks = chunks_;
    rank.delay.emplace();
    made.modules = {.list = {module_of({})}, .layers = {{}}};
    for (std::int32_t chunk = 0; chunk < chunks_; ++chunk) {
      rank.delay->push_back(below(2) == 0 ? Delay::Always : Delay::Never);
      made.modules.layers[0].push_back({0});
      made.capture.chunks.push_back({oracle::LayerKeys{}});
    }
    done_.assign(static_cast<std::size_t>(chunks_), {});
    for (auto next = possible(); !next.empty(); next = possible()) {
      const auto [kind, chunk] =
          next[static_cast<std::size_t>(below(static_cast<int>(next.size())))];
      const std::int32_t microbatch = done_[chunk][kind]++;
      constexpr Kind kKinds[] = {Kind::Forward, Kind::Backward, Kind::BackwardWeight};
      rank.order.push_back({.chunk = static_cast<std::int32_t>(chunk) + 1,
                            .microbatch = microbatch,
                            .kind = kKinds[kind]});
      made.capture.order.push_back({kind, static_cast<int>(chunk)});
    }
  }

  Keyed made;

 private:
  using Step = std::pair<oracle::Capture::Kind, std::size_t>;

  [[nodiscard]] std::vector<Step> possible() const {
    using oracle::Capture;
    std::vector<Step> steps;
    for (std::size_t c = 0; c < done_.size(); ++c) {
      const auto& [forwards, backwards, weights] = done_[c];
      const bool fed = c == 0 || done_[c - 1][Capture::Forward] > forwards;
      const bool answered = c + 1 == done_.size() || done_[c + 1][Capture::Backward] > backwards;
      const bool delays = (*made.schedule.ranks[0].delay)[c] == Delay::Always;
      if (forwards < microbatches_ && fed) steps.emplace_back(Capture::Forward, c);
      if (backwards < forwards && answered) steps.emplace_back(Capture::Backward, c);
      if (weights < backwards && delays) steps.emplace_back(Capture::Weight, c);
    }
    return steps;
  }

  std::int32_t chunks_;
  std::int32_t microbatches_;
  std::vector<std::array<std::int32_t, 3>> done_;  // counted by chunk and kind
};

// The buffers that were read too late, and the entries that read them.
using LateRead = std::pair<oracle::Misread::Operand, int>;

RC_GTEST_PROP(Memory, HurtsInAChainWhomTheOracleSays, ()) {
  const ChainInTurn chain;
  std::vector<LateRead> expected;
  for (const oracle::Misread& misread : oracle::replay(chain.made.capture).misreads)
    expected.emplace_back(misread.operand, misread.position);
  const PlannedStep step(chain.made.schedule, chain.made.modules,
                         {.aliases = Aliases{.input = true, .grad_output = true}});
  std::vector<LateRead> found;
  for (const Hazard& hazard : step.hazards(PlanKind::Te)) {
    const auto operand = hazard.victim.kind == BufferKind::StaticInput ? oracle::Misread::Input
                         : hazard.victim.kind == BufferKind::GradOutput
                             ? oracle::Misread::Gradient
                             : oracle::Misread::HandedBack;
    found.emplace_back(operand, static_cast<int>(hazard.reader.entry));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  RC_CLASSIFY(!found.empty());
  RC_ASSERT(found == expected);
}

// A list with chunks of one layer, some of which begin a chunk of the model and send their
// gradient. Sizes differ or are all alike, so that of free cells that fit the last one is taken,
// whatever it held.
RC_GTEST_PROP(Memory, IsTakenTooEarlyFromWhatIsSentWhereTheOracleSays, ()) {
  const TeOrder order = *te_capturable_order();
  Schedule schedule = from_te_list(order.list, order.declarations()).schedule;
  RankOrder& rank = schedule.ranks.front();
  rank.layers = {.form = Layers::Form::List, .values = {}};
  ModuleTable modules{.list = {}, .layers = {{}}};
  PlanOptions options{.aliases = Aliases{.input = true, .grad_output = true}};
  oracle::DeclaredCapture capture;
  const bool alike = below(2) == 0;
  std::int32_t begins = 0;  // the chunk at which the next chunk of the model begins
  for (std::int32_t chunk = 0; chunk < order.chunks(); ++chunk) {
    const int bytes = alike ? 1 : 2 + below(3);
    capture.chunks.push_back({.keys = {bytes, 1}, .input_bytes = bytes, .sends = chunk == begins});
    if (chunk == begins) {
      options.model_chunks.push_back(std::min(1 + below(3), order.chunks() - chunk));
      begins += options.model_chunks.back();
    }
    rank.layers.values.push_back(1);
    modules.layers[0].push_back({chunk});
    modules.list.push_back(
        {.name = fmt::format("m{}", chunk),
         .bytes = {.input = bytes, .output = 1, .activations = 0, .operands = 0, .weight = 0}});
  }
  for (const Entry& entry : rank.order)
    capture.order.push_back({oracle_kind(entry.kind), entry.chunk - 1});
  std::vector<int> expected;
  for (const oracle::Flaw& flaw : oracle::flaws(capture)) {
    if (flaw.kind == oracle::Flaw::CutOff) expected.push_back(flaw.position);
  }
  std::vector<int> found;
  for (const Hazard& hazard : PlannedStep(schedule, modules, options).hazards(PlanKind::Te)) {
    if (hazard.window) found.push_back(static_cast<int>(hazard.reader.entry));
  }
  RC_CLASSIFY(!found.empty());
  RC_ASSERT(found == expected);
}

RC_GTEST_PROP(Memory, HurtsUnderTesPlanOnlyOperandsThatAreAliased, (bool input, bool gradient)) {
  const Keyed made = keyed(*te_capturable_order());
  std::vector<oracle::Misread> expected = oracle::replay(made.capture).misreads;
  std::erase_if(expected, [&](const oracle::Misread& misread) {
    return !(misread.operand == oracle::Misread::Input ? input : gradient);
  });
  const PlannedStep step(made.schedule, made.modules,
                         {.aliases = Aliases{.input = input, .grad_output = gradient}});
  RC_ASSERT(misreads_of(step.hazards(PlanKind::Te)) == expected);
  RC_ASSERT(step.hazards(PlanKind::Safe).empty());
}

RC_GTEST_PROP(Memory, IsSharedInASafePlanOnlyWhereEveryPathOrdersItsUses, ()) {
  const Drawn drawn;
  const Plan plan = drawn.step.plan(PlanKind::Safe);
  const std::vector<std::string> unordered = Sharing(drawn.step).unordered(plan);
  if (!unordered.empty()) RC_FAIL(fmt::format("{}", fmt::join(unordered, "\n")));
  RC_ASSERT(drawn.step.hazards(plan).empty());
  for (const RankMemory& memory : plan.ranks) RC_ASSERT(memory.peak() >= memory.lower_bound);
}

// One buffer is laid over another: that hurts exactly if their uses are not ordered.
RC_GTEST_PROP(Memory, IsFoundHazardousExactlyWhereItsUsesAreNotOrdered, ()) {
  const Drawn drawn;
  const BufferTable& table = drawn.step.table();
  RC_PRE(table.all() > 0U);
  Plan plan = drawn.step.plan(PlanKind::Safe);
  std::int64_t beyond = 0;
  for (BufferId id = 0; id < table.all(); ++id) {
    if (plan.address[id] == kNowhere) continue;
    plan.address[id] = beyond;
    beyond += table.bytes(table.at(id));
  }
  // Of all buffers, or of those of receives, which are few.
  const std::size_t first = below(2) == 0 ? 0 : table.size() % table.all();
  const auto any_buffer = [&] {
    return static_cast<BufferId>(first) +
           static_cast<BufferId>(below(static_cast<std::int32_t>(table.all() - first)));
  };
  // Or one of these is a quantized weight, of which there are few as well.
  std::vector<BufferId> weights;
  for (BufferId id = 0; id < table.size(); ++id) {
    if (table.at(id).kind == BufferKind::QuantizedWeight && plan.address[id] != kNowhere)
      weights.push_back(id);
  }
  const bool of_weights = !weights.empty() && below(2) == 0;
  for (int moved = 1 + below(2); moved > 0; --moved) {
    const BufferId from = any_buffer();
    const BufferId to = of_weights
                            ? weights[as_index(below(static_cast<std::int32_t>(weights.size())))]
                            : any_buffer();
    if (plan.address[from] == kNowhere || plan.address[to] == kNowhere) continue;
    // At its beginning, or from its middle on.
    plan.address[from] = plan.address[to] + below(2) * (table.bytes(table.at(to)) / 2);
  }
  const Sharing sharing(drawn.step);
  RC_CLASSIFY(sharing.shared(plan) > 0U);
  const std::vector<std::string> unordered = sharing.unordered(plan);
  RC_CLASSIFY(!unordered.empty());
  const std::vector<Hazard> hazards = drawn.step.hazards(plan);
  if (hazards.empty() != unordered.empty()) {
    RC_FAIL(
        fmt::format("{} hazards; not ordered [{}]", hazards.size(), fmt::join(unordered, "; ")));
  }
}

}  // namespace
}  // namespace capo::testing
