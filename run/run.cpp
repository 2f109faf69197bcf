#include <capo/run/run.h>

#include <capo/run/reference/step_reference.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace capo::run {

namespace {

constexpr double kHalfBound = 5e-3;   // of bf16 and fp16
constexpr double kFloatBound = 1e-5;  // of fp32 accumulation

RunFailure refused(std::string why) {
  return {.kind = RunFailure::Kind::Refused, .message = std::move(why)};
}

// The edges that make races come out wrong: writer before reader, as far as they agree.
std::vector<Forced> forced_races(const PlannedStep& step) {
  std::vector<Forced> forced;
  for (const JudgedHazard& judged : step.view().hazards()) {
    if (!judged.hazard.race) continue;
    forced.emplace_back(judged.hazard.writer, judged.hazard.reader);
    if (!program_of(step.view().table(), step.replayed(), forced)) forced.pop_back();
  }
  return forced;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Victim victim_of(const Buffer& buffer) {
  return {.rank = buffer.rank, .chunk = buffer.chunk, .microbatch = buffer.microbatch};
}

Victims predicted_by(const CheckResult& result) {
  Victims victims;
  if (!result.plan) return victims;
  for (const FoundHazard& hazard : result.plan->hazards) {
    auto& into = hazard.kind == HazardKind::StaticInput  ? victims.static_input
                 : hazard.kind == HazardKind::GradOutput ? victims.grad_output
                 : hazard.kind == HazardKind::P2pWindow  ? victims.grad_input
                                                         : victims.other;
    into.insert(victim_of(hazard.victim));
  }
  return victims;
}

// What a gradient must keep to: where nothing is rounded to a half between what the layer read and
// the gradient, fp32 sums are all that differs.
double bound_of(const StepLayer& layer, const ParameterForm& form) {
  if (layer.shape.type == DataType::Fp32) return kFloatBound;
  const bool exact = form.fused && !is_mlp(layer.shape.kind) && !has_norm(layer.shape.kind);
  return exact ? kFloatBound : kHalfBound;
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
        cells_(step.view().table()) {
    report.unchecked = unchecked;
    report.engine = engine.name();
    report.device = engine.device();
    report.predicted = predicted_by(step.result());
    report.replays = options.replays;
  }

  [[nodiscard]] std::optional<RunFailure> run() {
    if (auto why = refusal()) return refused(std::move(*why));
    report.program = *program_of(table(), step_.replayed(),
                                 unchecked_ ? forced_races(step_) : std::vector<Forced>{});
    engine_.have_streams(std::max<std::uint32_t>(
        1, static_cast<std::uint32_t>(report.program.rank_of_stream.size())));
    allocate();
    if (auto failed = failure()) return failed;
    name_tensors();
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
      return RunFailure{.kind = RunFailure::Kind::Broken, .message = engine_.error()->message};
    }
    return std::nullopt;
  }

  void allocate() {
    given_.emplace(engine_, step_, layers_, report.program);
    stage_.emplace(Stage{.engine = engine_,
                         .step = step_,
                         .layers = layers_,
                         .given = *given_,
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
    const gradients::Whose whose = options_.whose.value_or(
        step_.view().plan().kind == PlanKind::Te ? gradients::Whose::Te : gradients::Whose::Sound);
    eager_deposits_.emplace(table(), step_.replayed(), layers_, gradients::Whose::Sound,
                            Deposits::Execution::Eager);
    deposits_.emplace(table(), step_.replayed(), layers_, whose, Deposits::Execution::Replayed);
  }

  void name_tensors() {
    const auto& parameters = layers_.parameters();
    for (std::uint32_t p = 0; p < parameters.size(); ++p) {
      report.parameters.push_back({.name = parameters[p].name,
                                   .elements = parameters[p].groups * parameters[p].elements,
                                   .bound = bound_of(layers_.layer_of(p), parameters[p])});
    }
    for (std::uint32_t at = 0; at < cells_.count(); ++at) {
      const Cells::Cell cell = cells_.at(at);
      if (!gives_out(cell)) continue;
      const LayerShape& shape = layers_.at(cell.rank, cell.chunk, 0).shape;
      given_out_.push_back(at);
      report.input_gradients.push_back(
          {.name = fmt::format("input of chunk {} of rank {}, microbatch {}", cell.chunk, cell.rank,
                               cell.microbatch),
           .elements = shape.tokens * shape.hidden,
           .bound = shape.type == DataType::Fp32 ? kFloatBound : kHalfBound});
    }
  }

  // Whether a chunk's input gradient leaves the step, and is wanted.
  [[nodiscard]] bool gives_out(const Cells::Cell& cell) const {
    if (table().layers(cell.rank, cell.chunk) == 0) return false;
    if (!layers_.at(cell.rank, cell.chunk, 0).shape.needs_grad_input) return false;
    const StageMap& map = *step_.replayed().map;
    return !map.wired() || map.before(map.stage_of(cell.rank, cell.chunk)) == kNoStage;
  }

  void take(std::uint32_t replay) {
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

  void note_lost(const Stepper& stepper) {
    if (!lost_) lost_ = stepper.lost();
  }

  void run_eagerly_only() {
    take(1);
    step_eagerly();
    if (!failure()) judge_float64();
  }

  void run_replays() {
    PlannedMemory memory(engine_, table(), step_.view().plan(), options_.poison);
    for (const RankMemory& rank : step_.view().plan().ranks) report.bytes.planned += rank.peak();
    report.bytes.allocated = memory.allocated();
    if (unchecked_) late_.emplace(engine_, table());
    Stepper stepper(*stage_, report.program, memory, *replayed_, *deposits_, *expected_,
                    late_ ? &*late_ : nullptr);
    take(0);  // what a split path bakes in
    const bool by_action = options_.graphs == Granularity::PerAction;
    report.times.capture = timed([&] {
      by_action ? stepper.capture_actions(*program_of(table(), step_.captured()))
                : stepper.capture_step();
    });
    note_lost(stepper);
    if (failure()) return;
    report.graphs = stepper.graphs().size();
    for (const Stepper::Captured& captured : stepper.graphs()) {
      report.nodes += engine_.inspect(captured.graph).size();
    }
    inspect(memory, stepper);
    std::vector<double> times;
    for (std::uint32_t replay = 1; replay <= options_.replays && !failure(); ++replay) {
      take(replay);
      step_eagerly();
      if (failure()) break;
      judge_float64();
      replayed_->reset(*deposits_);
      if (late_) late_->reset();
      times.push_back(timed([&] { by_action ? stepper.replay_actions() : stepper.replay_step(); }));
      note_lost(stepper);
      if (!failure()) compare(replay, memory);
    }
    inspect(memory, stepper);
    report.times.replay = median(times);
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

  // What a reader as Megatron's finds in the end: main_grad, and .grad unless the flag says that it
  // is in there already.
  [[nodiscard]] std::vector<float> held(const Outcome& outcome, const Deposits& deposits,
                                        std::uint32_t parameter) const {
    const GradientMemory& memory = outcome.gradients(parameter);
    const GradientBook& book = deposits.book(parameter);
    const StepLayer& layer = layers_.layer_of(parameter);
    const auto none = [&] {
      return std::vector<float>(static_cast<std::size_t>(report.parameters[parameter].elements),
                                0.0F);
    };
    const GroupedTensor& own_grad = book.grad_is_returned() ? memory.returned : memory.grad;
    if (!layers_.parameters()[parameter].fused) {
      return book.has_grad() ? values_of(engine_, own_grad) : none();
    }
    std::vector<float> main_grad = values_of(engine_, memory.main_grad);
    const bool adds = book.has_grad() && (!book.flag() || layer.flags.zero_out_wgrad);
    if (!adds) return main_grad;
    const std::vector<float> grad = book.grad_is_view() ? main_grad : values_of(engine_, own_grad);
    for (std::size_t i = 0; i < grad.size(); ++i) main_grad[i] += grad[i];
    return main_grad;
  }

  [[nodiscard]] std::vector<float> given_out(const Outcome& outcome, std::uint32_t cell) const {
    const Cells::Cell of = cells_.at(cell);
    const LayerShape& shape = layers_.at(of.rank, of.chunk, 0).shape;
    const std::size_t number = layers_.number(of.rank, of.chunk, 0);
    const std::int64_t rows =
        live_rows(shape, numbers_.sides[number][static_cast<std::size_t>(of.microbatch)]);
    const GroupedTensor tensor{
        .type = shape.type, .elements = rows * shape.hidden, .parts = {outcome.collected(cell)}};
    return values_of(engine_, tensor);
  }

  void judge_float64() {
    const StepReference reference =
        reference_of(step_, layers_, values_, numbers_, stored_operands());
    report.worst_relative_error = std::max(report.worst_relative_error, reference.handed_on);
    report.within_bounds = report.within_bounds && reference.handed_on <= loosest_bound();
    const auto judge = [&](TensorReport& tensor, double error) {
      tensor.float64_error = std::max(tensor.float64_error, error);
      report.worst_relative_error = std::max(report.worst_relative_error, error);
      report.within_bounds = report.within_bounds && error <= tensor.bound;
    };
    for (std::uint32_t p = 0; p < report.parameters.size(); ++p) {
      if (is_frozen(p)) continue;
      const std::vector<float> is = held(*eager_, *eager_deposits_, p);
      judge(report.parameters[p],
            relative_error(reference.gradients[p], is, reference.magnitudes[p]));
      double& ascending = report.parameters[p].ascending_error.emplace(
          report.parameters[p].ascending_error.value_or(0));
      ascending =
          std::max(ascending, relative_error(reference.ascending[p], is, reference.magnitudes[p]));
    }
    for (std::size_t i = 0; i < given_out_.size(); ++i) {
      const std::vector<float> is = given_out(*eager_, given_out_[i]);
      std::vector<double> should = reference.grad_inputs[given_out_[i]];
      should.resize(is.size());
      judge(report.input_gradients[i], relative_error(should, is));
    }
  }

  [[nodiscard]] double loosest_bound() const {
    const auto& all = layers_.all();
    return std::all_of(all.begin(), all.end(),
                       [](const StepLayer& layer) { return layer.shape.type == DataType::Fp32; })
               ? kFloatBound
               : kHalfBound;
  }

  [[nodiscard]] StoredOperands stored_operands() const {
    StoredOperands stored;
    for (std::size_t number = 0; number < layers_.all().size(); ++number) {
      const LayerShape& shape = layers_.all()[number].shape;
      auto& inputs = stored.inputs.emplace_back();
      auto& grad_outputs = stored.grad_outputs.emplace_back();
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        const auto values = [&](std::byte* from, std::int64_t columns) {
          return values_of(
              engine_, {.type = shape.type, .elements = shape.tokens * columns, .parts = {from}});
        };
        inputs.push_back(values(expected_->input(number, m), shape.hidden));
        grad_outputs.push_back(values(expected_->grad_output(number, m), output_columns(shape)));
      }
    }
    return stored;
  }

  [[nodiscard]] bool is_frozen(std::uint32_t parameter) const {
    const ParameterCells cells = cells_of(
        layers_.layer_of(parameter), layers_.parameters()[parameter].role, gradients::Whose::Sound);
    return cells.whole.written == gradients::Written::Never &&
           cells.whole.returned == gradients::Returned::Nothing;
  }

  void compare(std::uint32_t replay, const PlannedMemory& memory) {
    const auto note = [&](TensorReport& tensor, const std::optional<Difference>& found) {
      if (!found) return;
      report.bit_equal = false;
      if (tensor.difference) return;
      tensor.difference = found;
      tensor.replay = replay;
    };
    for (std::uint32_t p = 0; p < report.parameters.size(); ++p) {
      const ParameterForm& form = layers_.parameters()[p];
      const DataType type = form.fused ? DataType::Fp32 : form.type;
      note(report.parameters[p],
           difference(held(*eager_, *eager_deposits_, p), held(*replayed_, *deposits_, p), type));
    }
    for (std::size_t i = 0; i < given_out_.size(); ++i) {
      const Cells::Cell cell = cells_.at(given_out_[i]);
      const auto found =
          difference(given_out(*eager_, given_out_[i]), given_out(*replayed_, given_out_[i]),
                     layers_.at(cell.rank, cell.chunk, 0).shape.type);
      note(report.input_gradients[i], found);
    }
    compare_sides(note);
    if (unchecked_) name_victims(memory);
  }

  // Gradients of probabilities and of scales, which are inputs too.
  template <typename Note>
  void compare_sides(const Note& note) {
    for (std::size_t number = 0; number < layers_.all().size(); ++number) {
      const StepLayer& layer = layers_.all()[number];
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        const auto& numbers = numbers_.sides[number][static_cast<std::size_t>(m)];
        const std::int64_t rows = live_rows(layer.shape, numbers);
        const auto each = [&](const char* what, float* should, float* is) {
          if (should == nullptr) return;
          const auto values = [&](float* of) {
            std::vector<float> read(static_cast<std::size_t>(rows));
            engine_.read(read.data(), of, rows * 4);
            return read;
          };
          const auto found = difference(values(should), values(is), DataType::Fp32);
          if (!found) return;
          TensorReport& tensor = report.input_gradients.emplace_back(TensorReport{
              .name = fmt::format("{} of layer {} of chunk {} of rank {}, microbatch {}", what,
                                  layer.layer, layer.chunk, layer.rank, m),
              .elements = rows});
          note(tensor, found);
        };
        const Outcome::SideGradients& should = eager_->side(number, m);
        const Outcome::SideGradients& is = replayed_->side(number, m);
        each("probabilities", should.probabilities, is.probabilities);
        each("scales", should.scales, is.scales);
      }
    }
  }

  void name_victims(const PlannedMemory& memory) {
    for (const LateReads::Late& late : late_->seen()) {
      const Buffer buffer = table().at(late.buffer);
      const bool sent = late.reader == Reader::Send;
      auto& into = sent && buffer.kind == BufferKind::GradInput ? report.victims.grad_input
                   : buffer.kind == BufferKind::StaticInput     ? report.victims.static_input
                   : buffer.kind == BufferKind::GradOutput      ? report.victims.grad_output
                                                                : report.victims.other;
      if (into.insert(victim_of(buffer)).second) tell(late, memory);
    }
    for (std::uint32_t p = 0; p < layers_.parameters().size(); ++p) {
      const StepLayer& layer = layers_.layer_of(p);
      for (std::int32_t m = 0; m < table().microbatches(); ++m) {
        if (!writes_own(p, m)) continue;
        const auto values = [&](const Outcome& outcome) {
          return values_of(engine_, outcome.gradients(p).own[static_cast<std::size_t>(m)]);
        };
        if (difference(values(*eager_), values(*replayed_), DataType::Fp32)) {
          report.wrong_gradients.insert({layer.rank, layer.chunk, m});
        }
      }
    }
  }

  [[nodiscard]] bool writes_own(std::uint32_t parameter, std::int32_t microbatch) const {
    for (const bool weight : {false, true}) {
      const bool eager =
          eager_deposits_->of(parameter, microbatch, weight).into != Deposit::Into::Nothing;
      const bool replay =
          deposits_->of(parameter, microbatch, weight).into != Deposit::Into::Nothing;
      if (eager && replay) return true;
    }
    return false;
  }

  // One sentence for a victim: what was read, and what lies there now.
  void tell(const LateReads::Late& late, const PlannedMemory& memory) {
    const BufferId taker = memory.taken_by(late.buffer);
    const auto words = [&](BufferId id) {
      const Buffer of = table().at(id);
      return fmt::format("the {} of chunk {}, microbatch {} of rank {}", capo::name_of(of.kind),
                         of.chunk, of.microbatch, of.rank);
    };
    report.stories.push_back(fmt::format(
        "{} was {} too late: {}", words(late.buffer), late.reader == Reader::Send ? "sent" : "read",
        taker == kNoBuffer ? "something else had been written there"
                           : words(taker) + " had taken its memory over"));
  }

  Engine& engine_;
  const PlannedStep& step_;
  const RunOptions& options_;
  bool unchecked_;
  StepLayers layers_;
  Cells cells_;
  std::optional<Given> given_;
  std::optional<Stage> stage_;
  std::optional<Outcome> eager_;
  std::optional<Outcome> replayed_;
  std::optional<Expected> expected_;
  std::optional<LateReads> late_;  // of an unchecked plan
  std::optional<Deposits> eager_deposits_;
  std::optional<Deposits> deposits_;
  std::vector<std::vector<float>> values_;  // by parameter
  std::vector<std::uint32_t> given_out_;    // cells, as report.input_gradients
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
