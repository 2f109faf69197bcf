#include "run/measure.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/base/median.h"
#include "core/input/load.h"
#include "run/setup/complete_model.h"
#include "run/setup/step_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
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

constexpr std::uint32_t kFew = 4;  // microbatches, where two ranks need memory

enum class Backwards : std::uint8_t { Split, SplitAndWhole };

// Every second microbatch has a whole backward, if these are asked for.
std::string steps_of(const MeasureOptions& options, Backwards backwards) {
  std::string steps = head_of(options);
  const char* up_to_backward =
      options.exchanges == Exchanges::Measured
          ? " F1.{0} dispatch-F1.{0} combine-F1.{0} combine-B1.{0} dispatch-B1.{0}"
          : " F1.{0}";
  for (std::uint32_t m = 0; m < options.microbatches; ++m) {
    const bool whole = backwards == Backwards::SplitAndWhole && m % 2 == 1;
    // Lists of te have no I: there B is an input half if W follows.
    const char half = backwards == Backwards::SplitAndWhole ? 'I' : 'B';
    steps += fmt::format(fmt::runtime(up_to_backward), m);
    steps += whole ? fmt::format(" B1.{}", m) : fmt::format(" {1}1.{0} W1.{0}", m, half);
  }
  return steps + "\n";
}

// Two ranks with the same actions.
std::string steps_of_two(const MeasureOptions& options, const char* placement,
                         const std::string& actions) {
  return fmt::format("capo 1\nranks 2\nmicrobatches {}\nplacement {}\nrank 0:{}\nrank 1:{}\n",
                     options.microbatches, placement, actions, actions);
}

// They have nothing to do with each other.
std::string steps_side_by_side(const MeasureOptions& options) {
  std::string actions;
  for (std::uint32_t m = 0; m < options.microbatches; ++m) {
    actions += fmt::format(" F1.{0} B1.{0} W1.{0}", m);
  }
  return steps_of_two(options, "independent", actions);
}

// Each waits for the other until all weight gradients come.
std::string steps_in_turn(const MeasureOptions& options) {
  std::string actions;
  for (std::uint32_t m = 0; m < options.microbatches; ++m) {
    actions += fmt::format(" F1.{0} B1.{0}", m);
  }
  for (std::uint32_t m = 0; m < options.microbatches; ++m) actions += fmt::format(" W1.{}", m);
  return steps_of_two(options, "chain", actions);
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

// Durations by kind of task, without the first of each, which runs cold, if there are others.
struct Samples {
  std::vector<double> forward;
  std::vector<double> backward;  ///< an input half
  std::vector<double> weight;
  std::vector<double> whole;
  std::vector<double> call;  ///< of as many weight gradients as size_of_call() says
  std::vector<double> dispatch;
  std::vector<double> combine;
  double makespan = 0;
  double round = 0;  ///< of the warm-up, as RunTimes has it
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
      if (is_backward(part.work.kind)) return part.work.delayed ? samples.backward : samples.whole;
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
  for (std::vector<double>* each :
       {&samples.forward, &samples.backward, &samples.weight, &samples.whole, &samples.call,
        &samples.dispatch, &samples.combine}) {
    if (each->size() > 1) each->erase(each->begin());
  }
  return samples;
}

Result<VerifiedPlan, RunFailure> plan_under(PlanKind kind, const Module& module,
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
  return std::get<VerifiedPlan>(std::move(plan));
}

Result<RunReport, RunFailure> report_under(PlanKind kind, Engine& engine, const Module& module,
                                           const MeasureOptions& options, std::string steps,
                                           std::function<void(const Inspection&)> look = {}) {
  const auto plan = plan_under(kind, module, options, std::move(steps));
  if (!plan) return plan.error();
  return run(engine, *plan,
             {.replays = options.warm_up > 0 ? 1U : 2U,
              .warm_up = options.warm_up,
              .rests = options.rests,
              .sizes = SizeKind::Balanced,
              .poison = Poison::Off,
              .float64 = Float64::LeftOut,
              .inspect = std::move(look)});
}

Result<Samples, RunFailure> samples_under(PlanKind kind, Engine& engine, const Module& module,
                                          const MeasureOptions& options, std::string steps) {
  const auto report = report_under(kind, engine, module, options, std::move(steps));
  if (!report) return report.error();
  Samples samples = samples_of(*report, size_of_call(options));
  samples.makespan = report->times.makespan;
  samples.round = report->times.round;
  return samples;
}

// A time of another run, in proportion to a forward, which takes as long in each: the clock of a
// device is another one from run to run.
double in_proportion(double time, const Samples& run, double forward) {
  const double there = median(run.forward);
  return there > 0 ? time * forward / there : time;
}

using Maybe = Result<std::optional<Samples>, RunFailure>;

// nullopt if the steps are not verified under the plan.
Maybe samples_if_verified(PlanKind kind, Engine& engine, const Module& module,
                          const MeasureOptions& options, std::string steps) {
  auto samples = samples_under(kind, engine, module, options, std::move(steps));
  if (samples) return std::optional(std::move(*samples));
  if (samples.error().kind == RunFailure::Kind::Refused) return std::optional<Samples>();
  return samples.error();
}

// Weight gradients in calls of several; nullopt if there are too few microbatches for two of them.
Maybe samples_of_calls(Engine& engine, const Module& module, MeasureOptions options) {
  if (size_of_call(options) < 2) return std::optional<Samples>();
  options.exchanges = Exchanges::None;
  return samples_if_verified(PlanKind::Safe, engine, module, options, fused_steps_of(options));
}

// Tasks follow one another in the step, and the makespan is all of them.
Pace pace_of(const Samples& run) {
  return {.duty = run.round > 0 ? std::min(run.makespan / run.round, 1.0) : 1,
          .takes = median(run.forward) + median(run.backward) + median(run.weight)};
}

// The pace of the same steps with rests between replays; nullopt where nothing is warmed up.
Result<std::optional<Pace>, RunFailure> pace_with_rests(Engine& engine, const Module& module,
                                                        MeasureOptions options, std::string steps) {
  constexpr double kSeconds = 0.6;
  if (options.warm_up <= 0) return std::optional<Pace>();
  options.warm_up = std::min(options.warm_up, kSeconds);
  options.rests = true;
  const auto samples = samples_under(PlanKind::Safe, engine, module, options, std::move(steps));
  if (!samples) return samples.error();
  return std::optional(pace_of(*samples));
}

// An engine that launches each call twice that quantizes. Such a call reads what others made and
// writes nothing that it reads, so the second one changes no number.
class QuantizingTwice final : public Engine {
 public:
  explicit QuantizingTwice(Engine& engine) : engine_(engine) {}

  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] std::string device() const override { return engine_.device(); }
  [[nodiscard]] std::byte* allocate(std::int64_t bytes, std::string_view what) override {
    return engine_.allocate(bytes, what);
  }
  void release(std::byte* memory) override { engine_.release(memory); }
  void write(void* to, const void* from, std::int64_t bytes) override {
    engine_.write(to, from, bytes);
  }
  void read(void* to, const void* from, std::int64_t bytes) override {
    engine_.read(to, from, bytes);
  }
  void have_streams(std::uint32_t count) override { engine_.have_streams(count); }
  void leave_room_for_exchanges() override { engine_.leave_room_for_exchanges(); }
  void launch(StreamId stream, const Call& call) override {
    engine_.launch(stream, call);
    if (!std::holds_alternative<QuantizeRows>(call) &&
        !std::holds_alternative<QuantizeWeights>(call)) {
      return;
    }
    engine_.launch(stream, call);
    met = true;
  }
  [[nodiscard]] EventId record(StreamId stream) override { return engine_.record(stream); }
  void wait(StreamId stream, EventId event) override { engine_.wait(stream, event); }
  void begin_capture(StreamId origin) override { engine_.begin_capture(origin); }
  [[nodiscard]] GraphId end_capture() override { return engine_.end_capture(); }
  void replay(GraphId graph, StreamId stream) override { engine_.replay(graph, stream); }
  [[nodiscard]] std::vector<GraphNode> inspect(GraphId graph) override {
    return engine_.inspect(graph);
  }
  [[nodiscard]] GraphTimes graph_times() const override { return engine_.graph_times(); }
  void synchronise() override { engine_.synchronise(); }
  [[nodiscard]] double between(EventId from, EventId to) override {
    return engine_.between(from, to);
  }
  void forget_events() override { engine_.forget_events(); }
  void label(std::string_view what) override { engine_.label(what); }
  [[nodiscard]] const std::optional<Error>& error() const override { return engine_.error(); }

  bool met = false;  ///< a call that quantizes

 private:
  Engine& engine_;
};

// States what quantization takes of `cost`: how much longer the same tasks take that do it twice.
// Weight gradients, which quantize nothing, tell how fast the device's clock is in each run.
std::optional<RunFailure> measure_quantization(Engine& engine, const Module& module,
                                               const MeasureOptions& options, Backwards backwards,
                                               ModuleCost& cost) {
  if (!quantizes(recipe_of(module))) return std::nullopt;
  QuantizingTwice twice(engine);
  const auto samples =
      samples_under(PlanKind::Safe, twice, module, options, steps_of(options, backwards));
  if (!samples) return samples.error();
  if (!twice.met) return std::nullopt;
  const double there = median(samples->weight);
  const auto longer = [&](const std::vector<double>& times, double once) {
    const double time = there > 0 ? median(times) * *cost.weight / there : median(times);
    return std::clamp(time - once, 0.0, once);
  };
  cost.quantize_forward = longer(samples->forward, *cost.forward);
  cost.quantize_backward =
      std::min(longer(samples->backward, *cost.backward), cost.whole.value_or(*cost.backward));
  return std::nullopt;
}

}  // namespace

void state_rest(const Pace& working, const Pace& resting, ModuleCost& cost) {
  constexpr double kNoise = 0.005;
  constexpr double kLeastDuty = 0.9;  // who launches makes tasks faster behind rests, too
  constexpr double kMostRest = 0.5;   // more is no clock's doing
  cost.rest = 0;
  const double faster = working.takes > 0 ? 1 - resting.takes / working.takes : 0;
  if (faster < kNoise || working.duty <= resting.duty || working.duty < kLeastDuty) return;
  // The device was at its limit, since it was faster with rests.
  const double at_full = 1 / std::cbrt(working.duty);
  const double rest = 1 - (1 - faster) / at_full;
  if (rest > kMostRest) return;
  cost.rest = rest;
  for (const auto time :
       {&ModuleCost::forward, &ModuleCost::backward, &ModuleCost::weight, &ModuleCost::whole,
        &ModuleCost::autograd, &ModuleCost::quantize_forward, &ModuleCost::quantize_backward}) {
    if (cost.*time) *(cost.*time) *= at_full;
  }
}

Result<ModuleCost, RunFailure> measure_module(Engine& engine, const Module& module,
                                              const MeasureOptions& options) {
  // A module that delays its weight gradients has no whole backwards.
  const Backwards all = module.flags.delay_wgrad ? Backwards::Split : Backwards::SplitAndWhole;
  MeasureOptions first = options;
  first.warm_up += options.heating;
  const auto samples = samples_under(PlanKind::Safe, engine, module, first, steps_of(options, all));
  if (!samples) return samples.error();
  const auto resting = pace_with_rests(engine, module, options, steps_of(options, all));
  if (!resting) return resting.error();
  const double forward = median(samples->forward);
  const double backward = median(samples->backward);
  const double weight = median(samples->weight);
  ModuleCost cost{.forward = forward, .backward = backward, .weight = weight};
  if (all == Backwards::SplitAndWhole) cost.whole = median(samples->whole);
  if (options.exchanges == Exchanges::Measured) {
    cost.dispatch = median(samples->dispatch);
    cost.combine = median(samples->combine);
  }
  const auto under_te = samples_if_verified(PlanKind::Te, engine, module, options,
                                            steps_of(options, Backwards::Split));
  if (!under_te) return under_te.error();
  if (const auto& te = *under_te) {
    cost.autograd = std::max(0.0, in_proportion(median(te->backward), *te, forward) - backward);
  }
  if (auto failed = measure_quantization(engine, module, options, all, cost)) return *failed;
  const auto calls = samples_of_calls(engine, module, options);
  if (!calls) return calls.error();
  if (const auto& run = *calls; run && weight > 0) {
    const double further = in_proportion(median(run->call), *run, forward) / weight - 1;
    cost.fuse = std::max(0.0, further / (size_of_call(options) - 1));
  }
  if (*resting) state_rest(pace_of(*samples), **resting, cost);
  return cost;
}

Result<double, RunFailure> measure_beside(Engine& engine, const Module& module,
                                          MeasureOptions options) {
  options.exchanges = Exchanges::None;
  options.microbatches = std::min(options.microbatches, kFew);
  const auto one =
      samples_under(PlanKind::Safe, engine, module, options, steps_of(options, Backwards::Split));
  if (!one) return one.error();
  const auto two =
      samples_under(PlanKind::Safe, engine, module, options, steps_side_by_side(options));
  if (!two) return two.error();
  return one->makespan > 0 ? two->makespan / (2 * one->makespan) : 1;
}

namespace {

// The tasks of one rank, as they were run.
std::vector<std::pair<OpPart, Measured>> tasks_of(const RunReport& report, std::int32_t rank) {
  std::vector<std::pair<OpPart, Measured>> tasks;
  for (const Measured& measured : report.timeline) {
    const OpPart& part = report.program.parts[report.program.ops[measured.op].first_part];
    if (part.kind == OpPart::Kind::Work && part.rank == rank) tasks.emplace_back(part, measured);
  }
  return tasks;
}

}  // namespace

Result<std::optional<double>, RunFailure> measure_hop(Engine& engine, const Module& module,
                                                      MeasureOptions options) {
  options.exchanges = Exchanges::None;
  options.microbatches = std::min(options.microbatches, kFew);
  const auto report = report_under(PlanKind::Safe, engine, module, options, steps_in_turn(options));
  if (!report && report.error().kind == RunFailure::Kind::Refused) return std::optional<double>();
  if (!report) return report.error();
  const auto first = tasks_of(*report, 0);
  const auto second = tasks_of(*report, 1);
  std::vector<double> hops;
  std::vector<double> gaps;  // between tasks of one rank
  // Both ranks have F and B in turn. The first microbatch runs cold.
  for (std::uint32_t at = 2; at + 1 < 2 * options.microbatches; at += 2) {
    hops.push_back(second[at].second.begin - first[at].second.end);
    gaps.push_back(second[at + 1].second.begin - second[at].second.end);
    hops.push_back(first[at + 1].second.begin - second[at + 1].second.end);
  }
  return std::optional(std::max(0.0, median(std::move(hops)) - median(std::move(gaps))));
}

std::optional<RunFailure> look_at_graphs(const Measurable& of,
                                         const std::function<void(const Inspection&)>& look) {
  MeasureOptions options = of.options;
  options.exchanges = Exchanges::None;
  options.microbatches = std::min(options.microbatches, kFew);
  options.warm_up = 0;
  bool looked = false;  // a run is looked at before its replays, and again behind them
  const auto report = report_under(PlanKind::Safe, of.engine, of.module, options,
                                   steps_of(options, Backwards::Split), [&](const Inspection& at) {
                                     if (!std::exchange(looked, true)) look(at);
                                   });
  if (!report) return report.error();
  return std::nullopt;
}

Result<std::vector<SummedGradient>, RunFailure> gradients_to_reduce(const Module& module,
                                                                    const MeasureOptions& options) {
  const auto plan =
      plan_under(PlanKind::Safe, module, options, steps_of(options, Backwards::Split));
  if (!plan) return plan.error();
  const auto layers = StepLayers::of(plan->step());
  if (!layers) return RunFailure{.kind = RunFailure::Kind::Refused, .message = layers.error()};
  std::vector<SummedGradient> parts;
  for (std::uint32_t at = 0; at < layers->parameters().size(); ++at) {
    const ParameterForm& form = layers->parameters()[at];
    const ParameterCells cells =
        cells_of(layers->layer_of(at), form.role, gradients::Contract::Sound);
    if (cells.delayed.destination == gradients::Destination::Nowhere) continue;
    const DataType type = form.fused ? DataType::Fp32 : form.type;
    parts.insert(parts.end(), as_index(form.groups), {.type = type, .elements = form.elements});
  }
  return parts;
}

double computed_in(const std::map<std::string, ModuleCost>& costs) {
  double all = 0;
  for (const auto& [name, cost] : costs) {
    all += cost.forward.value_or(0) + cost.backward.value_or(0) + cost.weight.value_or(0);
  }
  return all;
}

Result<double, Error> pace_of_process(std::size_t number, double first, double other) {
  const double pace = first > 0 ? other / first : 1;
  if (pace >= kLeastPace && pace <= kMostPace) return pace;
  return Error{.kind = ErrorKind::Environment,
               .message = fmt::format(
                   "the device of process {} takes {:.3g} times as long to compute as the "
                   "first one, and the paces of a model file are from {} to {}",
                   number, pace, kLeastPace, kMostPace),
               .help = "measure on devices of one kind, which nothing else uses"};
}

ModuleCost median_of(const std::vector<ModuleCost>& costs) {
  ModuleCost result;
  for (const auto kind :
       {&ModuleCost::forward, &ModuleCost::backward, &ModuleCost::weight, &ModuleCost::dispatch,
        &ModuleCost::combine, &ModuleCost::reduce, &ModuleCost::autograd, &ModuleCost::whole,
        &ModuleCost::fuse, &ModuleCost::beside, &ModuleCost::rest, &ModuleCost::quantize_forward,
        &ModuleCost::quantize_backward}) {
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

TransferCost with_hop(TransferCost copy, double hop, std::int64_t bytes) {
  const double moving = copy.bandwidth ? static_cast<double>(bytes) / *copy.bandwidth : 0;
  copy.latency = std::max(*copy.latency, hop - moving);
  return copy;
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
