// The parts of a step at which rows or gradients of several ranks come together, of stepper.h:
// exchanges, crossings and reductions. Rows of a rank alone are permuted here as well.

#include "run/execute/stepper.h"

#include <cstddef>
#include <vector>

namespace capo::run {

void Stepper::move_rows(const OpPart& part, StreamId stream) {
  const StepInputs::Route& route = loaded_.inputs.route(part.to);
  const bool out = part.kind == OpPart::Kind::Permute;
  const std::byte* from = out ? origin_of(part, part.origin) : route.back;
  std::byte* to = out                      ? route.rows
                  : part.from == kNoBuffer ? route.returned
                                           : memory_.at(part.from);
  launch(stream, Gather{.rows = route.row_count,
                        .row_bytes = route.row_bytes,
                        .index = out ? route.index : route.inverse,
                        .from = from,
                        .to = to});
  if (takes_from_buffer(part)) drop(part.origin.id, stream);
}

// Results of experts have come back from all ranks, or are still where they were made if there are
// no others; they go there in the order of the rows that they are of. Late readers are compared
// with that.
void Stepper::bring_back(const OpPart& part, StreamId stream) {
  const Exchange& exchange = program_.exchanges[part.to];
  const StepInputs::Route& route = loaded_.inputs.route(part.to);
  std::byte* const place = made_by_experts(exchange);
  if (!exchange.crosses()) {
    launch(stream,
           Copy{.bytes = route.row_count * route.row_bytes_back, .from = place, .to = route.back});
  }
  launch(stream, Gather{.rows = route.row_count,
                        .row_bytes = route.row_bytes_back,
                        .index = route.inverse,
                        .from = route.back,
                        .to = place});
  const BufferId buffer = exchange.comes_back_into();
  if (buffer == kNoBuffer) return;
  if (late_ != nullptr && memory_.intact(buffer)) late_->keep(buffer, place, stream);
  drop(buffer, stream);
}

std::byte* Stepper::made_by_experts(const Exchange& exchange) const {
  return exchange.rows == Exchange::Rows::LeavingExperts ? outputs_.collected(exchange.cell)
                                                         : memory_.at(exchange.made);
}

// Each member of another process sends its gradients here, and those of this one go there.
void Stepper::bring_together(std::uint32_t reduction, StreamId stream) {
  if (loaded_.sent_gradients.empty()) return;
  const std::vector<SentGradient>& all = loaded_.sent_gradients[reduction];
  for (const SentGradient& one : all) {
    if (!one.end || broken()) continue;
    *one.end == End::Send ? loaded_.transport.send(stream, one.message, one.gradient)
                          : loaded_.transport.receive(stream, one.message);
  }
  for (const SentGradient& one : all) {
    if (one.end && !broken()) loaded_.transport.finish(stream, one.message, *one.end);
  }
}

// All blocks begin before any is over, as members of one group. Eager execution over processes
// comes here for each process that has members, one right after the other, and moves the same
// again.
void Stepper::cross(const std::vector<SentBlock>& blocks, Mode mode, StreamId stream) {
  Transport& through = transport(mode);
  const auto here = [&](std::int32_t rank) {
    return mode == Mode::Eager || loaded_.own.contains(rank);
  };
  const auto from = [&](const SentBlock& block) -> const std::byte* {
    if (block.from != nullptr) return block.from;
    return made_by_experts(program_.exchanges[block.there]) + block.offset;
  };
  for (const SentBlock& block : blocks) {
    const auto& [sender, receiver, communicator] = block.message.channel;
    if (broken()) return;
    if (block.stays()) {
      if (here(sender)) {
        launch(stream, Copy{.bytes = block.message.bytes, .from = from(block), .to = block.to});
      }
      continue;
    }
    if (here(sender)) through.send(stream, block.message, from(block));
    if (here(receiver) && !broken()) through.receive(stream, block.message);
  }
  for (const SentBlock& block : blocks) {
    const auto& [sender, receiver, communicator] = block.message.channel;
    if (block.stays()) continue;
    if (here(sender) && !broken()) through.finish(stream, block.message, End::Send);
    if (here(receiver) && !broken()) through.finish(stream, block.message, End::Receive);
  }
}

void Stepper::reduce(const Reduction& reduction, StreamId stream) {
  for (const auto& of_ranks : reduced_parameters(loaded_.layers, loaded_.table(), reduction)) {
    sum_up(loaded_.engine, stream, gradients_to_sum(loaded_.layers, deposits_, outputs_, of_ranks));
  }
}

}  // namespace capo::run
