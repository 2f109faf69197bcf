#include "testing/oracle/transfers.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace capo::oracle {
namespace {

using Channel = std::tuple<int, int, int>;            // from a rank, to a rank, communicator
using Line = std::tuple<int, int, int, int>;          // a rank's; what tells it from its others
using Thing = std::tuple<Operation::Kind, int, int>;  // kind, stage, microbatch

bool sends(const Operation& operation) {
  return operation.kind == Operation::SendForward || operation.kind == Operation::SendBackward;
}

bool receives(const Operation& operation) {
  return operation.kind == Operation::ReceiveForward ||
         operation.kind == Operation::ReceiveBackward;
}

bool transfers(const Operation& operation) {
  return sends(operation) || receives(operation);
}

bool waits(const Operation& operation) {
  return operation.kind == Operation::WaitSendForward ||
         operation.kind == Operation::WaitSendBackward;
}

bool gradient(const Operation& transfer) {
  return transfer.kind == Operation::SendBackward || transfer.kind == Operation::ReceiveBackward;
}

/// The stage at the other end of a transfer.
int other_end(const Operation& transfer) {
  const bool up =
      transfer.kind == Operation::SendForward || transfer.kind == Operation::ReceiveBackward;
  return up ? transfer.stage + 1 : transfer.stage - 1;
}

Channel channel_of(const Pipeline& pipeline, int rank, const Operation& transfer) {
  const int peer = pipeline.home[static_cast<std::size_t>(other_end(transfer))];
  const int own = pipeline.lines == Lines::OfThePass && gradient(transfer) ? 2 : 0;
  return sends(transfer) ? Channel{rank, peer, transfer.communicator + own}
                         : Channel{peer, rank, transfer.communicator + own};
}

/// The number of the communicator of all ranks where others join two.
constexpr int kParent = 1000;

/// Gives joined transfers that go both ways the communicator of all ranks, and takes the others
/// apart.
Pipeline with_parent(Pipeline pipeline) {
  if (pipeline.lines != Lines::OfThePairOrJoined) return pipeline;
  for (std::vector<Operation>& list : pipeline.ranks) {
    for (std::size_t begin = 0; begin < list.size();) {
      std::size_t end = begin + 1;
      while (end < list.size() && list[end].joined) ++end;
      bool sent = false;
      bool received = false;
      for (std::size_t i = begin; i < end; ++i) {
        if (sends(list[i])) sent = true;
        if (receives(list[i])) received = true;
      }
      for (std::size_t i = begin; i < end; ++i) {
        if (!transfers(list[i])) continue;
        if (sent && received) list[i].communicator += kParent;
        if (!sent || !received) list[i].joined = false;
      }
      begin = end;
    }
  }
  return pipeline;
}

Line line_of(const Pipeline& pipeline, int rank, const Operation& operation) {
  constexpr int kComputations = -2;
  constexpr int kAllTransfers = -1;
  if (!transfers(operation)) return {rank, kComputations, 0, 0};
  const int communicator = operation.communicator;
  if (pipeline.lines == Lines::All || communicator >= kParent)
    return {rank, kAllTransfers, 0, communicator};
  if (pipeline.lines == Lines::OfThePass)
    return {rank, kAllTransfers, gradient(operation) ? 1 : 0, communicator};
  const int peer = pipeline.home[static_cast<std::size_t>(other_end(operation))];
  const bool by_direction = pipeline.lines == Lines::OfThePairAndDirection;
  return {rank, peer, by_direction && sends(operation) ? 1 : 0, communicator};
}

/// Two ranks, or twice kEverybody, what tells directions apart, and the number.
using Communicator = std::tuple<int, int, int, int>;
constexpr int kEverybody = -1;

Communicator communicator_of(const Pipeline& pipeline, int rank, const Operation& transfer) {
  const int number = transfer.communicator;
  if (pipeline.lines == Lines::All || number >= kParent) return {kEverybody, kEverybody, 0, number};
  if (pipeline.lines == Lines::OfThePass)
    return {kEverybody, kEverybody, gradient(transfer) ? 1 : 0, number};
  const int peer = pipeline.home[static_cast<std::size_t>(other_end(transfer))];
  const int from = sends(transfer) ? rank : peer;
  const int to = sends(transfer) ? peer : rank;
  const bool upwards = pipeline.lines == Lines::OfThePairAndDirection && from > to;
  return {std::min(from, to), std::max(from, to), upwards ? 1 : 0, number};
}

bool is_member(const Communicator& communicator, int rank) {
  const auto& [low, high, direction, number] = communicator;
  return low == kEverybody || low == rank || high == rank;
}

/// The message of a token, under the name of the computation that reads it.
Thing message_of(const Operation& transfer) {
  const bool forward =
      transfer.kind == Operation::SendForward || transfer.kind == Operation::ReceiveForward;
  const int reader = sends(transfer) ? other_end(transfer) : transfer.stage;
  return {forward ? Operation::Forward : Operation::Backward, reader, transfer.microbatch};
}

/// The tokens of the rank itself that must be there before an operation can begin.
std::vector<Thing> operands_of(const Pipeline& pipeline, int rank, const Operation& operation) {
  const int stage = operation.stage;
  const int microbatch = operation.microbatch;
  const auto input_from = [&](int maker, Operation::Kind made, Operation::Kind received) {
    const bool here = pipeline.home[static_cast<std::size_t>(maker)] == rank;
    return here ? Thing{made, maker, microbatch} : Thing{received, stage, microbatch};
  };
  const int last = static_cast<int>(pipeline.home.size()) - 1;
  std::vector<Thing> operands;
  switch (operation.kind) {
    case Operation::Forward:
      if (stage > 0)
        operands.push_back(input_from(stage - 1, Operation::Forward, Operation::ReceiveForward));
      break;
    case Operation::Backward:
      operands.emplace_back(Operation::Forward, stage, microbatch);
      if (stage < last)
        operands.push_back(input_from(stage + 1, Operation::Backward, Operation::ReceiveBackward));
      break;
    case Operation::Weight:
      operands.emplace_back(Operation::Backward, stage, microbatch);
      break;
    case Operation::SendForward:
      operands.emplace_back(Operation::Forward, stage, microbatch);
      break;
    case Operation::SendBackward:
      operands.emplace_back(Operation::Backward, stage, microbatch);
      break;
    case Operation::WaitSendForward:
      operands.emplace_back(Operation::SendForward, stage, microbatch);
      break;
    case Operation::WaitSendBackward:
      operands.emplace_back(Operation::SendBackward, stage, microbatch);
      break;
    case Operation::ReceiveForward:
    case Operation::ReceiveBackward:
      break;
  }
  return operands;
}

struct Member {
  Operation operation;
  bool begun = false;
  bool over = false;
  int number = 0;  ///< a transfer's number among its channel's sends or receives, from 0
};

/// Operations that begin and end together; mostly one.
using Joined = std::vector<Member>;

class Executor {
 public:
  explicit Executor(const Pipeline& pipeline) : pipeline_(pipeline) {
    std::map<Channel, int> sent;
    std::map<Channel, int> received;
    for (int rank = 0; rank < ranks(); ++rank) {
      auto& list = lists_.emplace_back();
      for (const Operation& operation : pipeline.ranks[static_cast<std::size_t>(rank)]) {
        if (!operation.joined || list.empty()) list.emplace_back();
        Member member{.operation = operation};
        if (transfers(operation)) {
          const Channel channel = channel_of(pipeline, rank, operation);
          member.number = sends(operation) ? sent[channel]++ : received[channel]++;
        }
        list.back().push_back(member);
      }
    }
  }

  bool run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < ranks(); ++rank) {
        for (std::size_t at = 0; at < list_of(rank).size(); ++at) {
          if (can_begin(rank, at)) moved = begin(rank, at);
          if (can_end(rank, at)) moved = end(rank, at);
        }
      }
    }
    return std::all_of(lists_.begin(), lists_.end(), [](const std::vector<Joined>& list) {
      return std::all_of(list.begin(), list.end(),
                         [](const Joined& joined) { return joined.front().over; });
    });
  }

  /// After run(): the transfers and waits whose beginning or end waits for itself.
  std::vector<Place> in_circles() {
    note_awaited();
    std::vector<Place> places;
    for (int rank = 0; rank < ranks(); ++rank) {
      int position = 0;
      for (std::size_t at = 0; at < list_of(rank).size(); ++at) {
        const bool circles = reaches_itself({rank, at, false}) || reaches_itself({rank, at, true});
        for (const Member& member : list_of(rank)[at]) {
          const bool named = transfers(member.operation) || waits(member.operation);
          if (circles && named) places.push_back({rank, position});
          ++position;
        }
      }
    }
    return places;
  }

 private:
  /// A step is that operations begin, or that they are over.
  struct Step {
    int rank = 0;
    std::size_t at = 0;
    bool over = false;

    friend auto operator<=>(const Step&, const Step&) = default;
  };

  void note_awaited() {
    std::vector<Step> all;
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::size_t at = 0; at < list_of(rank).size(); ++at) {
        for (const bool over : {false, true}) all.push_back({rank, at, over});
        for (const Member& member : list_of(rank)[at]) {
          if (!transfers(member.operation)) continue;
          const Channel channel = channel_of(pipeline_, rank, member.operation);
          beginnings_[{channel, sends(member.operation), member.number}] = {rank, at, false};
        }
      }
    }
    for (const Step& step : all) {
      if (!is_done(step)) awaited_[step] = awaited(step);
    }
  }

  bool is_done(const Step& step) {
    const Member& member = list_of(step.rank)[step.at].front();
    return step.over ? member.over : member.begun;
  }

  /// The steps that have not happened and have to come before this one.
  std::vector<Step> awaited(const Step& step) {
    std::vector<Step> steps;
    for (const Member& member : list_of(step.rank)[step.at]) {
      if (!step.over) {
        for (std::size_t other = 0; other < list_of(step.rank).size(); ++other) {
          if (other != step.at && has_to_be_over(step.rank, other, step.at, member.operation))
            steps.push_back({step.rank, other, true});
        }
      } else if (transfers(member.operation)) {
        const bool receive = receives(member.operation);
        const int number = receive ? member.number : member.number - pipeline_.held;
        const auto other =
            beginnings_.find({channel_of(pipeline_, step.rank, member.operation), receive, number});
        if (other != beginnings_.end()) steps.push_back(other->second);
      }
    }
    if (step.over) steps.push_back({step.rank, step.at, false});
    std::erase_if(steps, [&](const Step& each) { return is_done(each); });
    return steps;
  }

  /// Whether an operation cannot begin before others are over: they come first in its line, or make
  /// what it works with, be it too late.
  bool has_to_be_over(int rank, std::size_t other, std::size_t at, const Operation& operation) {
    const std::vector<Thing> operands = operands_of(pipeline_, rank, operation);
    const Joined& members = list_of(rank)[other];
    return std::any_of(members.begin(), members.end(), [&](const Member& member) {
      const Operation& made = member.operation;
      const Thing thing{made.kind, made.stage, made.microbatch};
      return (other < at && stands_before(rank, other, at, made, operation)) ||
             std::find(operands.begin(), operands.end(), thing) != operands.end();
    });
  }

  bool reaches_itself(const Step& step) {
    std::set<Step> seen;
    std::vector<Step> open{step};
    while (!open.empty()) {
      const Step last = open.back();
      open.pop_back();
      for (const Step& next : awaited_[last]) {
        if (next == step) return true;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

  int ranks() const { return static_cast<int>(pipeline_.ranks.size()); }
  std::vector<Joined>& list_of(int rank) { return lists_[static_cast<std::size_t>(rank)]; }

  bool can_begin(int rank, std::size_t at) {
    Joined& joined = list_of(rank)[at];
    if (joined.front().begun) return false;
    return std::all_of(joined.begin(), joined.end(), [&](const Member& member) {
      return nobody_is_before(rank, at, member.operation) &&
             has_operands(rank, at, member.operation);
    });
  }

  /// Whatever was issued earlier and has to be over first, is.
  bool nobody_is_before(int rank, std::size_t at, const Operation& operation) {
    for (std::size_t earlier = 0; earlier < at; ++earlier) {
      for (const Member& member : list_of(rank)[earlier]) {
        if (!member.over && stands_before(rank, earlier, at, member.operation, operation))
          return false;
      }
    }
    return true;
  }

  /// Whether what was issued earlier has to be over before an operation begins that may not need
  /// it.
  bool stands_before(int rank, std::size_t earlier, std::size_t at, const Operation& before,
                     const Operation& operation) {
    if (line_of(pipeline_, rank, before) == line_of(pipeline_, rank, operation)) return true;
    if (transfers(operation)) return !transfers(before);
    return holds_what_follows(rank, earlier, at, before);
  }

  bool holds_what_follows(int rank, std::size_t transfer, std::size_t computation,
                          const Operation& operation) {
    if (operation.holds != Operation::MuchLater) return operation.holds == Operation::Later;
    for (std::size_t between = transfer + 1; between < computation; ++between) {
      for (const Member& member : list_of(rank)[between]) {
        if (member.operation.kind == operation.kind) return true;
      }
    }
    return false;
  }

  /// Among what was issued earlier, every operand is there and over.
  bool has_operands(int rank, std::size_t at, const Operation& operation) {
    std::set<Thing> over;
    for (std::size_t earlier = 0; earlier < at; ++earlier) {
      for (const Member& member : list_of(rank)[earlier]) {
        const Operation& done = member.operation;
        if (member.over) over.emplace(done.kind, done.stage, done.microbatch);
      }
    }
    const std::vector<Thing> operands = operands_of(pipeline_, rank, operation);
    return std::all_of(operands.begin(), operands.end(),
                       [&](const Thing& operand) { return over.contains(operand); });
  }

  bool can_end(int rank, std::size_t at) {
    Joined& joined = list_of(rank)[at];
    if (!joined.front().begun || joined.front().over) return false;
    return std::all_of(joined.begin(), joined.end(), [&](const Member& member) {
      if (!transfers(member.operation)) return true;
      const Channel channel = channel_of(pipeline_, rank, member.operation);
      if (receives(member.operation)) return sends_begun_[channel] > member.number;
      return receives_begun_[channel] > member.number - pipeline_.held;
    });
  }

  bool begin(int rank, std::size_t at) {
    for (Member& member : list_of(rank)[at]) {
      member.begun = true;
      if (!transfers(member.operation)) continue;
      const Channel channel = channel_of(pipeline_, rank, member.operation);
      ++(sends(member.operation) ? sends_begun_ : receives_begun_)[channel];
    }
    return true;
  }

  bool end(int rank, std::size_t at) {
    for (Member& member : list_of(rank)[at]) member.over = true;
    return true;
  }

  const Pipeline& pipeline_;
  std::vector<std::vector<Joined>> lists_;  // each rank's operations, in the order of issue
  // A channel's sends all stand in one line, and its receives too: how many have begun says which.
  std::map<Channel, int> sends_begun_;
  std::map<Channel, int> receives_begun_;
  std::map<std::tuple<Channel, bool, int>, Step> beginnings_;  // by channel, being a send, number
  std::map<Step, std::vector<Step>> awaited_;                  // of those that never happen
};

}  // namespace

bool finishes(const Pipeline& pipeline) {
  const Pipeline called = with_parent(pipeline);
  return Executor(called).run();
}

std::optional<Place> first_never_computed(const Pipeline& pipeline) {
  std::set<Thing> made;
  std::vector<std::size_t> next(pipeline.ranks.size(), 0);
  const auto can_run = [&](const Operation& operation) {
    if (transfers(operation) || waits(operation)) return true;
    const int stage = operation.stage;
    const bool forward = operation.kind == Operation::Forward;
    const auto there = [&](Operation::Kind kind, int of) {
      const bool exists = of >= 0 && of < static_cast<int>(pipeline.home.size());
      return !exists || made.contains({kind, of, operation.microbatch});
    };
    if (forward) return there(Operation::Forward, stage - 1);
    if (operation.kind == Operation::Weight) return there(Operation::Backward, stage);
    return there(Operation::Forward, stage) && there(Operation::Backward, stage + 1);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const auto& operations = pipeline.ranks[rank];
      while (next[rank] < operations.size() && can_run(operations[next[rank]])) {
        const Operation& done = operations[next[rank]++];
        if (!transfers(done)) made.emplace(done.kind, done.stage, done.microbatch);
        moved = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    if (next[rank] < pipeline.ranks[rank].size())
      return Place{static_cast<int>(rank), static_cast<int>(next[rank])};
  }
  return std::nullopt;
}

std::vector<Place> in_circles(const Pipeline& pipeline) {
  const Pipeline called = with_parent(pipeline);
  Executor executor(called);
  if (executor.run()) return {};
  return executor.in_circles();
}

std::optional<Place> first_apart(const Pipeline& pipeline) {
  const Pipeline called = with_parent(pipeline);
  std::map<Thing, int> sent;
  for (const std::vector<Operation>& list : called.ranks) {
    for (const Operation& operation : list) {
      if (sends(operation)) sent[message_of(operation)] = operation.communicator;
    }
  }
  for (int rank = 0; rank < static_cast<int>(called.ranks.size()); ++rank) {
    int position = 0;
    for (const Operation& operation : called.ranks[static_cast<std::size_t>(rank)]) {
      const auto send = receives(operation) ? sent.find(message_of(operation)) : sent.end();
      if (send != sent.end() && send->second != operation.communicator)
        return Place{rank, position};
      ++position;
    }
  }
  return std::nullopt;
}

std::optional<Place> first_never_made(const Pipeline& with_groups) {
  const Pipeline pipeline = with_parent(with_groups);
  const int ranks = static_cast<int>(pipeline.ranks.size());
  std::set<Communicator> made;
  std::vector<std::size_t> next(pipeline.ranks.size(), 0);
  // A rank stands before the first of its transfers whose communicator is not there yet.
  const auto wanted = [&](int rank) -> std::optional<Communicator> {
    const auto at = static_cast<std::size_t>(rank);
    for (; next[at] < pipeline.ranks[at].size(); ++next[at]) {
      const Operation& operation = pipeline.ranks[at][next[at]];
      if (!transfers(operation)) continue;
      const Communicator communicator = communicator_of(pipeline, rank, operation);
      if (!made.contains(communicator)) return communicator;
    }
    return std::nullopt;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto communicator = wanted(rank);
      if (!communicator) continue;
      bool all_came = true;
      for (int member = 0; member < ranks; ++member) {
        if (is_member(*communicator, member) && wanted(member) != communicator) all_came = false;
      }
      if (!all_came) continue;
      made.insert(*communicator);
      moved = true;
    }
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (wanted(rank)) return Place{rank, static_cast<int>(next[static_cast<std::size_t>(rank)])};
  }
  return std::nullopt;
}

bool mixes_up(const Pipeline& with_groups) {
  const Pipeline pipeline = with_parent(with_groups);
  std::map<Channel, std::vector<Thing>> sent;
  std::map<Channel, std::vector<Thing>> received;
  for (int rank = 0; rank < static_cast<int>(pipeline.ranks.size()); ++rank) {
    for (const Operation& operation : pipeline.ranks[static_cast<std::size_t>(rank)]) {
      if (!transfers(operation)) continue;
      const Channel channel = channel_of(pipeline, rank, operation);
      (sends(operation) ? sent : received)[channel].push_back(message_of(operation));
    }
  }
  for (const auto& [channel, tokens] : sent) {
    const std::vector<Thing>& wanted = received[channel];
    for (std::size_t k = 0; k < tokens.size() && k < wanted.size(); ++k) {
      if (tokens[k] != wanted[k]) return true;
    }
  }
  return false;
}

}  // namespace capo::oracle
