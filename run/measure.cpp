#include "run/measure.h"

#include "core/base/assert.h"
#include "core/input/load.h"
#include "run/setup/complete_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {

namespace {

std::string head_of(const MeasureOptions& options) {
  return fmt::format("capo 1\nranks 1\nmicrobatches {}\nplacement chain\nrank 0:",
                     options.microbatches);
}

enum class Backwards : std::uint8_t { Split, Whole };

std::string steps_of(const MeasureOptions& options, Backwards backwards = Backwards::Split) {
  std::string steps = head_of(options);
  const char* one_by_one =
      options.exchanges == Exchanges::Measured
          ? " F1.{0} dispatch-F1.{0} combine-F1.{0} combine-B1.{0} dispatch-B1.{0} B1.{0}"
          : " F1.{0} B1.{0}";
  for (std::uint32_t m = 0; m < options.microbatches; ++m) {
    steps += fmt::format(fmt::runtime(one_by_one), m);
    if (backwards == Backwards::Split) steps += fmt::format(" W1.{}", m);
  }
  return steps + "\n";
}

// The weight gradients of a call that is measured: there are two such calls in a step, since the
// first runs cold.
std::uint32_t size_of_call(const MeasureOptions& options) {
  return std::min<std::uint32_t>(kMostFusedWeights, options.microbatches / 2);
}

// All weight gradients come at the end, in calls.
std::string fused_steps_of(const MeasureOptions& options) {
  std::string steps = head_of(options);
  for (std::uint32_t m = 0; m < options.microbatches; ++m) {
    steps += fmt::format(" F1.{0} B1.{0}", m);
  }
  const std::uint32_t call = size_of_call(options);
  for (std::uint32_t m = 0; m < options.microbatches; ++m) {
    const bool opens = m % call == 0;
    const bool closes = m % call + 1 == call || m + 1 == options.microbatches;
    steps += fmt::format(" {}W1.{}{}", opens ? "(" : "", m, closes ? ")" : "");
  }
  return steps + "\n";
}

CheckOptions options_for(const Module& module, const MeasureOptions& options, PlanKind plan) {
  CheckOptions declared;
  declared.modules = {.list = {module}, .layers = {{{0}}}};
  declared.plan.kind = plan;
  if (options.exchanges == Exchanges::Measured) {
    declared.groups = {{.name = "experts",
                        .members = {0},
                        .actions = {Kind::DispatchForward, Kind::CombineForward,
                                    Kind::DispatchBackward, Kind::CombineBackward}}};
  }
  return declared;
}

double median(std::vector<double> values) {
  CAPO_ASSERT(!values.empty(), "every kind of task that is measured was run");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Durations by kind of task, without those of the first microbatch, which run cold.
struct Samples {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> weight;
  std::vector<double> call;  ///< of as many weight gradients as size_of_call() says
  std::vector<double> dispatch;
  std::vector<double> combine;
};

std::vector<double>& samples_for(Samples& samples, const OpPart& part, std::uint32_t call) {
  switch (part.kind) {
    case OpPart::Kind::Permute:
    case OpPart::Kind::Return: {
      // In a backward the gradient of the combine comes first.
      const bool first = part.kind == OpPart::Kind::Permute;
      return first == (part.way == Way::Forward) ? samples.dispatch : samples.combine;
    }
    default:
      if (part.work.kind == Kind::Forward) return samples.forward;
      if (part.work.kind != Kind::BackwardWeight) return samples.backward;
      return call > 1 && part.further.size() + 1 == call ? samples.call : samples.weight;
  }
}

Samples samples_of(const RunReport& report, std::uint32_t call) {
  Samples samples;
  const std::vector<Measured>& timeline = report.timeline;
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    const OpPart& part = report.program.parts[report.program.ops[timeline[i].op].first_part];
    const double next = i + 1 < timeline.size() ? timeline[i + 1].begin : timeline[i].end;
    const bool is_task = part.kind == OpPart::Kind::Work || part.kind == OpPart::Kind::Permute ||
                         part.kind == OpPart::Kind::Return;
    if (is_task) samples_for(samples, part, call).push_back(next - timeline[i].begin);
  }
  for (std::vector<double>* each : {&samples.forward, &samples.backward, &samples.weight,
                                    &samples.call, &samples.dispatch, &samples.combine}) {
    if (!each->empty()) each->erase(each->begin());
  }
  return samples;
}

Result<Samples, RunFailure> samples_under(PlanKind kind, Engine& engine, const Module& module,
                                          const MeasureOptions& options, std::string steps) {
  auto input = load(Source{.name = "<measure>", .text = std::move(steps)}, {});
  CAPO_ASSERT(input.has_value(), "the step that is measured can be read");
  const CheckOptions declared = options_for(module, options, kind);
  auto plan = verify(*input, complete_model(declared, input->schedule).options);
  if (const auto* why = std::get_if<NotVerified>(&plan)) {
    return RunFailure{
        .kind = RunFailure::Kind::Refused,
        .message = fmt::format("module `{}` cannot be measured: {}", module.name, why->reason)};
  }
  const auto report = run(engine, std::get<VerifiedPlan>(plan),
                          {.replays = 2,
                           .sizes = SizeKind::Balanced,
                           .poison = Poison::Off,
                           .float64 = Float64::LeftOut});
  if (!report) return report.error();
  return samples_of(*report, size_of_call(options));
}

// Returns how long a backward takes under another plan or as a whole; nullopt if that is not
// verified.
Result<std::optional<double>, RunFailure> backward_under(PlanKind kind, Backwards backwards,
                                                         Engine& engine, const Module& module,
                                                         const MeasureOptions& options) {
  const auto samples = samples_under(kind, engine, module, options, steps_of(options, backwards));
  if (!samples && samples.error().kind == RunFailure::Kind::Refused) return std::optional<double>();
  if (!samples) return samples.error();
  return std::optional(median(samples->backward));
}

// Returns the share of a weight gradient that each further one of a call takes; nullopt if there
// are too few microbatches for two calls of several.
Result<std::optional<double>, RunFailure> further_in_call(double weight, Engine& engine,
                                                          const Module& module,
                                                          MeasureOptions options) {
  options.exchanges = Exchanges::None;
  const std::uint32_t call = size_of_call(options);
  if (call < 2 || weight <= 0) return std::optional<double>();
  const auto samples =
      samples_under(PlanKind::Safe, engine, module, options, fused_steps_of(options));
  if (!samples && samples.error().kind == RunFailure::Kind::Refused) return std::optional<double>();
  if (!samples) return samples.error();
  const double further = (median(samples->call) / weight - 1) / (call - 1);
  return std::optional(std::max(0.0, further));
}

}  // namespace

Result<ModuleCost, RunFailure> measure_module(Engine& engine, const Module& module,
                                              const MeasureOptions& options) {
  const auto samples = samples_under(PlanKind::Safe, engine, module, options, steps_of(options));
  if (!samples) return samples.error();
  ModuleCost cost{.forward = median(samples->forward),
                  .backward = median(samples->backward),
                  .weight = median(samples->weight)};
  if (options.exchanges == Exchanges::Measured) {
    cost.dispatch = median(samples->dispatch);
    cost.combine = median(samples->combine);
  }
  const auto under_te = backward_under(PlanKind::Te, Backwards::Split, engine, module, options);
  if (!under_te) return under_te.error();
  if (*under_te) cost.autograd = std::max(0.0, **under_te - *cost.backward);
  const auto further = further_in_call(*cost.weight, engine, module, options);
  if (!further) return further.error();
  cost.fuse = *further;
  // A module that delays its weight gradients has no whole backwards.
  if (module.flags.delay_wgrad) return cost;
  const auto whole = backward_under(PlanKind::Safe, Backwards::Whole, engine, module, options);
  if (!whole) return whole.error();
  cost.whole = *whole;
  return cost;
}

ModuleCost median_of(const std::vector<ModuleCost>& costs) {
  ModuleCost result;
  for (const auto kind :
       {&ModuleCost::forward, &ModuleCost::backward, &ModuleCost::weight, &ModuleCost::dispatch,
        &ModuleCost::combine, &ModuleCost::autograd, &ModuleCost::whole, &ModuleCost::fuse}) {
    std::vector<double> times;
    for (const ModuleCost& cost : costs) {
      if (cost.*kind) times.push_back(*(cost.*kind));
    }
    if (!times.empty()) result.*kind = median(std::move(times));
  }
  return result;
}

TransferCost cost_of_transfer(double latency, double whole, std::int64_t bytes) {
  TransferCost cost{.latency = latency, .bandwidth = std::nullopt, .bytes = bytes};
  if (whole > latency) cost.bandwidth = static_cast<double>(bytes) / (whole - latency);
  return cost;
}

Result<TransferCost, Error> measure_transfer(Engine& engine, std::int64_t bytes) {
  constexpr int kTimes = 9;
  constexpr std::int64_t kNextToNothing = 16;
  std::byte* from = engine.allocate(bytes, "a message to measure");
  std::byte* to = engine.allocate(bytes, "a message to measure");
  engine.have_streams(1);
  const auto takes = [&](std::int64_t size) {
    std::vector<double> times;
    for (int time = 0; time < kTimes && !engine.error(); ++time) {
      const EventId begin = engine.record(0);
      engine.launch(0, Copy{.bytes = std::min(size, bytes), .from = from, .to = to});
      const EventId end = engine.record(0);
      engine.synchronise();
      times.push_back(engine.between(begin, end));
      engine.forget_events();
    }
    return times.empty() ? 0 : median(times);
  };
  if (!engine.error()) engine.launch(0, Fill{.bytes = bytes, .value = 0, .to = from});
  const double latency = takes(kNextToNothing);
  const double whole = takes(bytes);
  engine.release(from);
  engine.release(to);
  if (engine.error()) return *engine.error();
  return cost_of_transfer(latency, whole, bytes);
}

}  // namespace capo::run
