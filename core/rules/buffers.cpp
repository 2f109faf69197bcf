// The rules about memory that graphs share: who overwrites what too early, and who shares what.
//
//   1 2 -2 -1 -2.5 -1.5     -2.5 reads a gradient that -1 has overwritten: B02
//
// Hazards are found by core/plan and judged in plan_view.h; here each kind gets its rule. Tested by
// hazards_test.cpp, pool_test.cpp, buffers_test.cpp and tests/corpus/rules/B01 to B08 and E01.

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/plan/accesses.h"
#include "core/plan/sizes.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/hazard_words.h"
#include "core/text/number.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace capo::rules {

namespace {

// The hazards that a rule reports: those of one kind of memory; nullopt: the races of every kind.
// Hazards that only a replay order causes are Y01's.
struct HazardRule {
  std::optional<HazardKind> kind;
};

template <const HazardRule& kRule>
void report_hazards(const Context& context, Findings& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& judged : view.hazards()) {
    const bool concerns = judged.hazard.race ? !kRule.kind.has_value()
                                             : kRule.kind == judged.kind && !judged.by_replay;
    if (concerns) report_hazard(context, view, judged, out);
  }
}

// A static input is its graph's until the last reader: the weight gradient, if that reads it.
//
//   1 -1 1 -1.5 -1 -1.5      -1.5 pairs the input of microbatch 1 with the gradient of microbatch 0
//
// TE frees the input at the backward, and the next forward of the same signature takes the oldest
// one that is free.
constexpr HazardRule kStaticInputReuse{HazardKind::StaticInput};

// The gradient that came in is there until the weight gradient has read it.
//
//   1 2 -2 -1 -2.5 -1.5      -2.5 reads the gradient of chunk 1
//
// TE has one static gradient for all graphs whose outputs look alike, and every backward copies its
// own into it.
constexpr HazardRule kGradOutputReuse{HazardKind::GradOutput};

// Memory of the graphs' pool is its buffer's until the last reader.
//
//   1 1 1 2 2 2 -2 -2 -2 -1 -1 -1      the first -1 reads what the first -2 hands back: the second
//                                      freed it, the third took it
//
// In the order of capture only one thing can outlive its memory: the gradient that a chunk hands
// back to another chunk of the same rank. TE frees it when the next backward of any chunk is
// captured, as if it were sent away by then. An output is kept until its own backward, and is not
// read after that. PyTorch's allocator decides which block a capture takes, so the finding says
// may.
constexpr HazardRule kPoolReuse{HazardKind::Pool};

// A grad input that goes to another rank is there until its send is over.
//
// TE frees it when the next backward of any chunk is captured, since Megatron's send is over by the
// end of the next chunk's. If every layer is a chunk of TE's list (EP overlap), the next chunk is
// one layer, and the send may last to the end of the next chunk of the model: `--model-chunks` says
// how many layers make one. If transfers are known, the send itself is the reader; one that is
// issued in time but that nobody waits for is a race.
constexpr HazardRule kP2pWindow{HazardKind::P2pWindow};

// Two uses of the same memory, one of them a write, are ordered by streams and events.
//
// One clock a stream says what is over before what: the order of a stream, and the events between
// streams. A race may come out right, but no order makes it so. A send that may still read is no
// race, but p2p_window's.
constexpr HazardRule kSlotRace{std::nullopt};

// A graph, and the module of a layer that it captured.
struct Captured {
  const Module* module;
  MemoryUser user;
};

// Calls visit(owner, sharer) for each pair of modules whose graphs share a static tensor and that
// `differ`, once a rank. The owner is the graph captured first, whose tensor it is.
template <typename Differ, typename Visit>
void for_each_sharing(const Context& context, BufferKind tensor, Differ differ, Visit visit) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  if (context.options().modules.list.size() < 2) return;  // one module is like itself
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    std::map<std::int64_t, Captured> first;  // by address
    std::set<std::pair<const Module*, const Module*>> reported;
    for (const Work& work : view.captured()[r]) {
      const bool uses =
          tensor == BufferKind::StaticInput ? work.kind == Kind::Forward : is_backward(work.kind);
      if (!uses) continue;
      for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
        const Module* module = view.table().facts(rank, work.chunk, layer).module;
        if (module == nullptr) return;
        const BufferId id = view.table().id(rank, work.chunk, layer, work.microbatch, tensor);
        const Captured own{module, {.rank = rank, .entry = work.entry, .kind = work.kind}};
        const Captured& owner = first.try_emplace(view.plan().address[id], own).first->second;
        if (differ(*owner.module, *module) && reported.emplace(owner.module, module).second)
          visit(owner, own);
      });
    }
  }
}

Witness witness_of(const Context& context, const Wiring& wiring, const Captured& owner,
                   const Captured& sharer) {
  return {.kind = WitnessKind::Replay,
          .tasks = {memory_user_reference(context, wiring, owner.user),
                    memory_user_reference(context, wiring, sharer.user)}};
}

bool differ_in_need(const Module& owner, const Module& sharer) {
  return owner.flags.input_requires_grad != sharer.flags.input_requires_grad;
}

// Graphs that share a static input agree on whether it needs a gradient.
//
// TE's key of an input is shape, type and layout, not requires_grad. The later graph gets the
// earlier one's sample: if that needs no gradient and the layer does, its backward hands no
// gradient back, without an error. The other way round a gradient is made that nobody wants, which
// is a warning.
void weak_input_key(const Context& context, Findings& out) {
  const auto report = [&](const Captured& owner, const Captured& sharer) {
    const bool loses = sharer.module->flags.input_requires_grad;
    const Severity severity = loses ? Severity::Error : Severity::Warning;
    if (!out.found(severity)) return;
    const Wiring& wiring = *context.wirings().front();
    out.report(
        {.severity = severity,
         .message = fmt::format(
             "module `{}` at {} shares the static input that module `{}` made at {}, which {} "
             "gradient: its own {}",
             sharer.module->name, memory_user_name(context, wiring, sharer.user),
             owner.module->name, memory_user_name(context, wiring, owner.user),
             loses ? "needs no" : "needs a",
             loses ? "is lost, without an error" : "is computed for nobody"),
         .labels = {{memory_user_span(context, wiring, sharer.user), "takes the input over"},
                    {memory_user_span(context, wiring, owner.user), "its sample decides"}},
         .help = {.text = "let both samples need a gradient, or give them shapes that "
                          "TransformerEngine tells apart"},
         .witness = witness_of(context, wiring, owner, sharer)});
  };
  for_each_sharing(context, BufferKind::StaticInput, differ_in_need, report);
}

bool differ_in_position(const Module& owner, const Module& sharer) {
  return owner.output_position != sharer.output_position;
}

// Graphs that share incoming gradients have the output that needs one at the same position.
//
// TE's key of outputs is the shapes, types and layouts of those that need a gradient, not where
// they stand among the others. A graph that returns (y, aux) then shares the tuple of one that
// returns (aux, y), and its backward reads the zeros of aux.
void weak_output_key(const Context& context, Findings& out) {
  const auto report = [&](const Captured& owner, const Captured& sharer) {
    if (!out.found()) return;
    const Wiring& wiring = *context.wirings().front();
    out.report(
        {.message = fmt::format(
             "module `{}` at {} shares the incoming gradients of module `{}` at {}, whose output "
             "{} needs one where its own is output {}: it reads zeros",
             sharer.module->name, memory_user_name(context, wiring, sharer.user),
             owner.module->name, memory_user_name(context, wiring, owner.user),
             owner.module->output_position, sharer.module->output_position),
         .labels = {{memory_user_span(context, wiring, sharer.user), "reads the wrong gradient"},
                    {memory_user_span(context, wiring, owner.user), "its tuple is shared"}},
         .help = {.text = "return the outputs of both modules in the same order"},
         .witness = witness_of(context, wiring, owner, sharer)});
  };
  for_each_sharing(context, BufferKind::GradOutput, differ_in_position, report);
}

class Judge {
 public:
  Judge(const Context& context, Findings& out) : context_(context), out_(out) {}

  void look_at(const Module& module, const MemoryUser& user) {
    if (!judged_.insert(&module).second) return;
    if (!module.flags.contiguous_output) report(module, user, "output", "what is read of it");
    if (!module.flags.contiguous_input) {
      report(module, user, "input", "what is read of its gradient");
    }
  }

 private:
  void report(const Module& module, const MemoryUser& user, std::string_view end,
              std::string_view permuted) {
    if (!out_.found()) return;
    const Wiring& wiring = *context_.wirings().front();
    Diagnostic finding;
    finding.message = fmt::format(
        "the {} of module `{}`, first at {}, is not contiguous, and its graph forgets the strides: "
        "{} is permuted",
        end, module.name, memory_user_name(context_, wiring, user), permuted);
    finding.labels = {{memory_user_span(context_, wiring, user), "captured here"}};
    finding.witness = {.kind = WitnessKind::Replay,
                       .tasks = {memory_user_reference(context_, wiring, user)}};
    finding.help.text = fmt::format("make the {} contiguous inside the module", end);
    out_.report(std::move(finding));
  }

  const Context& context_;
  Findings& out_;
  std::set<const Module*> judged_;
};

// Static tensors are contiguous: a graph's weak handle keeps address, type and shape, not strides.
//
// A transposed, expanded or sliced output is then read as if it were contiguous: permuted or
// foreign data. So is the gradient of an input whose sample is not contiguous. There is one finding
// for each module and end.
void strides_lost(const Context& context, Findings& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  if (context.options().modules.list.empty()) return;
  Judge judge(context, out);
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    for (const Work& work : view.captured()[r]) {
      if (work.kind != Kind::Forward) continue;
      for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
        const Module* module = view.table().facts(rank, work.chunk, layer).module;
        if (module == nullptr) return;
        judge.look_at(*module, {.rank = rank, .entry = work.entry, .kind = work.kind});
      });
    }
  }
}

// "module `moe` declares no `dtype`", of the first layer whose sizes are unknown: a table without
// sizes has one.
std::string undeclared_words(const PlanView& view) {
  const BufferTable& table = view.table();
  for (std::int32_t r = 0;; ++r) {
    CAPO_ASSERT(as_index(r) < table.ranks(), "where sizes are unknown some layer lacks them");
    for (const LayerFacts& facts : table.facts_of(r)) {
      if (facts.module == nullptr) return fmt::format("a layer of rank {} has no module", r);
      const std::string member = undeclared_size(*facts.module, facts.aliases, facts.delayed);
      if (!member.empty()) {
        return fmt::format("module `{}` declares no `{}`", facts.module->name, member);
      }
    }
  }
}

// The most memory that a rank takes, and where.
struct MostMemory {
  bool early = false;  ///< in a pass before capture
  std::uint32_t entry = 0;
  std::int64_t buffers = 0;
  std::int64_t needed = 0;  ///< with the weights
};

MostMemory most_memory(const RankMemory& memory) {
  const bool early = memory.peaks_in_warm_up();
  const std::int64_t buffers = early ? memory.warm_up : memory.peak();
  return {.early = early,
          .entry = early ? memory.warm_up_entry : memory.peak_entry,
          .buffers = buffers,
          .needed = buffers + memory.weights};
}

std::vector<Note> notes_of_budget(const PlanView& view, std::size_t rank, const MostMemory& most,
                                  std::int64_t budget) {
  const RankMemory& memory = view.plan().ranks[rank];
  const std::int64_t least = view.memory()[rank].lower_bound + memory.weights;
  std::vector<Note> notes{
      {.text = fmt::format("no plan{} without hazards takes less than {} for this order",
                           view.kind() == PlanKind::McoreLocal ? " whose layers copy," : "",
                           byte_words(least)),
       .span = std::nullopt}};
  const std::int64_t captured = memory.peak() + memory.weights;
  if (most.early && captured <= budget) {
    notes.push_back({.text = fmt::format("captured and replayed it needs {}", byte_words(captured)),
                     .span = std::nullopt});
  }
  return notes;
}

Diagnostic beyond_budget(const Context& context, std::size_t rank, const MostMemory& most,
                         std::int64_t budget) {
  const PlanView& view = context.plan_view();
  const Wiring& wiring = *context.wirings().front();
  const auto id = static_cast<std::int32_t>(rank);
  const auto& entry = context.order_of(wiring, id).entries[most.entry];
  const MemoryUser user{.rank = id, .entry = most.entry, .kind = entry.kind};
  const std::int64_t weights = view.plan().ranks[rank].weights;
  Diagnostic finding;
  finding.message = fmt::format(
      "rank {} needs {} at {}{}, more than the budget of {}: {} of buffers and {} of weights", rank,
      byte_words(most.needed), memory_user_name(context, wiring, user),
      most.early ? " in a pass before capture" : "", byte_words(budget), byte_words(most.buffers),
      byte_words(weights));
  finding.labels = {{entry.span(), most.early ? "the passes before capture take most here"
                                              : "the peak is reached here"}};
  finding.witness = {.kind = WitnessKind::Replay,
                     .tasks = {memory_user_reference(context, wiring, user)}};
  finding.notes = notes_of_budget(view, rank, most, budget);
  const bool may_fit = view.memory()[rank].lower_bound + weights <= budget;
  finding.help.text = may_fit && is_a_frameworks(view.kind())
                          ? "capo's own plan may fit: --plan safe"
                          : "fewer microbatches in flight, or smaller ones";
  return finding;
}

// A rank's buffers and weights fit into the budget that was declared for it.
//
// It counts the buffers of the plan at its peak, or what TE's passes before capture take if that is
// more, and the weights that modules declare; not optimizer states, workspaces, or what the
// allocator loses. It needs the sizes of all layers, and warns if they are not declared. There is
// one finding for each rank.
void over_budget(const Context& context, Findings& out) {
  const PlanView& view = context.plan_view();
  const auto budget = context.options().plan.budget;
  if (!view.declared() || !budget) return;
  if (!view.table().sized()) {
    out.add(
        {.severity = Severity::Warning,
         .message = fmt::format("the budget of {} cannot be held against sizes that nobody "
                                "declared: {}",
                                byte_words(*budget), undeclared_words(view)),
         .help = {.text = "declare the bytes, or shapes and types, of all layers in model.json, "
                          "or the model's sizes: `--model-config NAME`, and `capo model --list` "
                          "for names",
                  .edits = {}}});
    return;
  }
  for (std::size_t rank = 0; rank < view.plan().ranks.size(); ++rank) {
    const MostMemory most = most_memory(view.plan().ranks[rank]);
    if (most.needed <= *budget || !out.found()) continue;
    out.report(beyond_budget(context, rank, most, *budget));
  }
}

constexpr Rule kBuffersRules[] = {
    {"B01", "static-input-reuse", "an input that was overwritten before its last reader",
     Family::Buffers, Pass::Buffers, report_hazards<kStaticInputReuse>},
    {"B02", "grad-output-reuse", "an incoming gradient that was overwritten before its reader",
     Family::Buffers, Pass::Buffers, report_hazards<kGradOutputReuse>},
    {"B03", "pool-reuse", "pool memory that was taken over before its last reader", Family::Buffers,
     Pass::Buffers, report_hazards<kPoolReuse>},
    {"B04", "p2p-window", "a gradient that is overwritten while it is sent", Family::Buffers,
     Pass::Buffers, report_hazards<kP2pWindow>},
    {"B05", "weak-input-key", "graphs share an input, and one of them needs no gradient of it",
     Family::Buffers, Pass::Buffers, weak_input_key},
    {"B06", "weak-output-key", "graphs share incoming gradients of different outputs",
     Family::Buffers, Pass::Buffers, weak_output_key},
    {"B07", "strides-lost", "a static tensor whose strides a graph forgets", Family::Buffers,
     Pass::Buffers, strides_lost},
    {"B08", "over-budget", "more memory than the budget", Family::Buffers, Pass::Buffers,
     over_budget},
    {"E01", "slot-race", "memory used by two streams that nothing orders", Family::Streams,
     Pass::Buffers, report_hazards<kSlotRace>},
};

}  // namespace

std::span<const Rule> buffer_rules() {
  return kBuffersRules;
}

}  // namespace capo::rules
