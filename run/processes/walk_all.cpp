#include "run/processes/walk_all.h"

#include "core/base/index.h"
#include "core/graph/meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

namespace capo::run {

namespace {

// How many vertices of a rank run.
std::size_t predicted(const Walkable& of, std::int32_t rank) {
  std::size_t count = 0;
  for (Vertex vertex = 0; vertex < of.graph.task_of.size(); ++vertex) {
    const bool own = of.graph.tasks[of.graph.task_of[vertex]].rank == RankId(rank);
    count += own && of.execution.ran[vertex] ? 1U : 0U;
  }
  return count;
}

// Goes on until so many have run; false if nothing did for the timeout.
bool walk_until(Walk& walk, std::size_t count, Processes::Duration timeout) {
  auto last = std::chrono::steady_clock::now();
  while (walk.ran().size() < count) {
    if (walk.go_on()) {
      last = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - last > timeout) {
      return false;
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

// All are where they stay; whoever can go further does so now.
bool try_further(Walk& walk, Processes& processes) {
  constexpr int kTries = 20;
  for (int tries = 0; tries < kTries; ++tries) {
    (void)walk.go_on();
    std::this_thread::yield();
  }
  return processes.meet();
}

std::string packed(const Walk& walk) {
  std::vector<std::uint32_t> numbers{static_cast<std::uint32_t>(walk.ran().size())};
  numbers.insert(numbers.end(), walk.ran().begin(), walk.ran().end());
  for (const Came& came : walk.came()) {
    numbers.push_back(came.receive);
    numbers.push_back(came.send);
  }
  std::string text(numbers.size() * sizeof(std::uint32_t), '\0');
  std::memcpy(text.data(), numbers.data(), text.size());
  return text;
}

void add(WalkedRanks& walked, const std::string& text) {
  std::vector<std::uint32_t> numbers(text.size() / sizeof(std::uint32_t));
  std::memcpy(numbers.data(), text.data(), text.size());
  const std::size_t ran = numbers.at(0) + 1;
  walked.ran.insert(numbers.begin() + 1, numbers.begin() + static_cast<std::ptrdiff_t>(ran));
  for (std::size_t at = ran; at + 1 < numbers.size(); at += 2) {
    walked.came[numbers[at]] = numbers[at + 1];
  }
}

// Whether each message that came was paired as predicted, and each that should have come did. Of a
// fused group that is stuck some may have come.
bool paired_as_predicted(const Walkable& of, const WalkedRanks& walked) {
  bool all = true;
  of.graph.for_each_task_edge([&](const TaskEdge& edge) {
    if (edge.kind != EdgeKind::Message) return;
    const auto came = walked.came.find(edge.after);
    all = all &&
          (came == walked.came.end() ? !of.execution.ran[edge.to] : came->second == edge.before);
  });
  return all;
}

// Takes back what is stuck, and tells rank 0 how far this one came.
WalkedRanks gathered(Walk& walk, Processes& processes) {
  walk.cancel();
  WalkedRanks walked;
  const auto texts = processes.gather(packed(walk));
  for (std::size_t rank = 0; processes.rank() == 0 && rank < texts.size(); ++rank) {
    if (!texts[rank]) walked.silent = fmt::format("rank {} does not answer", rank);
    if (texts[rank]) add(walked, *texts[rank]);
  }
  return walked;
}

}  // namespace

Walkable walkable(const Wiring& wiring) {
  return {.graph = wiring.transfers().graph,
          .lowered = wiring.lowered(),
          .map = wiring.map(),
          .execution = wiring.execution(),
          .environment = wiring.environment(),
          .faults = wiring.transfers().faults,
          .groups = wiring.groups()};
}

MessageLibrary::Mode mode_of(const Environment& environment) {
  return environment.buffered() ? MessageLibrary::Mode::Buffered : MessageLibrary::Mode::Rendezvous;
}

bool can_be_walked(const Walkable& of, Meetings meetings) {
  using enum TransferFault::Kind;
  const bool shifts =
      std::any_of(of.faults.begin(), of.faults.end(), [](const TransferFault& fault) {
        return fault.kind != Mismatch && fault.kind != SendTooEarly &&
               fault.kind != ReceiveTooLate && fault.kind != CollectiveOrder;
      });
  if (shifts || of.environment.channel_bytes) return false;
  if (meetings == Meetings::AreWalked) return true;
  if (std::any_of(of.faults.begin(), of.faults.end(),
                  [](const TransferFault& fault) { return fault.kind == CollectiveOrder; })) {
    return false;
  }
  for (Vertex vertex = 0; vertex < of.graph.task_of.size(); ++vertex) {
    if (of.graph.is_meeting(vertex)) return false;
  }
  return true;
}

WalkedRanks walk_all(Processes& processes, const Walkable& of) {
  const Issued issued{.layout = of.environment.layout(),
                      .mode = mode_of(of.environment),
                      .first = processes.library().add_communicators(
                          kCommunicatorsBetween + static_cast<int>(of.groups.size()))};
  Walk walk(of, processes.rank(), processes.library(), issued);
  if (const int largest = processes.library().largest_tag(); walk.tags() - 1 > largest) {
    WalkedRanks none;
    none.silent = fmt::format("{} collectives have a tag each, and {} has none above {}",
                              walk.tags(), processes.library().name(), largest);
    return none;
  }
  bool met =
      walk_until(walk, predicted(of, processes.rank()), processes.timeout()) && processes.meet();
  for (int meeting = 0; meeting < 2 && met; ++meeting) met = try_further(walk, processes);
  return gathered(walk, processes);
}

namespace {

std::size_t transfers_of(const Walkable& of, std::int32_t rank) {
  return as_index(std::count_if(
      of.graph.tasks.begin(), of.graph.tasks.end(),
      [&](const Task& task) { return is_transfer(task.kind) && task.rank == RankId(rank); }));
}

// Goes on until so many have run, or all, or nothing has for so long.
void go_on_until(Walk& walk, std::size_t count, Processes::Duration patience) {
  auto last = std::chrono::steady_clock::now();
  while (walk.ran().size() < count && !walk.finished() &&
         std::chrono::steady_clock::now() - last < patience) {
    if (walk.go_on()) {
      last = std::chrono::steady_clock::now();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

}  // namespace

WalkedRanks observe(Processes& processes, MessageLibrary& messages, const Walkable& of,
                    const Patience& patience) {
  const Issued issued{.layout = of.environment.layout(),
                      .mode = mode_of(of.environment),
                      .first = messages.add_communicators(kCommunicatorsBetween)};
  messages.have_room(transfers_of(of, processes.rank()));
  Walk walk(of, processes.rank(), messages, issued);
  bool met = processes.meet();  // a process that began late would look as if it hung
  go_on_until(walk, predicted(of, processes.rank()), patience.on_the_way);
  met = met && processes.meet(patience.on_the_way);
  go_on_until(walk, of.graph.task_of.size(), patience.at_its_end);
  met = met && processes.meet(patience.at_its_end);
  WalkedRanks walked = gathered(walk, processes);
  if (!met && walked.silent.empty()) walked.silent = "a rank does not answer";
  return walked;
}

std::vector<int> communicators_used(const Walkable& of) {
  std::set<int> used;
  for (const Task& task : of.graph.tasks) {
    if (!is_transfer(task.kind)) continue;
    used.insert(communicator_between(of.environment.layout(), of.lowered, task));
  }
  return {used.begin(), used.end()};
}

std::string error_of_any(Processes& processes, const MessageLibrary& messages) {
  const char* const own = messages.error();
  for (const auto& text : processes.gather(own == nullptr ? "" : own)) {
    if (text && !text->empty()) return *text;
  }
  return {};
}

std::string difference(const Walkable& of, const WalkedRanks& walked) {
  if (!walked.silent.empty()) return walked.silent;
  for (Vertex vertex = 0; vertex < of.graph.task_of.size(); ++vertex) {
    const bool ran = walked.ran.contains(vertex);
    if (ran == of.execution.ran[vertex]) continue;
    const TaskId id = of.graph.task_of[vertex];
    const std::size_t rank = of.graph.tasks[id].rank.index();
    return fmt::format("step {} of rank {} {}", of.graph.tasks[id].step, rank,
                       ran ? "ran, and should wait for ever" : "did not run, and should");
  }
  return paired_as_predicted(of, walked) ? "" : "a message met another receive than predicted";
}

std::size_t mismatches(const TaskGraph& graph, const WalkedRanks& walked) {
  return as_index(std::count_if(walked.came.begin(), walked.came.end(), [&](const auto& pair) {
    return message_of(graph.tasks[pair.first]) != message_of(graph.tasks[pair.second]);
  }));
}

}  // namespace capo::run
