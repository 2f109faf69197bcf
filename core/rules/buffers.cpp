// The rules about memory that graphs share: who overwrites what too early, and who shares what.
//
//   1 2 -2 -1 -2.5 -1.5     -2.5 reads a gradient that -1 has overwritten: B02
//
// Hazards are found by core/plan and judged in plan_view.h; here each kind gets its rule. Tested by
// tests/corpus/rules/B01 to B08 and E01.

#include "core/plan/accesses.h"
#include "core/rules/checks.h"
#include "core/rules/hazard_words.h"
#include "core/text/byte_size.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace capo::rules {

// A static input is its graph's until the last reader: the weight gradient, where that reads it.
//
//   1 -1 1 -1.5 -1 -1.5      -1.5 pairs the input of microbatch 1 with the gradient of microbatch 0
//
// TE frees the input at the backward, and the next forward of the same signature takes the oldest
// one that is free. Races and reorderings by replay are E01's and Y01's.

void static_input_reuse(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::StaticInput && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B01", Family::Buffers, out);
  }
}

// The gradient that came in is there until the weight gradient has read it.
//
//   1 2 -2 -1 -2.5 -1.5      -2.5 reads the gradient of chunk 1
//
// TE has one static gradient for all graphs whose outputs look alike, and every backward copies its
// own into it. Races and reorderings by replay are E01's and Y01's.

void grad_output_reuse(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::GradOutput && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B02", Family::Buffers, out);
  }
}

// Memory of the graphs' pool is its buffer's until the last reader.
//
//   1 1 1 2 2 2 -2 -2 -2 -1 -1 -1      the first -1 reads what the first -2 hands back: the second
//                                      freed it, the third took it
//
// In the order of capture only one thing can outlive its memory: the gradient that a chunk hands
// back to another chunk of the same rank. TE frees it when the next backward of any chunk is
// captured, as if it were sent away by then. An output is kept until its own backward, and nothing
// reads it after that. Which block a capture takes is up to PyTorch's allocator, so the finding
// says may. What is sent is B04's; races and reorderings by replay are E01's and Y01's.

void pool_reuse(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::Pool && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B03", Family::Buffers, out);
  }
}

// A grad input that goes to another rank is there until its send is over.
//
// TE frees it when the next backward of any chunk is captured, since Megatron's send is over by the
// end of the next chunk's. Where every layer is a chunk of TE's list (EP overlap), the next chunk
// is one layer, and the send may last to the end of the next chunk of the model: `--model-chunks`
// says how many layers make one. Where transfers are known, the send itself is the reader; one that
// is issued in time but that nobody waits for is a race, E01's.

void p2p_window(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    if (hazard.kind == HazardKind::P2pWindow && !hazard.hazard.race && !hazard.by_replay)
      report_hazard(context, view, hazard, "B04", Family::Buffers, out);
  }
}

// Graphs that share a static input agree on whether it needs a gradient.
//
// TE's key of an input is shape, type and layout, not requires_grad. The later graph gets the
// earlier one's sample: where that needs no gradient and the layer does, its backward hands back
// nothing, without an error. The other way round a gradient is made that nobody wants, which is a
// warning. One finding for each pair of modules.

namespace {

struct InputOwner {
  const Module* module;
  Site site;
};

void judge_inputs(const Context& context, const PlanView& view, std::int32_t rank,
                  Diagnostics& out) {
  const Wiring& wiring = *context.wirings().front();
  std::map<std::int64_t, InputOwner> first;  // by address: whose sample it is
  std::set<std::pair<const Module*, const Module*>> reported;
  for (const Work& work : view.captured()[static_cast<std::size_t>(rank)]) {
    if (work.kind != Kind::Forward) continue;
    for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
      const Module* module = view.table().facts(rank, work.chunk, layer).module;
      if (module == nullptr) return;
      const BufferId id =
          view.table().id(rank, work.chunk, layer, work.microbatch, BufferKind::StaticInput);
      const Site site{.rank = rank, .entry = work.entry, .kind = work.kind};
      const InputOwner& owner =
          first.try_emplace(view.plan().address[id], InputOwner{module, site}).first->second;
      const bool agree =
          owner.module->flags.input_requires_grad == module->flags.input_requires_grad;
      if (agree || !reported.emplace(owner.module, module).second) return;
      const bool loses = module->flags.input_requires_grad;
      const Severity severity = loses ? Severity::Error : Severity::Warning;
      if (!out.wants("B05", severity)) return;
      Diagnostic finding{.rule = "B05", .family = Family::Buffers, .severity = severity};
      finding.message = fmt::format(
          "module `{}` at {} shares the static input that module `{}` made at {}, which {} "
          "gradient: its own {}",
          module->name, site_name(context, wiring, site), owner.module->name,
          site_name(context, wiring, owner.site), loses ? "needs no" : "needs a",
          loses ? "is lost, without an error" : "is computed for nobody");
      finding.labels = {{site_span(context, wiring, site), "takes the input over"},
                        {site_span(context, wiring, owner.site), "its sample decides"}};
      finding.witness = {.kind = WitnessKind::Replay,
                         .tasks = {site_reference(context, wiring, owner.site),
                                   site_reference(context, wiring, site)}};
      finding.help.text =
          "let both samples need a gradient, or give them shapes that TransformerEngine tells "
          "apart";
      out.keep(std::move(finding));
    });
  }
}

}  // namespace

void weak_input_key(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  if (context.options().modules.list.size() < 2) return;  // one module is like itself
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    judge_inputs(context, view, static_cast<std::int32_t>(r), out);
  }
}

// Graphs that share incoming gradients have the output that needs one at the same position.
//
// TE's key of outputs is the shapes, types and layouts of those that need a gradient, not where
// they stand among the others. A graph that returns (y, aux) then shares the tuple of one that
// returns (aux, y), and its backward reads the zeros of aux. One finding for each pair of modules.

namespace {

struct OutputOwner {
  const Module* module;
  Site site;
};

void judge_outputs(const Context& context, const PlanView& view, std::int32_t rank,
                   Diagnostics& out) {
  const Wiring& wiring = *context.wirings().front();
  std::map<std::int64_t, OutputOwner> first;  // by address: who made the tuple
  std::set<std::pair<const Module*, const Module*>> reported;
  for (const Work& work : view.captured()[static_cast<std::size_t>(rank)]) {
    if (!is_backward(work.kind)) continue;
    for_each_layer(view.table(), rank, work, [&](std::int32_t layer) {
      const Module* module = view.table().facts(rank, work.chunk, layer).module;
      if (module == nullptr) return;
      const BufferId id =
          view.table().id(rank, work.chunk, layer, work.microbatch, BufferKind::GradOutput);
      const Site site{.rank = rank, .entry = work.entry, .kind = work.kind};
      const OutputOwner& owner =
          first.try_emplace(view.plan().address[id], OutputOwner{module, site}).first->second;
      if (owner.module->output_position == module->output_position ||
          !reported.emplace(owner.module, module).second || !out.wants("B06")) {
        return;
      }
      Diagnostic finding{.rule = "B06", .family = Family::Buffers};
      finding.message = fmt::format(
          "module `{}` at {} shares the incoming gradients of module `{}` at {}, whose output {} "
          "needs one where its own is output {}: it reads zeros",
          module->name, site_name(context, wiring, site), owner.module->name,
          site_name(context, wiring, owner.site), owner.module->output_position,
          module->output_position);
      finding.labels = {{site_span(context, wiring, site), "reads the wrong gradient"},
                        {site_span(context, wiring, owner.site), "its tuple is shared"}};
      finding.witness = {.kind = WitnessKind::Replay,
                         .tasks = {site_reference(context, wiring, owner.site),
                                   site_reference(context, wiring, site)}};
      finding.help.text = "return the outputs of both modules in the same order";
      out.keep(std::move(finding));
    });
  }
}

}  // namespace

void weak_output_key(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
  if (context.options().modules.list.size() < 2) return;  // one module is like itself
  for (std::size_t r = 0; r < view.captured().size(); ++r) {
    judge_outputs(context, view, static_cast<std::int32_t>(r), out);
  }
}

// Static tensors are contiguous: a graph's weak handle keeps address, type and shape, not strides.
//
// A transposed, expanded or sliced output is then read as if it were contiguous, permuted or
// foreign data; so is the gradient of an input whose sample is not contiguous. One finding for each
// module and end.

namespace {

class Judge {
 public:
  Judge(const Context& context, Diagnostics& out) : context_(context), out_(out) {}

  void look_at(const Module& module, const Site& site) {
    if (!judged_.insert(&module).second) return;
    if (!module.flags.contiguous_output) report(module, site, "output", "what is read of it");
    if (!module.flags.contiguous_input) {
      report(module, site, "input", "what is read of its gradient");
    }
  }

 private:
  void report(const Module& module, const Site& site, std::string_view end,
              std::string_view permuted) {
    if (!out_.wants("B07")) return;
    const Wiring& wiring = *context_.wirings().front();
    Diagnostic finding{.rule = "B07", .family = Family::Buffers};
    finding.message = fmt::format(
        "the {} of module `{}`, first at {}, is not contiguous, and its graph forgets the strides: "
        "{} is permuted",
        end, module.name, site_name(context_, wiring, site), permuted);
    finding.labels = {{site_span(context_, wiring, site), "captured here"}};
    finding.witness = {.kind = WitnessKind::Replay,
                       .tasks = {site_reference(context_, wiring, site)}};
    finding.help.text = fmt::format("make the {} contiguous inside the module", end);
    out_.keep(std::move(finding));
  }

  const Context& context_;
  Diagnostics& out_;
  std::set<const Module*> judged_;
};

}  // namespace

void strides_lost(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  if (!view.declared() || view.kind() != PlanKind::Te) return;
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

// A rank's buffers and weights fit into the budget that was declared for it.
//
// Counted are the buffers of the plan at its peak and the weights that modules declare; not
// optimizer states, workspaces, or what the allocator loses. Needs the sizes of all layers, and
// warns where they are not declared. One finding for each rank.

void over_budget(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  const auto budget = context.options().plan.budget;
  if (!view.declared() || !budget) return;
  if (!view.table().sized()) {
    out.add({.rule = "B08",
             .family = Family::Buffers,
             .severity = Severity::Warning,
             .message = fmt::format("the budget of {} cannot be held against sizes that nobody "
                                    "declared",
                                    byte_words(*budget)),
             .help = {.text = "declare the bytes, or shapes and types, of all layers in model.json",
                      .edits = {}}});
    return;
  }
  const Wiring& wiring = *context.wirings().front();
  for (std::size_t r = 0; r < view.plan().ranks.size(); ++r) {
    const RankMemory& memory = view.plan().ranks[r];
    const std::int64_t needed = memory.peak() + memory.weights;
    if (needed <= *budget || !out.wants("B08")) continue;
    const Site site{.rank = static_cast<std::int32_t>(r), .entry = memory.peak_entry};
    const OrderView& order = context.order_of(wiring, site.rank);
    Diagnostic finding{.rule = "B08", .family = Family::Buffers};
    finding.message = fmt::format(
        "rank {} needs {} at {}, more than the budget of {}: {} of buffers and {} of weights", r,
        byte_words(needed),
        site_name(context, wiring, {site.rank, site.entry, order.entries[site.entry].kind}),
        byte_words(*budget), byte_words(memory.peak()), byte_words(memory.weights));
    finding.labels = {{order.entries[site.entry].span(), "the peak is reached here"}};
    finding.witness = {
        .kind = WitnessKind::Replay,
        .tasks = {site_reference(context, wiring,
                                 {site.rank, site.entry, order.entries[site.entry].kind})}};
    const std::int64_t least = view.memory()[r].lower_bound + memory.weights;
    finding.notes.push_back(
        {.text = fmt::format("no plan without hazards takes less than {} for this order",
                             byte_words(least)),
         .span = std::nullopt});
    if (least <= *budget && view.kind() == PlanKind::Te) {
      finding.help.text = "capo's own plan may fit: --plan safe";
    } else {
      finding.help.text = "fewer microbatches in flight, or smaller ones";
    }
    out.keep(std::move(finding));
  }
}

// Two uses of the same memory, one of them a write, are ordered by streams and events.
//
// What is over before what is known from one clock a stream: the order of a stream, and the events
// between streams. A race may come out right; nothing says that it will.

void slot_race(const Context& context, Diagnostics& out) {
  const PlanView& view = context.plan_view();
  for (const JudgedHazard& hazard : view.hazards()) {
    // A send that may still read is no race, but B04's.
    if (hazard.hazard.race) report_hazard(context, view, hazard, "E01", Family::Streams, out);
  }
}

}  // namespace capo::rules
