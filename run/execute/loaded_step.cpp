#include "run/execute/loaded_step.h"

#include "core/plan/accesses.h"

#include <fmt/format.h>

#include <map>

namespace capo::run {

TeSamples te_samples(const PlannedStep& step) {
  TeSamples samples;
  const BufferTable& table = step.view().table();
  const Plan& plan = step.view().plan();
  if (plan.kind != PlanKind::Te) return samples;
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    std::map<std::int64_t, const Module*> first;  // by address: the first to use it
    for (const Work& work : step.captured().work[r]) {
      if (work.kind == Kind::BackwardWeight) continue;
      for_each_layer(table, rank, work, [&](std::int32_t layer) {
        const Module* module = table.facts(rank, work.chunk, layer).module;
        const bool forward = work.kind == Kind::Forward;
        const BufferId buffer =
            table.id(rank, work.chunk, layer, work.microbatch,
                     forward ? BufferKind::StaticInput : BufferKind::GradOutput);
        const Module* owner = first.try_emplace(plan.address[buffer], module).first->second;
        if (forward && !owner->flags.input_requires_grad && module->flags.input_requires_grad) {
          samples.without_gradient.insert(buffer);
        }
        if (!forward && owner->output_position != module->output_position) {
          samples.zeros.insert(buffer);
        }
      });
    }
  }
  return samples;
}

LentPlaces places_lent(Engine& engine, const PlannedStep& step) {
  LentPlaces lent;
  const BufferTable& table = step.view().table();
  for (const JudgedHazard& judged : step.view().hazards()) {
    const Buffer& victim = judged.hazard.victim;
    if (victim.kind != BufferKind::Activations || !is_backward(judged.hazard.reader.kind)) continue;
    const BufferId kept =
        table.id(victim.rank, victim.chunk, victim.layer, victim.microbatch, victim.kind);
    std::byte*& place = lent[kept];
    if (place == nullptr) place = engine.allocate(table.bytes(kept), "kept memory that is lent");
  }
  return lent;
}

std::vector<Message> messages_of(const Program& program, const BufferTable& table,
                                 const StepLayers& layers) {
  std::vector<Message> messages;
  for (const Transfer& transfer : program.transfers) {
    Message& message =
        messages.emplace_back(Message{.channel = transfer.channel, .number = transfer.number});
    if (transfer.from == kNoBuffer) continue;
    const Buffer from = table.at(transfer.from);
    const LayerShape& shape = layers.at(from.rank, from.chunk, from.layer).shape;
    message.bytes = transfer.way == Way::Forward ? output_bytes(shape) : input_row_bytes(shape);
  }
  return messages;
}

std::string name_of(std::int32_t rank, const Work& work) {
  const char* letter = work.kind == Kind::Forward          ? "F"
                       : work.kind == Kind::BackwardWeight ? "W"
                       : work.kind == Kind::BackwardInput  ? "I"
                                                           : "B";
  const std::string layer = work.layer == kAllLayers ? "" : fmt::format("layer {} of ", work.layer);
  return fmt::format("{} of {}chunk {}, microbatch {} of rank {}", letter, layer, work.chunk,
                     work.microbatch, rank);
}

}  // namespace capo::run
