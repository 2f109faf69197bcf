#include "core/rules/hazard_words.h"

#include "core/base/assert.h"
#include "core/rules/words.h"
#include "core/text/action_token.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::rules {

namespace {

const Entry& entry_of(const Context& context, const Wiring& wiring, const MemoryUser& user) {
  return context.order_of(wiring, user.rank).entries[user.entry];
}

// Whether the entry is the work or receive that writes a buffer, for its chunk and microbatch.
bool writes(const Entry& entry, BufferKind kind) {
  switch (kind) {
    case BufferKind::StaticInput:
    case BufferKind::Output:
    case BufferKind::Activations:
    case BufferKind::QuantizedWeight:
      return entry.kind == Kind::Forward;
    case BufferKind::GradOutput:
    case BufferKind::GradInput:
    case BufferKind::Operands:
      return is_backward(entry.kind);
    case BufferKind::Scratch:
      return entry.kind == Kind::BackwardWeight;
    case BufferKind::ReceivedActivation:
      return entry.kind == Kind::ReceiveForward;
    case BufferKind::ReceivedGradient:
      return entry.kind == Kind::ReceiveBackward;
  }
  CAPO_UNREACHABLE();
}

// The receive that capo added for the work that reads a buffer.
MemoryUser added_receive(const OrderView& order, const Buffer& buffer) {
  const bool activation = buffer.kind == BufferKind::ReceivedActivation;
  const auto found =
      std::find_if(order.entries.begin(), order.entries.end(), [&](const Entry& entry) {
        // Its forward is the first that there is of a microbatch.
        return entry.chunk == buffer.chunk && entry.microbatch == buffer.microbatch &&
               (activation || is_backward(entry.kind));
      });
  CAPO_ASSERT(found != order.entries.end(), "what is received is read");
  return {.rank = buffer.rank,
          .entry = static_cast<std::uint32_t>(found - order.entries.begin()),
          .kind = activation ? Kind::ReceiveForward : Kind::ReceiveBackward};
}

MemoryUser origin_of(const Context& context, const Wiring& wiring, const Buffer& buffer) {
  const OrderView& order = context.order_of(wiring, buffer.rank);
  const auto found =
      std::find_if(order.entries.begin(), order.entries.end(), [&](const Entry& entry) {
        return entry.chunk == buffer.chunk && entry.microbatch == buffer.microbatch &&
               writes(entry, buffer.kind);
      });
  if (found == order.entries.end()) {
    CAPO_ASSERT(is_received(buffer.kind), "what is read has been written");
    return added_receive(order, buffer);
  }
  return {.rank = buffer.rank,
          .entry = static_cast<std::uint32_t>(found - order.entries.begin()),
          .kind = found->kind};
}

std::string condition(const PlanView& view, const JudgedHazard& judged) {
  std::string text;
  if (!view.declared()) text = "under TransformerEngine's reuse of buffers, ";
  if (judged.unsure) {
    text += judged.kind == HazardKind::StaticInput ? "if the module reads the input itself there, "
                                                   : "if the module reads the incoming gradient "
                                                     "itself there, ";
  }
  return text;
}

std::string_view why(const PlanView& view, const JudgedHazard& judged) {
  if (view.kind() == PlanKind::McoreLocal) {
    return "Megatron captures its local graphs into one pool, in the order in which the first step "
           "ran them; which free block a graph takes is up to PyTorch's allocator, and taken here "
           "is the tightest (docs/model.md)";
  }
  if (view.kind() != PlanKind::Te) return "";
  if (judged.hazard.victim.kind == BufferKind::GradInput) {
    return "TransformerEngine frees a grad input when the next backward of any chunk is captured; "
           "which block is taken then is up to PyTorch's allocator, and the worst is assumed: this "
           "one (docs/model.md)";
  }
  switch (judged.kind) {
    case HazardKind::StaticInput:
      return "TransformerEngine frees a static input at its backward, not at its weight gradient; "
             "the next forward of the same signature takes the oldest that is free";
    case HazardKind::GradOutput:
      return "TransformerEngine has one static gradient for each signature of outputs; every "
             "backward copies its own into it";
    case HazardKind::Pool:
    case HazardKind::P2pWindow:
      return "which block is taken is up to PyTorch's allocator; taken here is the one freed last "
             "(docs/model.md)";
  }
  CAPO_UNREACHABLE();
}

// Whether the two run in one composite, so that neither can wait for the other. A receive has the
// entry that it was added for.
bool in_one_composite(const Context& context, const JudgedHazard& judged) {
  const MemoryUser& writer = judged.hazard.writer;
  const MemoryUser& reader = judged.hazard.reader;
  return writer.rank == reader.rank && writer.entry != reader.entry &&
         words::run_together(context.order_of(*judged.wiring, writer.rank), writer.entry,
                             reader.entry);
}

// Whether Megatron's other calls would help, since nobody can add a wait to its runtime. Between
// two ranks fused calls meet the wrong messages (T08).
bool fused_calls_help(const JudgedHazard& judged) {
  const Wiring& wiring = *judged.wiring;
  return is_send(judged.hazard.reader.kind) && wiring.by_megatron() &&
         wiring.environment().p2p != MegatronCalls::Batch && wiring.schedule().ranks.size() > 2;
}

std::string cure(const Context& context, const PlanView& view, const JudgedHazard& judged) {
  const Wiring& wiring = *judged.wiring;
  if (judged.by_replay) return "replay in the order of capture, or capture in the order of replay";
  const std::string writer = memory_user_name(context, wiring, judged.hazard.writer);
  if (judged.hazard.window) return fmt::format("wait for the send before {}", writer);
  const std::string reader = memory_user_name(context, wiring, judged.hazard.reader);
  const bool given = view.kind() == PlanKind::Given;
  const bool can_wait = !given || !in_one_composite(context, judged);
  if (judged.hazard.race && can_wait) {
    return fmt::format("let {} wait for {}{}", writer, reader,
                       fused_calls_help(judged)
                           ? "; Megatron waits at once for fused calls (its "
                             "--no-overlap-p2p-communication, here `--p2p batch`)"
                           : "");
  }
  if (given) return "let the plan give the two buffers memory of their own";
  if (judged.hazard.victim.kind == BufferKind::GradInput) {
    const std::string maker =
        memory_user_name(context, wiring, origin_of(context, wiring, judged.hazard.victim));
    if (judged.kind == HazardKind::P2pWindow) {
      return fmt::format("send it right behind {}, and let {} wait for that", maker, writer);
    }
    return fmt::format("let {} come before the next backward behind {}", reader, maker);
  }
  return fmt::format("move {} before {}", reader, writer);
}

}  // namespace

Severity severity_of(const PlanOptions& options, const PlanView& view, const JudgedHazard& judged) {
  // A given plan is sound only if nobody can be hurt, whatever modules read.
  if (view.kind() == PlanKind::Given) return Severity::Error;
  if (!view.declared() || judged.unsure) return Severity::Warning;
  return judged.possible && !options.possible_is_error ? Severity::Warning : Severity::Error;
}

std::string buffer_name(const Context& context, const PlanView& view, const Buffer& buffer) {
  const Wiring& wiring = *context.wirings().front();
  const OrderView& order = context.order_of(wiring, buffer.rank);
  std::string text =
      fmt::format("the {} of {}", name_of(buffer.kind), words::part(context, order, buffer.chunk));
  if (view.table().layers(buffer.rank, buffer.chunk) > 1) {
    text += fmt::format(", layer {}", buffer.layer);
  }
  return text + fmt::format(", microbatch {}", buffer.microbatch);
}

std::string memory_user_name(const Context& context, const Wiring& wiring, const MemoryUser& user) {
  const OrderView& order = context.order_of(wiring, user.rank);
  const std::string placed = words::placed(context, order, user.entry);
  const bool added = is_transfer(user.kind) && !is_transfer(entry_of(context, wiring, user).kind);
  if (!added) return placed;
  return (is_send(user.kind) ? "the send of " : "the receive for ") + placed;
}

WitnessEntry memory_user_reference(const Context& context, const Wiring& wiring,
                                   const MemoryUser& user) {
  WitnessEntry reference =
      words::reference(context, context.order_of(wiring, user.rank), user.entry);
  Action action = entry_of(context, wiring, user).action();
  action.kind = user.kind;
  reference.action = action_name(action);
  return reference;
}

Span memory_user_span(const Context& context, const Wiring& wiring, const MemoryUser& user) {
  return entry_of(context, wiring, user).span();
}

void report_hazard(const Context& context, const PlanView& view, const JudgedHazard& judged,
                   Findings& out) {
  const Severity severity = severity_of(context.options().plan, view, judged);
  const Hazard& hazard = judged.hazard;
  const Wiring& wiring = *judged.wiring;
  const auto place = [&] { return memory_user_span(context, wiring, hazard.reader); };
  if (!out.found_at(place, severity)) return;
  const std::string reader = memory_user_name(context, wiring, hazard.reader);
  const std::string writer = memory_user_name(context, wiring, hazard.writer);
  const std::string victim = buffer_name(context, view, hazard.victim);
  const bool allocated = view.kind() == PlanKind::McoreLocal ||
                         (view.kind() == PlanKind::Te && (judged.kind == HazardKind::Pool ||
                                                          judged.kind == HazardKind::P2pWindow));

  Diagnostic finding{.severity = severity};
  std::string message = condition(view, judged);
  if (hazard.window) {
    const std::string end = hazard.reader == hazard.writer ? "that" : reader;
    message += fmt::format(
        "{} may be overwritten by {}, and its send is over for certain only at the end of {}",
        victim, writer, end);
  } else if (hazard.race) {
    message += fmt::format("{} reads {} while {} may overwrite it: nothing orders the two", reader,
                           victim, writer);
  } else {
    message += fmt::format("{} reads {}, which {} {} overwritten", reader, victim, writer,
                           allocated ? "may have" : "has");
  }
  if (allocated) message += " (possible: it depends on the allocator)";
  finding.message = std::move(message);
  finding.labels.push_back({memory_user_span(context, wiring, hazard.reader),
                            hazard.window                 ? "the send is over here"
                            : is_send(hazard.reader.kind) ? "it is sent here"
                                                          : "it is read here"});
  finding.labels.push_back(
      {memory_user_span(context, wiring, hazard.writer),
       fmt::format("its memory goes to {}",
                   buffer_name(context, view, view.table().at(hazard.taker)))});
  finding.witness.kind = WitnessKind::Replay;
  // One piece of work writes and reads what a weight gradient takes for itself.
  const MemoryUser origin = origin_of(context, wiring, hazard.victim);
  if (origin != hazard.reader) {
    finding.labels.push_back({memory_user_span(context, wiring, origin), "it is written here"});
  }
  finding.witness.tasks.push_back(memory_user_reference(context, wiring, origin));
  finding.witness.tasks.push_back(memory_user_reference(context, wiring, hazard.writer));
  finding.witness.tasks.push_back(memory_user_reference(context, wiring, hazard.reader));
  if (const auto reason = why(view, judged); !reason.empty()) {
    finding.notes.push_back({.text = std::string(reason), .span = std::nullopt});
  }
  finding.help.text = cure(context, view, judged);
  out.report(std::move(finding));
}

}  // namespace capo::rules
