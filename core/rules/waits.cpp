// The rules about waits that an order writes: each is for a send or a reduction that is pending,
// and what one order waits for no other leaves pending.
//
//   0F0,0SEND_F0,0WAIT_SEND_F1      there is no send of microbatch 1 to wait for: T11
//   rank 0: F1.0 B1.0 reduce1 F2.0  the optimizer may read what reduce1 has yet to write: G17
//
// PyTorch 2.15 writes such waits, and refuses any table in which the two do not match one to one.
// Here only that is an error which goes wrong when the step runs: an order without any wait leaves
// waiting to whoever runs it, and that several chunks of a rank are reduced at once, or give up
// their parameters meanwhile, harms nobody. A wait that its own rank keeps from being served is
// deadlock's. Tested by waits_test.cpp and tests/corpus/rules/T11, T12, G16 and G17.

#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capo::rules {

namespace {

Action send_waited_for(const Step& wait) {
  return {.kind = wait.kind == Kind::WaitSendForward ? Kind::SendForward : Kind::SendBackward,
          .chunk = wait.chunk,
          .microbatch = wait.microbatch};
}

Action wait_for(const Step& send) {
  return {.kind = send.kind == Kind::SendForward ? Kind::WaitSendForward : Kind::WaitSendBackward,
          .chunk = send.chunk,
          .microbatch = send.microbatch};
}

// The sends of one rank and the waits for them, by the send's name.
struct Waited {
  TaskId send = kNoTask;
  std::vector<TaskId> waits;
};
using SendsOfARank = std::map<Action, Waited>;

SendsOfARank sends_of_rank(const Wiring& wiring, std::size_t rank) {
  SendsOfARank sends;
  TaskId task = wiring.transfers().graph.first_of[rank];
  for (const Step& step : wiring.lowered().ranks[rank]) {
    if (is_send(step.kind))
      sends[{step.kind, step.chunk, step.microbatch}].send = task;
    else if (is_send_wait(step.kind))
      sends[send_waited_for(step)].waits.push_back(task);
    ++task;
  }
  return sends;
}

// Calls visit(action, waited) for each send of each rank that is there or waited for; not for those
// of a rank whose order was judged before.
template <typename Visit>
void for_each_send(const Context& context, const Wiring& wiring, Visit visit) {
  for (std::size_t r = 0; r < wiring.schedule().ranks.size(); ++r) {
    if (context.judged_before(wiring, {static_cast<std::int32_t>(r)})) continue;
    for (const auto& [send, waited] : sends_of_rank(wiring, r)) visit(send, waited);
  }
}

Diagnostic without_send(const Context& context, const Wiring& wiring, const Action& send,
                        TaskId wait) {
  const TaskGraph& graph = wiring.transfers().graph;
  const OrderView& order = context.order_of(wiring, graph.tasks[wait].rank);
  return {.message =
              fmt::format("{} waits for ever: there is no `{}`{}",
                          words::task_placed(context, wiring, graph, wait),
                          words::entry_text(context, order, send), words::on_order(context, order)),
          .labels = {{words::task_span(context, wiring, graph, wait), ""}},
          .help = {.text = "remove it, or correct its stage or microbatch"},
          .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries, {wait})};
}

Diagnostic waited_again(const Context& context, const Wiring& wiring, const Waited& waited,
                        TaskId again) {
  const TaskGraph& graph = wiring.transfers().graph;
  const TaskId first = waited.waits.front();
  return {
      .message = fmt::format(
          "{} has no send to wait for: {} is waited for once already",
          words::task_placed(context, wiring, graph, again),
          words::task_name(context, wiring, graph, waited.send, graph.tasks[again].rank)),
      .labels = {{words::task_span(context, wiring, graph, again), "again"},
                 {words::task_span(context, wiring, graph, first), "waited for here already"}},
      .help = {.text = "remove one of the two; is another microbatch meant?"},
      .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries, {again, first})};
}

// A wait is for a send of its rank, and no other wait is for the same one.
//
//   0F0,0SEND_F0,0WAIT_SEND_F1      nobody makes what it waits for, so the rank waits for ever
//
// A second wait finds no send pending: PyTorch's runtime stops there in the middle of the step. If
// the send comes behind its wait, deadlock says so.
void wait_without_send(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->waits_for_sends()) continue;
    for_each_send(context, *wiring, [&](const Action& send, const Waited& waited) {
      for (std::size_t k = waited.send == kNoTask ? 0 : 1; k < waited.waits.size(); ++k) {
        if (!out.found()) continue;
        out.report(waited.send == kNoTask
                       ? without_send(context, *wiring, send, waited.waits[k])
                       : waited_again(context, *wiring, waited, waited.waits[k]));
      }
    });
  }
}

// The first wait for a send of the step.
TaskId first_wait_for_a_send(const Wiring& wiring) {
  const TaskList& tasks = wiring.transfers().graph.tasks;
  TaskId first = 0;
  while (first < tasks.size() && !is_send_wait(tasks[first].kind)) ++first;
  return first;
}

Diagnostic never_waited_for(const Context& context, const Wiring& wiring, TaskId send,
                            TaskId other) {
  const TaskGraph& graph = wiring.transfers().graph;
  const Task& task = graph.tasks[send];
  const OrderView& order = context.order_of(wiring, task.rank);
  const Action wait = wait_for(step_of(wiring.lowered(), task));
  const std::size_t last = order.entries.size() - 1;
  return {
      .message = fmt::format("{} is never waited for: nobody learns when its memory is free",
                             words::task_placed(context, wiring, graph, send)),
      .labels = {{words::task_span(context, wiring, graph, send), "still under way at the end"},
                 {words::task_span(context, wiring, graph, other), "other sends are waited for"}},
      .help = {.text = fmt::format("add `{}` behind it, at the latest at the end",
                                   words::entry_text(context, order, wait)),
               .edits = words::insert_after(context, order, last, wait)},
      .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries, {send})};
}

// If one send is waited for, every send is.
//
//   0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F0     the step ends while SEND_F1 reads its output, which
//                                               the next step writes
//
// An order without any wait leaves waiting to whoever runs it, as PyTorch 2.11 did at the end of
// the step. Megatron's calls wait by themselves.
void send_without_wait(const Context& context, Findings& out) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->waits_for_sends() || wiring->by_megatron()) continue;
    const TaskId other = first_wait_for_a_send(*wiring);
    for_each_send(context, *wiring, [&](const Action&, const Waited& waited) {
      if (waited.send == kNoTask || !waited.waits.empty() || !out.found()) return;
      out.report(never_waited_for(context, *wiring, waited.send, other));
    });
  }
}

// The reductions of one chunk, as its order begins them and waits for them.
struct Reductions {
  std::vector<std::size_t> pending;   ///< begun and not waited for
  std::optional<std::size_t> waited;  ///< the latest wait
};

struct OfReductions {
  std::map<ChunkId, Reductions> chunks;
  /// Waits for which no reduction was pending, each with the wait before it, if there is one.
  std::vector<std::pair<std::size_t, std::optional<std::size_t>>> unserved;
};

OfReductions reductions_of(const OrderView& order) {
  OfReductions all;
  for (std::size_t at = 0; at < order.entries.size(); ++at) {
    const Entry& entry = order.entries[at];
    if (entry.kind == Kind::ReduceGradient) all.chunks[entry.chunk].pending.push_back(at);
    if (entry.kind != Kind::WaitReduceGradient) continue;
    Reductions& of = all.chunks[entry.chunk];
    if (of.pending.empty()) {
      all.unserved.emplace_back(at, of.waited);
    } else {
      of.pending.erase(of.pending.begin());
      of.waited = at;
    }
  }
  return all;
}

Diagnostic no_reduction(const Context& context, const OrderView& order, std::size_t at,
                        std::optional<std::size_t> before) {
  const Entry& wait = order.entries[at];
  const Action reduce{.kind = Kind::ReduceGradient, .chunk = wait.chunk};
  const std::size_t later = order.find_last(Kind::ReduceGradient, wait.chunk);
  const bool ahead = later < order.entries.size() && later > at;
  Diagnostic finding{
      .message = fmt::format("{} waits for a reduction that {}", words::placed(context, order, at),
                             ahead    ? "begins behind it only"
                             : before ? "has been waited for already"
                                      : "is not there"),
      .labels = {{wait.span(), ""}},
      .witness = words::entries(context, order, {at})};
  if (ahead) {
    finding.labels.push_back({order.entries[later].span(), "begins here"});
    finding.help.text =
        fmt::format("move it behind {}", words::quoted(context, order.entries[later]));
  } else if (before) {
    finding.labels.push_back({order.entries[*before].span(), "waited for here already"});
    finding.help.text = "remove one of the two";
  } else {
    finding.help.text =
        fmt::format("add `{}` before it, or remove it", words::entry_text(context, order, reduce));
  }
  return finding;
}

// A wait for a reduction has one of its chunk before it that nobody has waited for yet.
//
//   rank 0: F1.0 B1.0 wait-reduce1 reduce1     it waits for what the rank itself begins later
void wait_without_reduction(const Context& context, Findings& out) {
  for (const OrderView& order : context.orders()) {
    for (const auto& [at, before] : reductions_of(order).unserved) {
      if (out.found()) out.report(no_reduction(context, order, at, before));
    }
  }
}

struct PlacedWait {
  const OrderView* order;
  std::size_t at;
};

std::optional<PlacedWait> first_wait_for_a_reduction(const Context& context) {
  for (const OrderView& order : context.orders()) {
    for (std::size_t at = 0; at < order.entries.size(); ++at) {
      if (order.entries[at].kind == Kind::WaitReduceGradient) return PlacedWait{&order, at};
    }
  }
  return std::nullopt;
}

Diagnostic unawaited(const Context& context, const OrderView& order, std::size_t at,
                     const PlacedWait& other) {
  const Entry& reduction = order.entries[at];
  const Action wait{.kind = Kind::WaitReduceGradient, .chunk = reduction.chunk};
  return {.message = fmt::format(
              "{} is never waited for: the optimizer may read the gradients of {} "
              "before they are summed",
              words::placed(context, order, at), words::part(context, order, reduction.chunk)),
          .labels = {{reduction.span(), "still under way at the end"},
                     {other.order->entries[other.at].span(), "another is waited for"}},
          .help = {.text = fmt::format("add `{}` behind it, at the latest at the end",
                                       words::entry_text(context, order, wait)),
                   .edits = words::insert_after(context, order, at, wait)},
          .witness = words::entries(context, order, {at})};
}

// If one reduction is waited for, every reduction is.
//
//   rank 0: F1.0 B1.0 reduce1                  the step ends, and the optimizer reads what reduce1
//   rank 1: F1.0 B1.0 reduce1 wait-reduce1     has not summed yet
//
// The wait is what makes the gradient readable, and where PyTorch divides it by the number of
// microbatches. Two reductions of one chunk are reduce_twice's, pending or not.
void reduction_without_wait(const Context& context, Findings& out) {
  const std::optional<PlacedWait> other = first_wait_for_a_reduction(context);
  if (!other) return;
  for (const OrderView& order : context.orders()) {
    for (const auto& [chunk, of] : reductions_of(order).chunks) {
      for (const std::size_t at : of.pending) {
        if (out.found()) out.report(unawaited(context, order, at, *other));
      }
    }
  }
}

constexpr Rule kSendWaitRules[] = {
    {"T11", "wait-without-send", "a wait for a send that is not there", Family::Transfers,
     Pass::Transfers, wait_without_send},
    {"T12", "send-without-wait", "a send that nobody waits for", Family::Transfers, Pass::Transfers,
     send_without_wait},
};

constexpr Rule kReductionWaitRules[] = {
    {"G16", "wait-without-reduction", "a wait for a reduction that is not pending",
     Family::Gradients, Pass::Gradients, wait_without_reduction},
    {"G17", "reduction-without-wait", "a reduction that nobody waits for", Family::Gradients,
     Pass::Gradients, reduction_without_wait},
};

}  // namespace

std::span<const Rule> send_wait_rules() {
  return kSendWaitRules;
}

std::span<const Rule> reduction_wait_rules() {
  return kReductionWaitRules;
}

}  // namespace capo::rules
