#include "run/replays.h"

#include "core/base/median.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace capo::run {

namespace {

// 0 of what nobody timed.
double median_or_zero(const std::vector<double>& times) {
  return times.empty() ? 0 : median(times);
}

double mean_or_zero(const std::vector<double>& times) {
  if (times.empty()) return 0;
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
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

}  // namespace

bool compares_float64(const RunOptions& options) {
  const bool first = options.processes == nullptr || options.processes->rank() == 0;
  return first && options.float64 != Float64::LeftOut;
}

RunLoop::RunLoop(RunSetup& setup, const RunOptions& options, RunReport& report)
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
              .expected = setup.expected.get(),
              .late = setup.late.get(),
              .only = own_ranks(setup.step, options)},
             report) {
}

void RunLoop::run_eagerly_only() {
  take(1);
  step_eagerly();
  report_.times.eager = median_or_zero(times_.eager);
  if (!failed()) judge_eager();
}

// Makes the numbers of a replay those of the step; replay 0 is the capture.
void RunLoop::take(std::uint32_t replay) {
  engine_.label(replay == 0 ? "inputs of the capture" : fmt::format("inputs of replay {}", replay));
  numbers_ = draw_values(setup_.step, setup_.layers, setup_.program, options_.sizes, options_.seed,
                         replay);
  setup_.inputs.write(numbers_);
}

double RunLoop::timed(const std::function<void()>& work) const {
  const auto begin = std::chrono::steady_clock::now();
  work();
  engine_.synchronise();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  return took.count();
}

void RunLoop::step_eagerly() {
  engine_.label("eager execution");
  renew_codes(setup_.loaded);
  setup_.eager.reset(setup_.eager_deposits);
  EagerMemory memory(engine_, setup_.table(), options_.poison);
  Stepper stepper(setup_.loaded, setup_.program, memory, setup_.eager, setup_.eager_deposits,
                  setup_.expected.get(), nullptr);
  times_.eager.push_back(timed([&] { stepper.run_eagerly(); }));
  note_lost(stepper);
  std::int64_t peak = 0;
  for (const std::int64_t of_rank : memory.peak()) peak += of_rank;
  report_.bytes.eager_peak = std::max(report_.bytes.eager_peak, peak);
}

void RunLoop::judge_eager() {
  if (!compares_float64(options_)) return;
  engine_.label("comparison of eager execution with float64");
  if (options_.float64 != Float64::Sampled) return judge_.judge_eager(numbers_);
  judge_.judge_sample(numbers_, {.seed = options_.seed, .count = options_.float64_samples});
}

Program RunLoop::captured_program() const {
  Program all = *program_of(setup_.table(), setup_.step.captured());
  const auto only = own_ranks(setup_.step, options_);
  return only ? program_of_ranks(all, *only).program : all;
}

void RunLoop::note_lost(const Stepper& stepper) {
  if (!lost_) lost_ = stepper.lost();
}

void RunLoop::capture(Stepper& stepper) {
  const GraphTimes earlier = engine_.graph_times();  // of runs before this one
  report_.times.capture = timed(
      [&] { by_action() ? stepper.capture_actions(captured_program()) : stepper.capture_step(); });
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

// Replays once; no time is told if the run has failed.
ReplayTimes RunLoop::replay_once(Stepper& stepper) {
  if (setup_.late) setup_.late->reset();
  if (age_codes(setup_.loaded)) engine_.synchronise();
  setup_.inputs.spoil_arrivals();
  setup_.replayed.reset(setup_.replayed_deposits);  // returns when the engine is done with it
  setup_.transport->begin_step();
  if (failed()) return {};
  const double launched = engine_.graph_times().launch;
  const double took =
      timed([&] { by_action() ? stepper.replay_actions() : stepper.replay_step(); });
  setup_.transport->end_step();
  const auto [begin, end] = span_of(stepper.timeline());
  return {.replay = took,
          .begin = begin,
          .end = end,
          .busy = busy_of(stepper.timeline()),
          .launch = engine_.graph_times().launch - launched,
          .beginning = stepper.beginning(),
          .timeline = stepper.timeline()};
}

void RunLoop::replay(std::uint32_t number, Stepper& stepper) {
  const std::string label = fmt::format("replay {}", number);
  ReplayMean counted;
  warm_up(label, stepper, counted);
  engine_.label(label);
  const ReplayTimes last = replay_once(stepper);
  if (failed()) return;
  counted.add(last);
  ReplayTimes mean = counted.mean();
  times_.replay.push_back(mean.replay);
  times_.begin.push_back(mean.begin);
  times_.end.push_back(mean.end);
  times_.busy.push_back(mean.busy);
  times_.launch.push_back(mean.launch);
  times_.beginning.push_back(mean.beginning);
  report_.timeline = std::move(mean.timeline);
  note_lost(stepper);
}

// Another process may have begun before this one.
void RunLoop::begin_at_zero() {
  double first = 0;
  for (const Measured& measured : report_.timeline) first = std::min(first, measured.begin);
  for (Measured& measured : report_.timeline) {
    measured.begin -= first;
    measured.end -= first;
  }
}

// Makes the reports of all processes one at rank 0.
void RunLoop::gather() {
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

void RunLoop::run_replays() {
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
                  setup_.replayed_deposits, setup_.expected.get(), setup_.late.get());
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
  gather();
  report_.times.replay = median_or_zero(times_.replay);
  report_.times.makespan = median_or_zero(makespans_of(times_));
  report_.times.busy = median_or_zero(times_.busy);
  report_.times.round = mean_or_zero(rounds_);
  report_.times.launch = median_or_zero(times_.launch);
  report_.times.eager = median_or_zero(times_.eager);
}

}  // namespace capo::run
