#include "run/run.h"

#include "run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace capo::run {

namespace {

RunFailure refused(std::string why) {
  return {.kind = RunFailure::Kind::Refused, .message = std::move(why)};
}

// The edges that make races come out wrong: writer before reader, as far as they agree.
std::vector<Forced> forced_races(const PlannedStep& step) {
  std::vector<Forced> all;
  for (const JudgedHazard& judged : step.view().hazards()) {
    if (judged.hazard.race) all.emplace_back(judged.hazard.writer, judged.hazard.reader);
  }
  if (program_of(step.view().table(), step.replayed(), all)) return all;
  std::vector<Forced> forced;  // one by one, without those that close a circle
  for (const Forced& edge : all) {
    forced.push_back(edge);
    if (!program_of(step.view().table(), step.replayed(), forced)) forced.pop_back();
  }
  return forced;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double makespan_of(const std::vector<Measured>& timeline) {
  if (timeline.empty()) return 0;
  const auto first =
      std::min_element(timeline.begin(), timeline.end(),
                       [](const Measured& a, const Measured& b) { return a.begin < b.begin; });
  const auto last =
      std::max_element(timeline.begin(), timeline.end(),
                       [](const Measured& a, const Measured& b) { return a.end < b.end; });
  return last->end - first->begin;
}

double busy_of(const std::vector<Measured>& timeline) {
  double sum = 0;
  for (const Measured& part : timeline) sum += part.end - part.begin;
  return sum;
}

class Runner {
 public:
  Runner(Engine& engine, const PlannedStep& step, const RunOptions& options, bool unchecked,
         StepLayers layers)
      : engine_(engine),
        step_(step),
        options_(options),
        unchecked_(unchecked),
        layers_(std::move(layers)),
        transport_(engine) {
    report.unchecked = unchecked;
    report.engine = engine.name();
    report.device = engine.device();
    report.replays = options.replays;
    report.float64_compared = options.float64 != Float64::LeftOut;
  }

  [[nodiscard]] std::optional<RunFailure> run() {
    if (auto why = refusal()) return refused(std::move(*why));
    report.program = *program_of(table(), step_.replayed(),
                                 unchecked_ ? forced_races(step_) : std::vector<Forced>{});
    engine_.label("setting up");
    engine_.have_streams(std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(report.program.rank_of_stream.size())));
    if (!report.program.exchanges.empty()) engine_.leave_room_for_exchanges();
    allocate();
    if (auto failed = failure()) return failed;
    judge_.emplace(Compared{.engine = engine_,
                            .step = step_,
                            .layers = layers_,
                            .parameters = values_,
                            .eager = *eager_,
                            .replayed = *replayed_,
                            .eager_deposits = *eager_deposits_,
                            .replayed_deposits = *deposits_,
                            .expected = *expected_,
                            .late = late_ ? &*late_ : nullptr},
                   report);
    options_.replays == 0 ? run_eagerly_only() : run_replays();
    return failure();
  }

  RunReport report;

 private:
  [[nodiscard]] const BufferTable& table() const { return step_.view().table(); }

  [[nodiscard]] std::optional<std::string> refusal() const {
    if (options_.graphs == Granularity::PerStep && !step_.replays_as_captured()) {
      return "a step that is one graph is replayed as it was captured: give --graphs per-action "
             "for a replay order of its own";
    }
    if (options_.hooks.substitute_saved && options_.replays > 0) {
      return "graphs read what was saved where it was at their capture: saved tensors can be "
             "substituted in eager execution only";
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<RunFailure> failure() const {
    if (lost_) return RunFailure{.kind = RunFailure::Kind::Lost, .message = *lost_};
    if (engine_.error()) {
      return RunFailure{.kind = RunFailure::Kind::Broken,
                        .message = engine_.error()->message,
                        .help = engine_.error()->help};
    }
    return std::nullopt;
  }

  void allocate() {
    given_.emplace(engine_, step_, layers_, report.program);
    stage_.emplace(Stage{.engine = engine_,
                         .step = step_,
                         .layers = layers_,
                         .given = *given_,
                         .transport = transport_,
                         .parameters = {},
                         .registry = {},
                         .hooks = options_.hooks,
                         .samples = te_samples(step_)});
    for (std::uint32_t p = 0; p < layers_.parameters().size() && !engine_.error(); ++p) {
      const ParameterForm& form = layers_.parameters()[p];
      stage_->parameters.push_back(make_tensor(engine_, form, form.type));
      stage_->registry.add(form.name);
      values_.push_back(draw_parameter(layers_, p, options_.seed));
      if (!engine_.error()) write_values(engine_, stage_->parameters.back(), values_.back());
    }
    const Attribution attribution = unchecked_ ? Attribution::ByMicrobatch : Attribution::Total;
    eager_.emplace(engine_, table(), layers_, attribution);
    replayed_.emplace(engine_, table(), layers_, attribution);
    expected_.emplace(engine_, layers_, table().microbatches());
    if (unchecked_) late_.emplace(engine_, table());
    const gradients::Whose whose = options_.whose.value_or(
        step_.view().plan().kind == PlanKind::Te ? gradients::Whose::Te : gradients::Whose::Sound);
    eager_deposits_.emplace(table(), step_.replayed(), layers_, gradients::Whose::Sound,
                            Deposits::Execution::Eager);
    deposits_.emplace(table(), step_.replayed(), layers_, whose, Deposits::Execution::Replayed);
  }

  void take(std::uint32_t replay) {
    engine_.label(replay == 0 ? "inputs of the capture"
                              : fmt::format("inputs of replay {}", replay));
    numbers_ = draw_given(step_, layers_, report.program, options_.sizes, options_.seed, replay);
    given_->write(numbers_);
  }

  double timed(const std::function<void()>& work) const {
    const auto begin = std::chrono::steady_clock::now();
    work();
    engine_.synchronise();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    return took.count();
  }

  void step_eagerly() {
    engine_.label("eager execution");
    eager_->reset(*eager_deposits_);
    EagerMemory memory(engine_, table(), options_.poison);
    Stepper stepper(*stage_, report.program, memory, *eager_, *eager_deposits_, *expected_,
                    nullptr);
    eager_times_.push_back(timed([&] { stepper.run_eagerly(); }));
    note_lost(stepper);
    std::int64_t peak = 0;
    for (const std::int64_t of_rank : memory.peak()) peak += of_rank;
    report.bytes.eager_peak = std::max(report.bytes.eager_peak, peak);
  }

  void judge_eager() {
    if (options_.float64 == Float64::LeftOut) return;
    engine_.label("comparison of eager execution with float64");
    judge_->judge_eager(numbers_);
  }

  void note_lost(const Stepper& stepper) {
    if (!lost_) lost_ = stepper.lost();
  }

  void run_eagerly_only() {
    take(1);
    step_eagerly();
    report.times.eager = median(eager_times_);
    if (!failure()) judge_eager();
  }

  void run_replays() {
    PlannedMemory memory(engine_, table(), step_.view().plan(), options_.poison);
    for (const RankMemory& rank : step_.view().plan().ranks) report.bytes.planned += rank.peak();
    report.bytes.allocated = memory.allocated();
    Stepper stepper(*stage_, report.program, memory, *replayed_, *deposits_, *expected_,
                    late_ ? &*late_ : nullptr);
    take(0);  // what a split path bakes in
    const bool by_action = options_.graphs == Granularity::PerAction;
    const GraphTimes earlier = engine_.graph_times();  // of other runs
    report.times.capture = timed([&] {
      by_action ? stepper.capture_actions(*program_of(table(), step_.captured()))
                : stepper.capture_step();
    });
    note_lost(stepper);
    if (failure()) return;
    report.times.instantiate = engine_.graph_times().instantiate - earlier.instantiate;
    report.times.upload = engine_.graph_times().upload - earlier.upload;
    report.graphs = stepper.graphs().size();
    for (const Stepper::Captured& captured : stepper.graphs()) {
      report.nodes += engine_.inspect(captured.graph).size();
    }
    inspect(memory, stepper);
    std::vector<double> times;
    std::vector<double> makespans;
    std::vector<double> busy;
    std::vector<double> launches;
    for (std::uint32_t replay = 1; replay <= options_.replays && !failure(); ++replay) {
      take(replay);
      step_eagerly();
      if (failure()) break;
      if (replay == 1 || options_.float64 == Float64::EveryReplay) judge_eager();
      engine_.label(fmt::format("replay {}", replay));
      if (late_) late_->reset();
      replayed_->reset(*deposits_);  // and waits until all of it is done
      const double launched = engine_.graph_times().launch;
      times.push_back(timed([&] { by_action ? stepper.replay_actions() : stepper.replay_step(); }));
      makespans.push_back(makespan_of(stepper.timeline()));
      busy.push_back(busy_of(stepper.timeline()));
      launches.push_back(engine_.graph_times().launch - launched);
      note_lost(stepper);
      if (failure()) break;
      engine_.label(fmt::format("comparison of replay {}", replay));
      judge_->compare(replay, numbers_, memory);
    }
    inspect(memory, stepper);
    report.times.replay = median(times);
    report.times.makespan = median(makespans);
    report.times.busy = median(busy);
    report.times.launch = median(launches);
    report.times.eager = median(eager_times_);
    report.timeline = stepper.timeline();
  }

  void inspect(const PlannedMemory& memory, const Stepper& stepper) const {
    if (!options_.inspect || failure()) return;
    options_.inspect({.engine = engine_,
                      .step = step_,
                      .layers = layers_,
                      .memory = memory,
                      .given = *given_,
                      .outcome = *replayed_,
                      .parameters = stage_->parameters,
                      .graphs = stepper.graphs()});
  }

  Engine& engine_;
  const PlannedStep& step_;
  const RunOptions& options_;
  bool unchecked_;
  StepLayers layers_;
  InProcess transport_;
  std::optional<Given> given_;
  std::optional<Stage> stage_;
  std::optional<Outcome> eager_;
  std::optional<Outcome> replayed_;
  std::optional<Expected> expected_;
  std::optional<Judge> judge_;
  std::optional<LateReads> late_;  // of an unchecked plan
  std::optional<Deposits> eager_deposits_;
  std::optional<Deposits> deposits_;
  std::vector<std::vector<float>> values_;  // by parameter
  GivenValues numbers_;                     // of the replay at hand
  std::vector<double> eager_times_;
  std::optional<std::string> lost_;
};

Result<RunReport, RunFailure> run_step(Engine& engine, const PlannedStep& step,
                                       const RunOptions& options, bool unchecked) {
  auto layers = StepLayers::of(step);
  if (!layers) return refused(layers.error());
  Runner runner(engine, step, options, unchecked, *std::move(layers));
  if (auto failed = runner.run()) return *failed;
  return std::move(runner.report);
}

}  // namespace

Result<RunReport, RunFailure> run(Engine& engine, const VerifiedPlan& plan,
                                  const RunOptions& options) {
  return run_step(engine, plan.step(), options, false);
}

Result<RunReport, RunFailure> run_unchecked(Engine& engine, const UncheckedPlan& plan,
                                            const RunOptions& options) {
  return run_step(engine, plan.step(), options, true);
}

}  // namespace capo::run
