#include "run/run.h"

#include "run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace capo::run {

namespace {

enum class Admission : std::uint8_t { Verified, Unchecked };

RunFailure refused(std::string why) {
  return {.kind = RunFailure::Kind::Refused, .message = std::move(why)};
}

// Multiply-adds of the float64 reference of one step: products forward, and backward two ways.
double float64_work(const StepLayers& layers, std::int32_t microbatches,
                    const RunOptions& options) {
  if (options.float64 == Float64::Sampled) {
    return sampled_work(layers, microbatches, options.float64_samples);
  }
  double work = 0;
  for (std::uint32_t p = 0; p < layers.parameters().size(); ++p) {
    const ParameterForm& form = layers.parameters()[p];
    if (form.role != Role::First && form.role != Role::Second) continue;
    const std::int64_t tokens = layers.layer_of(p).shape.tokens;
    work += 3.0 * static_cast<double>(tokens) * static_cast<double>(form.elements);
  }
  return work * microbatches;
}

std::uint32_t float64_steps(const RunOptions& options) {
  if (options.float64 == Float64::LeftOut) return 0;
  return options.float64 == Float64::EveryReplay ? std::max(options.replays, 1U) : 1;
}

std::optional<std::string> refusal_of_float64(const PlannedStep& step, const StepLayers& layers,
                                              const RunOptions& options) {
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

std::optional<std::string> refusal(const PlannedStep& step, const StepLayers& layers,
                                   const RunOptions& options) {
  if (auto why = refusal_of_float64(step, layers, options)) return why;
  if (options.graphs == Granularity::PerStep && !step.replays_as_captured()) {
    return "a step that is one graph is replayed as it was captured: give --graphs per-action "
           "for a replay order of its own";
  }
  if (options.hooks.substitute_saved && options.replays > 0) {
    return "graphs read what was saved where it was at their capture: saved tensors can be "
           "substituted in eager execution only";
  }
  return std::nullopt;
}

// The program of a run; if the plan is unchecked, with the edges that make races come out wrong.
Program program_of_run(const PlannedStep& step, Admission admission) {
  std::vector<Forced> races;
  if (admission == Admission::Unchecked) {
    for (const JudgedHazard& judged : step.view().hazards()) {
      if (judged.hazard.race) races.emplace_back(judged.hazard.writer, judged.hazard.reader);
    }
  }
  return program_forcing(step.view().table(), step.replayed(), races);
}

StepInputs inputs_of(Engine& engine, const PlannedStep& step, const StepLayers& layers,
                     const Program& program) {
  engine.label("setting up");
  engine.have_streams(
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(program.rank_of_stream.size())));
  if (!program.exchanges.empty()) engine.leave_room_for_exchanges();
  return {engine, step, layers, program};
}

std::vector<DrawnTensor> drawn_parameters(const StepLayers& layers, std::uint64_t seed) {
  std::vector<DrawnTensor> drawn;
  for (std::uint32_t p = 0; p < layers.parameters().size(); ++p) {
    drawn.push_back(draw_parameter(layers, p, seed));
  }
  return drawn;
}

std::vector<GroupedTensor> parameters_on(Engine& engine, const StepLayers& layers,
                                         const std::vector<DrawnTensor>& drawn) {
  std::vector<GroupedTensor> tensors;
  for (std::size_t p = 0; p < drawn.size() && !engine.error(); ++p) {
    const ParameterForm& form = layers.parameters()[p];
    tensors.push_back(make_tensor(engine, form, form.type));
    if (!engine.error()) draw_into(engine, tensors.back(), drawn[p].numbers);
  }
  engine.synchronise();
  return tensors;
}

ParameterRegistry registry_of(const StepLayers& layers) {
  ParameterRegistry registry;
  for (const ParameterForm& form : layers.parameters()) registry.add(form.name);
  return registry;
}

Attribution attribution_of(Admission admission) {
  return admission == Admission::Unchecked ? Attribution::ByMicrobatch : Attribution::Total;
}

gradients::Contract contract_of(const PlannedStep& step, const RunOptions& options) {
  return options.whose.value_or(step.view().plan().kind == PlanKind::Te
                                    ? gradients::Contract::Te
                                    : gradients::Contract::Sound);
}

// Everything that a step is run on, made once and used by every replay. If the engine refuses
// something on the way it keeps the error, and the setup must not be used.
struct Setup {
  Setup(Engine& on, const PlannedStep& planned, const RunOptions& options, Admission admission,
        StepLayers of_step);
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  [[nodiscard]] const BufferTable& table() const { return step.view().table(); }

  Engine& engine;
  const PlannedStep& step;
  StepLayers layers;
  Program program;
  StepInputs inputs;
  std::unique_ptr<Transport> transport;
  std::vector<DrawnTensor> parameters;
  LoadedStep loaded;
  Deposits eager_deposits;
  Deposits replayed_deposits;
  StepOutputs eager;
  StepOutputs replayed;
  Expected expected;
  std::unique_ptr<LateReads> late;  // null unless the plan is unchecked
};

Setup::Setup(Engine& on, const PlannedStep& planned, const RunOptions& options, Admission admission,
             StepLayers of_step)
    : engine(on),
      step(planned),
      layers(std::move(of_step)),
      program(program_of_run(step, admission)),
      inputs(inputs_of(engine, step, layers, program)),
      transport(options.transport(engine)),
      parameters(drawn_parameters(layers, options.seed)),
      loaded{.engine = engine,
             .step = step,
             .layers = layers,
             .inputs = inputs,
             .transport = *transport,
             .messages = messages_of(program, table(), layers),
             .parameters = parameters_on(engine, layers, parameters),
             .registry = registry_of(layers),
             .hooks = options.hooks,
             .samples = te_samples(step)},
      eager_deposits(table(), step.replayed(), layers, gradients::Contract::Sound,
                     Deposits::Execution::Eager),
      replayed_deposits(table(), step.replayed(), layers, contract_of(step, options),
                        Deposits::Execution::Replayed),
      eager(engine, table(), layers, eager_deposits, attribution_of(admission)),
      replayed(engine, table(), layers, replayed_deposits, attribution_of(admission)),
      expected(engine, layers, table().microbatches()),
      late(admission == Admission::Unchecked ? std::make_unique<LateReads>(engine, table())
                                             : nullptr) {
  for (std::size_t i = 0; i < program.transfers.size(); ++i) {
    const Transfer& transfer = program.transfers[i];
    if (transfer.from == kNoBuffer) continue;
    transport->expect(loaded.messages[i], inputs.landing(transfer.cell, transfer.way));
  }
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

// The times of each step that was run, in microseconds.
struct StepTimes {
  std::vector<double> eager;
  std::vector<double> replay;
  std::vector<double> makespan;
  std::vector<double> busy;
  std::vector<double> launch;
};

// Runs a step on its setup: once eagerly, or captured and replayed again and again, with eager
// execution of the same numbers before each replay.
class Loop {
 public:
  Loop(Setup& setup, const RunOptions& options, RunReport& report)
      : setup_(setup),
        engine_(setup.engine),
        options_(options),
        report_(report),
        judge_({.engine = setup.engine,
                .step = setup.step,
                .layers = setup.layers,
                .parameters = setup.parameters,
                .eager = setup.eager,
                .replayed = setup.replayed,
                .eager_deposits = setup.eager_deposits,
                .replayed_deposits = setup.replayed_deposits,
                .expected = setup.expected,
                .late = setup.late.get()},
               report) {}

  void run_eagerly_only() {
    take(1);
    step_eagerly();
    report_.times.eager = median(times_.eager);
    if (!failed()) judge_eager();
  }

  void run_replays();

  /// The parameter that was gone when its gradient came.
  [[nodiscard]] const std::optional<std::string>& lost() const { return lost_; }

 private:
  [[nodiscard]] bool failed() const { return lost_.has_value() || setup_.loaded.failed(); }
  [[nodiscard]] bool by_action() const { return options_.graphs == Granularity::PerAction; }

  // Makes the numbers of a replay those of the step; replay 0 is the capture.
  void take(std::uint32_t replay) {
    engine_.label(replay == 0 ? "inputs of the capture"
                              : fmt::format("inputs of replay {}", replay));
    numbers_ = draw_values(setup_.step, setup_.layers, setup_.program, options_.sizes,
                           options_.seed, replay);
    setup_.inputs.write(numbers_);
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
    setup_.eager.reset(setup_.eager_deposits);
    EagerMemory memory(engine_, setup_.table(), options_.poison);
    Stepper stepper(setup_.loaded, setup_.program, memory, setup_.eager, setup_.eager_deposits,
                    setup_.expected, nullptr);
    times_.eager.push_back(timed([&] { stepper.run_eagerly(); }));
    note_lost(stepper);
    std::int64_t peak = 0;
    for (const std::int64_t of_rank : memory.peak()) peak += of_rank;
    report_.bytes.eager_peak = std::max(report_.bytes.eager_peak, peak);
  }

  void judge_eager() {
    if (options_.float64 == Float64::LeftOut) return;
    engine_.label("comparison of eager execution with float64");
    if (options_.float64 != Float64::Sampled) return judge_.judge_eager(numbers_);
    judge_.judge_sample(numbers_, {.seed = options_.seed, .count = options_.float64_samples});
  }

  void note_lost(const Stepper& stepper) {
    if (!lost_) lost_ = stepper.lost();
  }

  void capture(Stepper& stepper) {
    const GraphTimes earlier = engine_.graph_times();  // of runs before this one
    report_.times.capture = timed([&] {
      by_action() ? stepper.capture_actions(*program_of(setup_.table(), setup_.step.captured()))
                  : stepper.capture_step();
    });
    note_lost(stepper);
    if (failed()) return;
    report_.times.instantiate = engine_.graph_times().instantiate - earlier.instantiate;
    report_.times.upload = engine_.graph_times().upload - earlier.upload;
    report_.graphs = stepper.graphs().size();
    for (const Stepper::Captured& captured : stepper.graphs()) {
      report_.nodes += engine_.inspect(captured.graph).size();
    }
  }

  void replay(std::uint32_t number, Stepper& stepper) {
    engine_.label(fmt::format("replay {}", number));
    if (setup_.late) setup_.late->reset();
    setup_.replayed.reset(setup_.replayed_deposits);  // returns when the engine is done with it
    const double launched = engine_.graph_times().launch;
    times_.replay.push_back(
        timed([&] { by_action() ? stepper.replay_actions() : stepper.replay_step(); }));
    times_.makespan.push_back(makespan_of(stepper.timeline()));
    times_.busy.push_back(busy_of(stepper.timeline()));
    times_.launch.push_back(engine_.graph_times().launch - launched);
    note_lost(stepper);
  }

  void inspect(const PlannedMemory& memory, const Stepper& stepper) const {
    if (!options_.inspect || failed()) return;
    options_.inspect({.engine = engine_,
                      .step = setup_.step,
                      .layers = setup_.layers,
                      .memory = memory,
                      .inputs = setup_.inputs,
                      .outputs = setup_.replayed,
                      .parameters = setup_.loaded.parameters,
                      .graphs = stepper.graphs()});
  }

  Setup& setup_;
  Engine& engine_;
  const RunOptions& options_;
  RunReport& report_;
  Judge judge_;
  StepValues numbers_;  // of the replay at hand
  StepTimes times_;
  std::optional<std::string> lost_;
};

void Loop::run_replays() {
  const Plan& plan = setup_.step.view().plan();
  PlannedMemory memory(engine_, setup_.table(), plan, options_.poison);
  for (const RankMemory& rank : plan.ranks) report_.bytes.planned += rank.peak();
  report_.bytes.allocated = memory.allocated();
  Stepper stepper(setup_.loaded, setup_.program, memory, setup_.replayed, setup_.replayed_deposits,
                  setup_.expected, setup_.late.get());
  take(0);  // a split path bakes its sizes into the capture
  capture(stepper);
  if (failed()) return;
  inspect(memory, stepper);
  for (std::uint32_t number = 1; number <= options_.replays && !failed(); ++number) {
    take(number);
    step_eagerly();
    if (failed()) break;
    if (number == 1 || options_.float64 == Float64::EveryReplay) judge_eager();
    replay(number, stepper);
    if (failed()) break;
    engine_.label(fmt::format("comparison of replay {}", number));
    judge_.compare(number, numbers_, memory);
    if (options_.replayed) options_.replayed(number);
  }
  inspect(memory, stepper);
  report_.times.replay = median(times_.replay);
  report_.times.makespan = median(times_.makespan);
  report_.times.busy = median(times_.busy);
  report_.times.launch = median(times_.launch);
  report_.times.eager = median(times_.eager);
  report_.timeline = stepper.timeline();
}

// How a run broke off; nullopt if it did not.
std::optional<RunFailure> failure_of(const Setup& setup, const std::optional<std::string>& lost) {
  if (lost) return RunFailure{.kind = RunFailure::Kind::Lost, .message = *lost};
  const auto& error = setup.engine.error() ? setup.engine.error() : setup.transport->error();
  if (!error) return std::nullopt;
  return RunFailure{
      .kind = RunFailure::Kind::Broken, .message = error->message, .help = error->help};
}

Result<RunReport, RunFailure> run_step(Engine& engine, const PlannedStep& step,
                                       const RunOptions& options, Admission admission) {
  auto layers = StepLayers::of(step);
  if (!layers) return refused(layers.error());
  if (auto why = refusal(step, *layers, options)) return refused(std::move(*why));
  Setup setup(engine, step, options, admission, *std::move(layers));
  if (auto failed = failure_of(setup, std::nullopt)) return *std::move(failed);
  RunReport report;
  report.unchecked = admission == Admission::Unchecked;
  report.engine = engine.name();
  report.device = engine.device();
  report.replays = options.replays;
  report.float64_compared = options.float64 != Float64::LeftOut;
  report.float64_replays = float64_steps(options);
  Loop loop(setup, options, report);
  options.replays == 0 ? loop.run_eagerly_only() : loop.run_replays();
  if (auto failed = failure_of(setup, loop.lost())) return *std::move(failed);
  report.program = std::move(setup.program);
  return report;
}

}  // namespace

Result<RunReport, RunFailure> run(Engine& engine, const VerifiedPlan& plan,
                                  const RunOptions& options) {
  return run_step(engine, plan.step(), options, Admission::Verified);
}

Result<RunReport, RunFailure> run_unchecked(Engine& engine, const UncheckedPlan& plan,
                                            const RunOptions& options) {
  return run_step(engine, plan.step(), options, Admission::Unchecked);
}

}  // namespace capo::run
