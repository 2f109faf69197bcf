#include "run/divided.h"

#include "run/processes/own_rank.h"
#include "run/refusal.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::run {

Division division_of(const PlannedStep& step, const RunOptions& options) {
  return {.ranks = static_cast<std::int32_t>(step.view().table().ranks()),
          .per_process = options.ranks_per_process};
}

std::optional<RankRange> own_ranks(const PlannedStep& step, const RunOptions& options) {
  if (options.processes == nullptr) return std::nullopt;
  return division_of(step, options).of(options.processes->rank());
}

namespace {

// Tells which work of the receiving rank a message is for.
MessageWords words_for(const PlannedStep& step, const StepLayers& layers, const Program& program,
                       const SentGradients& sent_gradients, const SentRows& sent_rows) {
  std::map<Message, std::string> words;
  const std::vector<Message> messages = messages_of(program, step.view().table(), layers);
  const Cells cells(step.view().table());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Transfer& transfer = program.transfers[i];
    const Cells::Cell cell = cells.at(transfer.cell);
    const Work reader{.chunk = cell.chunk,
                      .microbatch = cell.microbatch,
                      .kind = transfer.way == Way::Forward ? Kind::Forward : Kind::Backward};
    words[messages[i]] = "which " + name_of(cell.rank, reader) + " reads";
  }
  for (std::size_t at = 0; at < sent_gradients.size(); ++at) {
    for (const SentGradient& one : sent_gradients[at]) {
      words[one.message] = fmt::format("which reduce{} of rank {} sums",
                                       program.reductions[at].chunk, one.message.channel.receiver);
    }
  }
  for (const auto& blocks : sent_rows) {
    for (const SentBlock& block : blocks) {
      const Exchange& exchange = program.exchanges[block.exchange];
      const Cells::Cell of = cells.at(exchange.cell);
      const Work work{.chunk = of.chunk,
                      .microbatch = of.microbatch,
                      .kind = exchange.way == Way::Forward ? Kind::Forward : Kind::Backward};
      words[block.message] = fmt::format("which takes tokens of {} {} their experts",
                                         name_of(of.rank, work), block.back ? "back from" : "to");
    }
  }
  return [words = std::move(words)](const Message& message) { return words.at(message); };
}

// Float64 is compared in one process, for which the others wait; it takes a slow processor a second
// for a billion multiply-adds, and ten if many share it.
Processes::Duration patience_of(const PlannedStep& step, const StepLayers& layers,
                                const RunOptions& options) {
  if (options.float64 == Float64::LeftOut) return {};
  return Processes::Duration(float64_work(layers, step.view().table().microbatches(), options) /
                             1e8);
}

// The stream on which each process takes part in each reduction or crossing.
class MeetingStreams {
 public:
  MeetingStreams(const Program& program, const Division& division) : division_(division) {
    for (const Op& op : program.ops) {
      for (std::uint32_t at = op.first_part; at < op.end_part; ++at) {
        const OpPart& part = program.parts[at];
        if (meets(part)) streams_[{part.kind, part.to, division.home(part.rank)}] = op.stream;
      }
    }
  }

  [[nodiscard]] Ends ends(OpPart::Kind kind, std::size_t at, const Message& message) const {
    const auto number = static_cast<std::uint32_t>(at);
    const Channel& channel = message.channel;
    return {.message = message,
            .sender = streams_.at({kind, number, division_.home(channel.sender)}),
            .receiver = streams_.at({kind, number, division_.home(channel.receiver)})};
  }

 private:
  Division division_;
  std::map<std::tuple<OpPart::Kind, std::uint32_t, std::int32_t>, StreamId> streams_;
};

// Those of blocks within a process are the transport's own.
std::vector<Ends> ends_of(const Program& program, const SentGradients& sent_gradients,
                          const SentRows& sent_rows, const Division& division) {
  const MeetingStreams streams(program, division);
  std::vector<Ends> all;
  for (std::size_t at = 0; at < sent_gradients.size(); ++at) {
    for (const SentGradient& one : sent_gradients[at]) {
      all.push_back(streams.ends(OpPart::Kind::Reduce, at, one.message));
    }
  }
  for (std::size_t at = 0; at < sent_rows.size(); ++at) {
    for (const SentBlock& block : sent_rows[at]) {
      const Channel& channel = block.message.channel;
      if (division.home(channel.sender) == division.home(channel.receiver)) continue;
      all.push_back(streams.ends(OpPart::Kind::Cross, at, block.message));
    }
  }
  return all;
}

// The messages between processes, with the streams of both their ends.
std::vector<Ends> ends_between(const PlannedStep& step, const StepLayers& layers,
                               const Program& program, const SentGradients& sent_gradients,
                               const SentRows& sent_rows, const Division& division) {
  std::vector<Ends> all = ends_of(program, sent_gradients, sent_rows, division);
  const std::vector<Message> messages = messages_of(program, step.view().table(), layers);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Transfer& transfer = program.transfers[i];
    const Channel& channel = transfer.channel;
    if (transfer.from == kNoBuffer) continue;
    if (division.home(channel.sender) == division.home(channel.receiver)) continue;
    Ends& of = all.emplace_back(Ends{.message = messages[i]});
    for (const std::uint32_t op : transfer.ends) {
      if (op == kNoOp) continue;
      const StreamId stream = program.ops[op].stream;
      (program.rank_of_stream[stream] == channel.sender ? of.sender : of.receiver) = stream;
    }
  }
  return all;
}

}  // namespace

std::unique_ptr<Transport> transport_of(Engine& engine, const PlannedStep& step,
                                        const StepLayers& layers, const Program& program,
                                        const SentGradients& sent_gradients,
                                        const SentRows& sent_rows, const RunOptions& options) {
  if (options.processes == nullptr) return options.transport(engine);
  const Division division = division_of(step, options);
  auto between = options.between.make(
      engine, {.processes = *options.processes,
               .division = division,
               .mode = options.sends,
               .patience = patience_of(step, layers, options),
               .words = words_for(step, layers, program, sent_gradients, sent_rows),
               .ends = ends_between(step, layers, program, sent_gradients, sent_rows, division)});
  if (division.per_process == 1) return between;
  return std::make_unique<PartlyInProcess>(engine, division, std::move(between));
}

}  // namespace capo::run
