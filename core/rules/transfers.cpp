// The rules about each transfer: that it has another end, and that both come when they should.
//
//   0F0,0SEND_F0 | 1F0      nobody receives what rank 0 sends: T03
//
// Each reports one kind of fault that wiring the transfers has found (core/graph). Whether all of
// them finish together is for deadlock.cpp. Tested by transfers_test.cpp and tests/corpus/rules/T01
// to T08 and T13.

#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/findings.h"
#include "core/rules/task_words.h"
#include "core/rules/wiring.h"
#include "core/rules/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>

namespace capo::rules {

namespace {

// The action that would be the other end of a transfer.
Action missing_partner(const Wiring& wiring, const Task& transfer) {
  return {.kind = other_end(transfer.kind),
          .chunk = wiring.map().home(wiring.map().neighbour(transfer.kind, transfer.stage)).chunk,
          .microbatch = transfer.microbatch};
}

// The rank at the other end of a transfer, or the one that makes what a computation reads; -1 if
// there is none.
std::int32_t peer_of(const Wiring& wiring, const Task& task) {
  const StageId stage = wiring.map().neighbour(task.kind, task.stage);
  if (stage == kNoStage) return -1;
  return wiring.map().home(stage).rank;
}

// Whether the orders as captured, which are judged first, have the fault too.
bool is_of_capture(const Context& context, const Wiring& wiring, const TransferFault& fault) {
  using enum TransferFault::Kind;
  CAPO_ASSERT(fault.kind != CollectiveOrder, "it concerns more ranks than two");
  const Task& task = wiring.transfers().graph.tasks[fault.task];
  const bool local = fault.kind == Repeated || fault.kind == Nowhere ||
                     fault.kind == SendTooEarly || fault.kind == ReceiveTooLate;
  if (local) return context.judged_before(wiring, {task.rank});
  return context.judged_before(wiring, {task.rank, peer_of(wiring, task)});
}

// Calls visit(wiring, graph, fault) for every fault of `kind`, that of a capture order once.
template <typename Visit>
void for_each_fault(const Context& context, TransferFault::Kind kind, Visit visit) {
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_in_doubt()) continue;
    const WiredTransfers& wired = wiring->transfers();
    for (const TransferFault& fault : wired.faults) {
      if (fault.kind == kind && !is_of_capture(context, *wiring, fault)) {
        visit(*wiring, wired.graph, fault);
      }
    }
  }
}

// A transfer happens once.
//
//   1RECV_F0,1F0,1RECV_F0   the second receive waits for a send that never comes, or, worse, takes
//                           the next message; PyTorch's simulator accepts it
void transfer_twice(const Context& context, Findings& out) {
  for_each_fault(
      context, TransferFault::Kind::Repeated,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.found()) return;
        out.report({.message = fmt::format("{} is the same transfer a second time",
                                           words::task_placed(context, wiring, graph, fault.task)),
                    .labels = {{words::task_span(context, wiring, graph, fault.task), "again"},
                               {words::task_span(context, wiring, graph, fault.other),
                                "it is done here already"}},
                    .help = {.text = "remove one of the two; is another microbatch meant?"},
                    .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries,
                                                   {fault.other, fault.task})});
      });
}

void report(const Context& context, const Wiring& wiring, const TaskGraph& graph, TaskId task,
            const std::string& reason, Findings& out) {
  if (!out.found()) return;
  out.report(
      {.message = fmt::format("{} has no other end: {}",
                              words::task_placed(context, wiring, graph, task), reason),
       .labels = {{words::task_span(context, wiring, graph, task), ""}},
       .help = {.text = "remove it"},
       .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries, {task})});
}

std::string reason_of(const Wiring& wiring, const Task& task) {
  const std::int32_t peer = peer_of(wiring, task);
  if (peer == task.rank)
    return fmt::format("the stage at its other end is on rank {} as well", peer);
  const bool down = task.kind == Kind::SendBackward || task.kind == Kind::ReceiveForward;
  return fmt::format("stage {} is the {}", task.stage, down ? "first" : "last");
}

// A microbatch that nothing computes; where their number is declared, a rule of shape has said so.
bool is_beyond(const Context& context, const Wiring& wiring, const Task& task) {
  const std::int32_t peer = peer_of(wiring, task);
  return is_transfer(task.kind) && task.microbatch >= context.microbatches() && peer >= 0 &&
         peer != task.rank && !context.judged_before(wiring, {task.rank});
}

// A transfer goes to another rank that holds the stage at its other end.
//
//   3 stages:  2SEND_F0     stage 2 is the last: nobody reads its output
//
// It carries a microbatch that the step has, too.
void transfer_nowhere(const Context& context, Findings& out) {
  for_each_fault(context, TransferFault::Kind::Nowhere,
                 [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
                   report(context, wiring, graph, fault.task,
                          reason_of(wiring, graph.tasks[fault.task]), out);
                 });
  const std::string beyond = fmt::format(
      "the step has {} ({})", counted(context.microbatches(), "microbatch", "microbatches"),
      numbered(context.microbatches()));
  for (const auto& wiring : context.wirings()) {
    if (!wiring->transfers_in_doubt()) continue;
    const TaskGraph& graph = wiring->transfers().graph;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      if (is_beyond(context, *wiring, graph.tasks[id]))
        report(context, *wiring, graph, id, beyond, out);
    }
  }
}

// The computation that lacks what the send brings.
TaskId reader_of(const std::vector<TransferFault>& faults, TaskId send) {
  const auto lacks = std::find_if(faults.begin(), faults.end(), [&](const TransferFault& fault) {
    return fault.kind == TransferFault::Kind::NotReceived && fault.other == send;
  });
  CAPO_ASSERT(lacks != faults.end(), "what nobody receives somebody lacks");
  return lacks->task;
}

// Every send has its receive.
//
//   0F0,0SEND_F0 | 1F0      nobody receives: the send waits for ever, or the next receive takes it
//
// The computation that reads what is sent is part of the finding, so that the missing receive is
// one finding and not two.
void send_without_receive(const Context& context, Findings& out) {
  for_each_fault(
      context, TransferFault::Kind::SendWithout,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.found()) return;
        const Task& send = graph.tasks[fault.task];
        const OrderView& there = context.order_of(wiring, peer_of(wiring, send));
        const std::string missing =
            words::entry_text(context, there, missing_partner(wiring, send));
        Diagnostic finding;
        finding.message = fmt::format("{} is never received: there is no `{}`{}",
                                      words::task_placed(context, wiring, graph, fault.task),
                                      missing, words::on_order(context, there));
        finding.labels = {{words::task_span(context, wiring, graph, fault.task), ""}};
        finding.witness =
            words::task_witness(context, wiring, graph, WitnessKind::Entries, {fault.task});
        const TaskId reader = reader_of(wiring.transfers().faults, fault.task);
        finding.labels.push_back(
            {words::task_span(context, wiring, graph, reader), "this reads what is sent"});
        finding.help.text = fmt::format("add `{}` before {}", missing,
                                        words::task_placed(context, wiring, graph, reader));
        out.report(std::move(finding));
      });
}

// Every receive has its send.
//
//   0F0 | 1RECV_F0,1F0      nobody sends: the receive waits for ever
void receive_without_send(const Context& context, Findings& out) {
  for_each_fault(
      context, TransferFault::Kind::ReceiveWithout,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.found()) return;
        const Task& receive = graph.tasks[fault.task];
        const OrderView& there = context.order_of(wiring, peer_of(wiring, receive));
        const std::string missing =
            words::entry_text(context, there, missing_partner(wiring, receive));
        out.report({.message = fmt::format("{} waits for ever: there is no `{}`{}",
                                           words::task_placed(context, wiring, graph, fault.task),
                                           missing, words::on_order(context, there)),
                    .labels = {{words::task_span(context, wiring, graph, fault.task), ""}},
                    .help = {.text = fmt::format("add `{}`{}, or remove the receive", missing,
                                                 words::on_order(context, there))},
                    .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries,
                                                   {fault.task})});
      });
}

// A computation whose input another rank makes receives it.
//
//   0F0 | 1F0               nothing brings the output of stage 0 to rank 1
//
// If the other rank sends it all the same, send_without_receive reports it.
void input_not_received(const Context& context, Findings& out) {
  for_each_fault(
      context, TransferFault::Kind::NotReceived,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (fault.other != kNoTask || !out.found()) return;
        const Task& reader = graph.tasks[fault.task];
        const bool forward = reader.kind == Kind::Forward;
        const StageId maker = wiring.map().neighbour(reader.kind, reader.stage);
        const StageMap::Place& home = wiring.map().home(maker);
        const OrderView& here = context.order_of(wiring, reader.rank);
        const OrderView& there = context.order_of(wiring, home.rank);
        const Action send{.kind = forward ? Kind::SendForward : Kind::SendBackward,
                          .chunk = home.chunk,
                          .microbatch = reader.microbatch};
        const Action receive{.kind = forward ? Kind::ReceiveForward : Kind::ReceiveBackward,
                             .chunk = wiring.map().home(reader.stage).chunk,
                             .microbatch = reader.microbatch};
        out.report(
            {.message = fmt::format(
                 "{} reads {} of stage {}, but there is no `{}`{} and no `{}`{}",
                 words::task_placed(context, wiring, graph, fault.task),
                 forward ? "the output" : "the gradient", maker,
                 words::entry_text(context, there, send), words::on_order(context, there),
                 words::entry_text(context, here, receive), words::on_order(context, here)),
             .labels = {{words::task_span(context, wiring, graph, fault.task), ""}},
             .help = {.text = "add both; an order that writes no transfer at all gets them as "
                              "PyTorch adds them"},
             .witness =
                 words::task_witness(context, wiring, graph, WitnessKind::Entries, {fault.task})});
      });
}

// A transfer that stands on the wrong side of the computation that makes or reads what it carries.
struct Misplaced {
  TransferFault::Kind fault;
  const char* side;   ///< on which it stands
  const char* role;   ///< of the computation
  const char* there;  ///< the label of the computation
  const char* cure;   ///< the side on which it should stand
};
constexpr Misplaced kSendTooEarly{.fault = TransferFault::Kind::SendTooEarly,
                                  .side = "before",
                                  .role = "which makes what it sends",
                                  .there = "what it sends is made here",
                                  .cure = "behind"};
constexpr Misplaced kReceiveTooLate{.fault = TransferFault::Kind::ReceiveTooLate,
                                    .side = "behind",
                                    .role = "which reads what it receives",
                                    .there = "what it receives is read here",
                                    .cure = "before"};

// A send comes after the computation that makes what it sends, and a receive before the computation
// that reads what it receives.
//
//   0SEND_F0,0F0            there is nothing to send yet
//   1F0,1RECV_F0            the forward has nothing to read
template <const Misplaced& kWay>
void report_misplaced(const Context& context, Findings& out) {
  for_each_fault(
      context, kWay.fault,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.found()) return;
        const std::string other =
            words::task_name(context, wiring, graph, fault.other, graph.tasks[fault.other].rank);
        out.report({.message = fmt::format("{} comes {} {}, {}",
                                           words::task_placed(context, wiring, graph, fault.task),
                                           kWay.side, other, kWay.role),
                    .labels = {{words::task_span(context, wiring, graph, fault.task), ""},
                               {words::task_span(context, wiring, graph, fault.other), kWay.there}},
                    .help = {.text = fmt::format("move it {} {}", kWay.cure, other)},
                    .witness = words::task_witness(context, wiring, graph, WitnessKind::Entries,
                                                   {fault.task, fault.other})});
      });
}

std::string cure_of(const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
  if (!wiring.by_megatron()) {
    return fmt::format("give the sends of rank {} and the receives of rank {} the same order",
                       graph.tasks[fault.other].rank, graph.tasks[fault.task].rank);
  }
  return wiring.environment().p2p == MegatronCalls::Batch
             ? "Megatron makes these calls itself: single calls (--p2p overlap) meet as they should"
             : "Megatron works out what arrives from each rank's own order: all of them have to be "
               "of one schedule that it makes";
}

// Between two ranks, messages are received in the order in which they are sent.
//
//   0SEND_F0,0SEND_F1 | 1RECV_F1,1RECV_F0     rank 1 takes microbatch 0's output for that of 1
//
// NCCL's messages carry no tag: the k-th send from one rank to another meets the k-th receive
// there, and where the two are of one size nothing ever notices. The first pair that disagrees on a
// channel is reported; those behind it follow from it.
void message_mismatch(const Context& context, Findings& out) {
  for_each_fault(
      context, TransferFault::Kind::Mismatch,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.found()) return;
        out.report(
            {.message = fmt::format("{} meets {}: messages between two ranks meet in the order in "
                                    "which they are issued",
                                    words::task_placed(context, wiring, graph, fault.task),
                                    words::task_name(context, wiring, graph, fault.other)),
             .labels = {{words::task_span(context, wiring, graph, fault.task), ""},
                        {words::task_span(context, wiring, graph, fault.other),
                         "this is sent in its stead"}},
             .notes = {{.text = "where the two are of one size, nothing hangs and nothing is said: "
                                "the wrong tensor is read",
                        .span = std::nullopt}},
             .help = {.text = cure_of(wiring, graph, fault)},
             .witness = words::task_witness(context, wiring, graph, WitnessKind::Mismatch,
                                            {fault.other, fault.task})});
      });
}

std::string side_of(const Wiring& wiring, const Task& transfer) {
  return in_mixed_group(wiring.lowered().ranks[transfer.rank.index()], transfer.step)
             ? "in a group of sends and receives, on the communicator of all ranks"
             : "by itself, on the communicator of the two ranks";
}

// Both ends of a transfer are made on one communicator.
//
//   (send-F1.1 recv-B1.0) | recv-F1.1     the send is on the parent, the receive on the pair's own
//
// A group that goes both ways runs on the parent of all ranks where NCCL makes communicators
// lazily, and everything else on a communicator of its two ranks. Two ends on different ones never
// meet: the receive waits for ever, and so does the send unless it is buffered. It is found only
// where that layout is declared.
void other_communicator(const Context& context, Findings& out) {
  for_each_fault(
      context, TransferFault::Kind::OtherCommunicator,
      [&](const Wiring& wiring, const TaskGraph& graph, const TransferFault& fault) {
        if (!out.found()) return;
        const Task& receive = graph.tasks[fault.task];
        const Task& send = graph.tasks[fault.other];
        out.report(
            {.message = fmt::format(
                 "{} is called {}, and {} {}: they never meet",
                 words::task_placed(context, wiring, graph, fault.task), side_of(wiring, receive),
                 words::task_name(context, wiring, graph, fault.other), side_of(wiring, send)),
             .labels = {{words::task_span(context, wiring, graph, fault.task), ""},
                        {words::task_span(context, wiring, graph, fault.other),
                         "this is sent on another communicator"}},
             .help = {.text =
                          "call both in groups that hold sends and receives, or neither; or make "
                          "the communicators before the step, so that all ranks share one"},
             .witness = words::task_witness(context, wiring, graph, WitnessKind::Mismatch,
                                            {fault.other, fault.task})});
      });
}

constexpr Rule kTransfersRules[] = {
    {"T01", "transfer-twice", "the same transfer twice", Family::Transfers, Pass::Transfers,
     transfer_twice},
    {"T02", "transfer-nowhere", "a transfer without another end", Family::Transfers,
     Pass::Transfers, transfer_nowhere},
    {"T03", "send-without-receive", "a send that nobody receives", Family::Transfers,
     Pass::Transfers, send_without_receive},
    {"T04", "receive-without-send", "a receive that nobody sends to", Family::Transfers,
     Pass::Transfers, receive_without_send},
    {"T05", "input-not-received", "an input that never arrives", Family::Transfers, Pass::Transfers,
     input_not_received},
    {"T06", "send-too-early", "a send before there is something to send", Family::Transfers,
     Pass::Transfers, report_misplaced<kSendTooEarly>},
    {"T07", "receive-too-late", "a receive behind its reader", Family::Transfers, Pass::Transfers,
     report_misplaced<kReceiveTooLate>},
    {"T08", "message-mismatch", "a receive that takes the wrong message", Family::Transfers,
     Pass::Transfers, message_mismatch},
    {"T13", "other-communicator", "a transfer whose ends are on two communicators",
     Family::Transfers, Pass::Transfers, other_communicator},
};

}  // namespace

std::span<const Rule> transfer_rules() {
  return kTransfersRules;
}

}  // namespace capo::rules
