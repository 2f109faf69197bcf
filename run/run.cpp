#include "run/run.h"

#include "core/base/median.h"
#include "run/divided.h"
#include "run/judge.h"
#include "run/processes/own_rank.h"
#include "run/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace capo::run {

namespace {

enum class Admission : std::uint8_t { Verified, Unchecked };

RunFailure refused(std::string why) {
  return {.kind = RunFailure::Kind::Refused, .message = std::move(why)};
}

bool makes(Kind work, BufferKind made) {
  switch (made) {
    case BufferKind::GradOutput:
    case BufferKind::GradInput:
    case BufferKind::Operands:
      return is_backward(work);
    case BufferKind::Scratch:
      return work == Kind::BackwardWeight;
    default:
      return work == Kind::Forward;
  }
}

// Whether the reader of a race is the work that made the buffer. It is hurt between two of its own
// kernels, and a run takes each work whole.
bool hurts_within_its_maker(const PlannedStep& step, const Hazard& hazard) {
  const RankOrder& rank = step.input().schedule.ranks[RankId(hazard.reader.rank).index()];
  const Entry& reader = rank.replayed()[hazard.reader.entry];
  return reader.kind == hazard.reader.kind && makes(reader.kind, hazard.victim.kind) &&
         reader.chunk == ChunkId(hazard.victim.chunk);
}

// The edges that make races come out wrong. Not all of them fit into one run: a work that is hurt
// by another may hurt that one too. What cannot show comes last.
std::vector<Forced> forced_races(const PlannedStep& step) {
  std::vector<Forced> races;
  std::vector<Forced> unseen;
  for (const JudgedHazard& judged : step.view().hazards()) {
    if (!judged.hazard.race) continue;
    (hurts_within_its_maker(step, judged.hazard) ? unseen : races)
        .emplace_back(judged.hazard.writer, judged.hazard.reader);
  }
  races.insert(races.end(), unseen.begin(), unseen.end());
  return races;
}

// The program of a run; if the plan is unchecked, with the edges that make races come out wrong.
Program program_of_run(const PlannedStep& step, Admission admission, const RunOptions& options) {
  std::vector<Forced> races;
  if (admission == Admission::Unchecked) races = forced_races(step);
  Program program = program_forcing(step.view().table(), step.replayed(), races);
  return options.processes == nullptr
             ? program
             : with_ends_apart(std::move(program), division_of(step, options));
}

StepInputs inputs_of(Engine& engine, const PlannedStep& step, const StepLayers& layers,
                     const Program& program, const RunOptions& options) {
  engine.label("setting up");
  engine.have_streams(
      std::max<std::uint32_t>(1, static_cast<std::uint32_t>(program.rank_of_stream.size())));
  const bool messages = options.processes != nullptr && options.between.on_device;
  if (messages || !program.exchanges.empty()) engine.leave_room_for_exchanges();
  return {engine, step, layers, program};
}

std::vector<DrawnTensor> drawn_parameters(const PlannedStep& step, const StepLayers& layers,
                                          std::uint64_t seed) {
  std::vector<DrawnTensor> drawn;
  for (const std::uint32_t as : drawn_as(step, layers)) {
    drawn.push_back(draw_parameter(layers, as, seed));
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
  return options.whose.value_or(is_a_frameworks(step.view().plan().kind)
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
  Deposits eager_deposits;
  Deposits replayed_deposits;
  StepOutputs eager;
  StepOutputs replayed;
  SentGradients sent_gradients;  // between processes
  SentRows sent_rows;
  std::unique_ptr<Transport> eager_transport;  // null: that of replays
  std::unique_ptr<Transport> transport;
  std::vector<DrawnTensor> parameters;
  LoadedStep loaded;
  Expected expected;
  std::unique_ptr<LateReads> late;  // null unless the plan is unchecked
};

// They are known before a transport is made, which is told of all messages.
SentGradients gradients_sent(const Setup& setup, const RunOptions& options) {
  const auto own = own_ranks(setup.step, options);
  if (!own) return {};
  return gradients_between({.program = setup.program,
                            .layers = setup.layers,
                            .table = setup.table(),
                            .deposits = setup.replayed_deposits,
                            .outputs = setup.replayed,
                            .division = division_of(setup.step, options),
                            .own = *own});
}

Setup::Setup(Engine& on, const PlannedStep& planned, const RunOptions& options, Admission admission,
             StepLayers of_step)
    : engine(on),
      step(planned),
      layers(std::move(of_step)),
      program(program_of_run(step, admission, options)),
      inputs(inputs_of(engine, step, layers, program, options)),
      eager_deposits(table(), step.replayed(), layers, gradients::Contract::Sound,
                     Deposits::Execution::Eager),
      replayed_deposits(table(), step.replayed(), layers, contract_of(step, options),
                        Deposits::Execution::Replayed),
      eager(engine, table(), layers, eager_deposits, attribution_of(admission)),
      replayed(engine, table(), layers, replayed_deposits, attribution_of(admission)),
      sent_gradients(gradients_sent(*this, options)),
      sent_rows(engine.error() ? SentRows() : rows_between(program, Cells(table()), inputs)),
      eager_transport(options.processes == nullptr ? nullptr : in_process(engine)),
      transport(transport_of(engine, step, layers, program, sent_gradients, sent_rows, options)),
      parameters(drawn_parameters(step, layers, options.seed)),
      loaded{.engine = engine,
             .step = step,
             .layers = layers,
             .inputs = inputs,
             .eager_transport = eager_transport ? *eager_transport : *transport,
             .transport = *transport,
             .messages = messages_of(program, table(), layers),
             .parameters = parameters_on(engine, layers, parameters),
             .coded = {},
             .registry = registry_of(layers),
             .hooks = options.hooks,
             .samples = te_samples(step),
             .lent = admission == Admission::Unchecked ? places_lent(engine, step) : LentPlaces(),
             .reductions = reductions_due(step),
             .sent_gradients = sent_gradients,
             .sent_rows = sent_rows,
             .own = own_ranks(step, options)
                        .value_or(RankRange{.end = division_of(step, options).ranks})},
      expected(engine, layers, table().microbatches()),
      late(admission == Admission::Unchecked ? std::make_unique<LateReads>(engine, table())
                                             : nullptr) {
  loaded.coded = coded_weights(engine, layers, loaded.parameters);
  for (std::size_t i = 0; i < program.transfers.size(); ++i) {
    const Transfer& transfer = program.transfers[i];
    if (transfer.from == kNoBuffer) continue;
    std::byte* const place = inputs.landing(transfer.cell, transfer.way);
    transport->expect(loaded.messages[i], place);
    if (eager_transport) eager_transport->expect(loaded.messages[i], place);
  }
  for (const auto& of_reduction : sent_gradients) {
    for (const SentGradient& one : of_reduction) transport->expect(one.message, one.gradient);
  }
  for (const auto& of_crossing : sent_rows) {
    for (const SentBlock& block : of_crossing) {
      if (block.stays()) continue;
      transport->expect(block.message, block.to);
      if (eager_transport) eager_transport->expect(block.message, block.to);
    }
  }
  transport->prepare();
}

// 0 of what nobody timed.
double median_or_zero(const std::vector<double>& times) {
  return times.empty() ? 0 : median(times);
}

// When the first task of a replay began and the last one ended; 0 and 0 if there is none.
std::pair<double, double> span_of(const std::vector<Measured>& timeline) {
  std::optional<std::pair<double, double>> span;
  for (const Measured& part : timeline) {
    if (!span) span = {part.begin, part.end};
    span = {std::min(span->first, part.begin), std::max(span->second, part.end)};
  }
  return span.value_or(std::pair(0.0, 0.0));
}

std::vector<double> makespans_of(const StepTimes& times) {
  std::vector<double> spans;
  for (std::size_t i = 0; i < times.end.size(); ++i) {
    spans.push_back(times.end[i] - times.begin[i]);
  }
  return spans;
}

double busy_of(const std::vector<Measured>& timeline) {
  double sum = 0;
  for (const Measured& part : timeline) sum += part.end - part.begin;
  return sum;
}

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
                .late = setup.late.get(),
                .only = own_ranks(setup.step, options)},
               report) {}

  void run_eagerly_only() {
    take(1);
    step_eagerly();
    report_.times.eager = median_or_zero(times_.eager);
    if (!failed()) judge_eager();
  }

  void run_replays();

  /// The parameter that was gone when its gradient came.
  [[nodiscard]] const std::optional<std::string>& lost() const { return lost_; }
  /// The process that said nothing of its replays.
  [[nodiscard]] const std::optional<std::string>& silent() const { return silent_; }

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
    renew_codes(setup_.loaded);
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
    if (options_.processes != nullptr && options_.processes->rank() > 0) return;
    engine_.label("comparison of eager execution with float64");
    if (options_.float64 != Float64::Sampled) return judge_.judge_eager(numbers_);
    judge_.judge_sample(numbers_, {.seed = options_.seed, .count = options_.float64_samples});
  }

  [[nodiscard]] Program captured_program() const {
    Program all = *program_of(setup_.table(), setup_.step.captured());
    const auto only = own_ranks(setup_.step, options_);
    return only ? program_of_ranks(all, *only).program : all;
  }

  void note_lost(const Stepper& stepper) {
    if (!lost_) lost_ = stepper.lost();
  }

  void capture(Stepper& stepper) {
    const GraphTimes earlier = engine_.graph_times();  // of runs before this one
    report_.times.capture = timed([&] {
      by_action() ? stepper.capture_actions(captured_program()) : stepper.capture_step();
    });
    note_lost(stepper);
    if (failed()) return;
    report_.times.instantiate = engine_.graph_times().instantiate - earlier.instantiate;
    report_.times.upload = engine_.graph_times().upload - earlier.upload;
    report_.graphs = stepper.graphs().size();
    // A graph that holds messages has kernels that no engine can read back.
    if (options_.processes != nullptr && !by_action()) return;
    for (const Stepper::Captured& captured : stepper.graphs()) {
      report_.nodes += engine_.inspect(captured.graph).size();
    }
  }

  // Replays once, in so many microseconds.
  double replay_once(Stepper& stepper) {
    if (setup_.late) setup_.late->reset();
    if (age_codes(setup_.loaded)) engine_.synchronise();
    setup_.inputs.spoil_crossings();
    setup_.replayed.reset(setup_.replayed_deposits);  // returns when the engine is done with it
    setup_.transport->begin_step();
    if (failed()) return 0;
    const double took =
        timed([&] { by_action() ? stepper.replay_actions() : stepper.replay_step(); });
    setup_.transport->end_step();
    return took;
  }

  // Replays once, and rests as long if that is asked for; in so many microseconds, with the rest.
  double warm_up_once(const std::string& label, Stepper& stepper) {
    double took = 0;
    rounds_.push_back(timed([&] {
      engine_.label(label);
      took = replay_once(stepper);
      if (!options_.rests) return;
      engine_.label(fmt::format("a rest before {}", label));
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(took));
    }));
    return options_.rests ? 2 * took : took;
  }

  // Processes replay equally often, as the first of them asks for by how long it took it once.
  void warm_up(const std::string& label, Stepper& stepper) {
    constexpr double kMicroseconds = 1e6;
    const double wanted = options_.warm_up * kMicroseconds;
    if (wanted <= 0 || failed()) return;
    warm_up_once(label, stepper);  // the first may be slow
    const double took = warm_up_once(label, stepper);
    const double further = took > 0 ? std::ceil(wanted / took) - 1 : 0;
    auto count = static_cast<std::uint64_t>(std::max(further, 0.0));
    if (options_.processes != nullptr) {
      const auto asked = options_.processes->spread(std::to_string(count));
      if (!asked) return;  // the replay that follows tells who is silent
      count = std::stoull(*asked);
    }
    for (std::uint64_t i = 0; i < count && !failed(); ++i) warm_up_once(label, stepper);
  }

  void replay(std::uint32_t number, Stepper& stepper) {
    const std::string label = fmt::format("replay {}", number);
    warm_up(label, stepper);
    engine_.label(label);
    const double launched = engine_.graph_times().launch;
    const double took = replay_once(stepper);
    if (failed()) return;
    times_.replay.push_back(took);
    const auto [begin, end] = span_of(stepper.timeline());
    times_.begin.push_back(begin);
    times_.end.push_back(end);
    times_.busy.push_back(busy_of(stepper.timeline()));
    times_.launch.push_back(engine_.graph_times().launch - launched);
    times_.beginning.push_back(stepper.beginning());
    note_lost(stepper);
  }

  // Another process may have begun before this one.
  void begin_at_zero() {
    double first = 0;
    for (const Measured& measured : report_.timeline) first = std::min(first, measured.begin);
    for (Measured& measured : report_.timeline) {
      measured.begin -= first;
      measured.end -= first;
    }
  }

  // Makes the reports of all processes one at rank 0.
  void gather() {
    if (options_.processes == nullptr || failed()) return;
    for (Measured& measured : report_.timeline) measured.op = own_->op_of[measured.op];
    const auto all = options_.processes->gather(packed(report_, times_));
    const Division division = division_of(setup_.step, options_);
    for (std::size_t process = 1; process < all.size(); ++process) {
      if (all[process]) {
        add(report_, times_, *all[process]);
      } else {
        silent_ = fmt::format("rank {} does not say what its replays showed",
                              division.of(static_cast<std::int32_t>(process)).first);
      }
    }
    begin_at_zero();
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
  std::vector<double> rounds_;         // of the warm-up, each with its rest
  std::optional<OwnProgram> own_;      // if each rank is a process
  std::optional<std::string> silent_;  // tells of a process that did not report
  std::optional<std::string> lost_;
};

void Loop::run_replays() {
  const Plan& plan = setup_.step.view().plan();
  const auto only = own_ranks(setup_.step, options_);
  PlannedMemory memory(engine_, setup_.table(), plan, options_.poison, only);
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    const bool own = !only || only->contains(static_cast<std::int32_t>(rank));
    if (own) report_.bytes.planned += plan.ranks[rank].peak();
  }
  report_.bytes.allocated = memory.allocated();
  if (only) own_ = program_of_ranks(setup_.program, *only);
  Stepper stepper(setup_.loaded, own_ ? own_->program : setup_.program, memory, setup_.replayed,
                  setup_.replayed_deposits, setup_.expected, setup_.late.get());
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
  report_.timeline = stepper.timeline();
  gather();
  report_.times.replay = median_or_zero(times_.replay);
  report_.times.makespan = median_or_zero(makespans_of(times_));
  report_.times.busy = median_or_zero(times_.busy);
  report_.times.round = median_or_zero(rounds_);
  report_.times.launch = median_or_zero(times_.launch);
  report_.times.eager = median_or_zero(times_.eager);
}

// How a run broke off; nullopt if it did not.
std::optional<RunFailure> failure_of(const Setup& setup, const std::optional<std::string>& lost) {
  if (lost) return RunFailure{.kind = RunFailure::Kind::Lost, .message = *lost};
  // A transport ends what hangs in a device, and knows why.
  const auto& error = setup.transport->error() ? setup.transport->error() : setup.engine.error();
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
  if (auto why = refusal_of_crossings(step, setup.layers, setup.program))
    return refused(std::move(*why));
  if (auto why = refusal_of_experts(step, setup.layers, setup.program, options))
    return refused(std::move(*why));
  if (auto failed = failure_of(setup, std::nullopt)) return *std::move(failed);
  RunReport report;
  report.unchecked = admission == Admission::Unchecked;
  report.engine = engine.name();
  report.device = engine.device();
  if (options.processes != nullptr) {
    report.processes = options.processes->size();
    report.between = options.between.name;
    report.division = division_of(step, options);
  }
  report.replays = options.replays;
  report.float64_compared = options.float64 != Float64::LeftOut;
  report.float64_replays = float64_steps(options);
  Loop loop(setup, options, report);
  options.replays == 0 ? loop.run_eagerly_only() : loop.run_replays();
  if (auto failed = failure_of(setup, loop.lost())) return *std::move(failed);
  if (loop.silent()) {
    return RunFailure{.kind = RunFailure::Kind::Broken, .message = *loop.silent()};
  }
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
