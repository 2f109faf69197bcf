// The setup of a run, of replays.h, and how it is shown to who inspects it.

#include "run/replays.h"
#include "run/run.h"

#include <algorithm>
#include <utility>

namespace capo::run {

namespace {

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

// They are known before a transport is made, which is told of all messages.
SentGradients gradients_sent(const RunSetup& setup, const RunOptions& options) {
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

}  // namespace

RunSetup::RunSetup(Engine& on, const PlannedStep& planned, const RunOptions& options,
                   Admission admission, StepLayers of_step)
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
      expected(admission == Admission::Unchecked || compares_float64(options)
                   ? std::make_unique<Expected>(engine, layers, table().microbatches())
                   : nullptr),
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

void RunLoop::inspect(const PlannedMemory& memory, const Stepper& stepper) const {
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

}  // namespace capo::run
