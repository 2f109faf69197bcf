#include "run/execute/stepper.h"

#include "core/base/assert.h"
#include "core/plan/accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace capo::run {

namespace {

constexpr std::string_view kOtherEnd = "the other end of a transfer";

std::string label_of(const Program& program, const OpPart& part) {
  switch (part.kind) {
    case OpPart::Kind::Work:
      return name_of(part.rank, part.work);
    case OpPart::Kind::Deliver:
      return fmt::format("a transfer from rank {}", part.rank);
    case OpPart::Kind::Send:
    case OpPart::Kind::Receive:
    case OpPart::Kind::Delivered:
      return std::string(kOtherEnd);
    case OpPart::Kind::Permute:
    case OpPart::Kind::Return:
    case OpPart::Kind::Cross:
      return "an exchange of tokens";
    case OpPart::Kind::Collect:
      return fmt::format("an input's gradient of rank {}", part.rank);
    case OpPart::Kind::Reduce:
      return fmt::format("a reduction of chunk {}", program.reductions[part.to].chunk);
  }
  CAPO_UNREACHABLE();
}

std::vector<std::string> labels_of(const Program& program) {
  std::vector<std::string> labels;
  labels.reserve(program.parts.size());
  for (const OpPart& part : program.parts) labels.push_back(label_of(program, part));
  return labels;
}

}  // namespace

Stepper::Stepper(LoadedStep& loaded, const Program& program, BufferMemory& memory,
                 const StepOutputs& outputs, const Deposits& deposits, const Expected* expected,
                 LateReads* late)
    : loaded_(loaded),
      program_(program),
      memory_(memory),
      outputs_(outputs),
      deposits_(deposits),
      expected_(expected),
      late_(late),
      reads_(loaded.table().size(), 0),
      view_(loaded, memory, outputs, deposits),
      saved_(loaded),
      labels_(labels_of(program)) {
  count_reads();
}

void Stepper::count_reads() {
  const BufferTable& table = loaded_.table();
  for (const OpPart& part : program_.parts) {
    if (part.kind == OpPart::Kind::Deliver || part.kind == OpPart::Kind::Collect)
      ++reads_[part.from];
    if (takes_from_buffer(part)) ++reads_[part.origin.id];
    if (part.kind == OpPart::Kind::Return) {
      const BufferId made = program_.exchanges[part.to].comes_back_into();
      if (made != kNoBuffer) ++reads_[made];
    }
    if (part.kind != OpPart::Kind::Work) continue;
    const bool of_another = part.origin.kind == Origin::Kind::Buffer &&
                            table.at(part.origin.id).chunk != part.work.chunk;
    if (of_another) ++reads_[part.origin.id];
    for_each_work(part, [&](const Work& work) {
      for_each_layer(table, part.rank, work, [&](std::int32_t layer) {
        for_each_access(
            table, part.rank, work, layer, [](BufferId) {},
            [&](BufferId buffer) { ++reads_[buffer]; });
      });
    });
  }
}

void Stepper::note_written(const OpPart& part, std::int32_t layer) {
  const auto written = [&](BufferId buffer) {
    memory_.written(buffer);
    if (reads_left_[buffer] > 0) return;
    reads_left_[buffer] = 1;  // nothing reads it: it stays until the op ends
    held_to_end_.push_back(buffer);
  };
  for_each_work(part, [&](const Work& work) {
    for_each_access(loaded_.table(), part.rank, work, layer, written, [](BufferId) {});
  });
}

void Stepper::note_read(const OpPart& part, std::int32_t layer, StreamId stream) {
  const auto read = [&](BufferId buffer) {
    // If other work runs beside it, the buffer is in use as long as that runs.
    part.work.beside ? held_to_end_.push_back(buffer) : drop(buffer, stream);
  };
  for_each_work(part, [&](const Work& work) {
    for_each_access(
        loaded_.table(), part.rank, work, layer, [](BufferId) {}, read);
  });
}

void Stepper::drop(BufferId buffer, StreamId stream) {
  if (--reads_left_[buffer] == 0) memory_.released(buffer, stream);
}

// Before work, frees what its rank has sent and knows to have arrived, since either end is over.
void Stepper::land(std::uint32_t op) {
  const Op& at_hand = program_.ops[op];
  const bool works = std::any_of(
      program_.parts.begin() + at_hand.first_part, program_.parts.begin() + at_hand.end_part,
      [](const OpPart& part) { return part.kind == OpPart::Kind::Work; });
  if (!works) return;
  const std::int32_t rank = program_.rank_of_stream[program_.ops[op].stream];
  std::erase_if(in_flight_, [&](std::uint32_t at) {
    const Transfer& transfer = program_.transfers[at];
    const auto& [first, second] = transfer.ends;
    const bool landed = transfer.channel.sender == rank &&
                        (clocks_->before(first, op) || clocks_->before(second, op));
    if (landed) drop(transfer.from, 0);
    return landed;
  });
}

void Stepper::end_op(StreamId stream) {
  for (const BufferId buffer : held_to_end_) drop(buffer, stream);
  held_to_end_.clear();
}

void Stepper::run_eagerly() {
  walk(Mode::Eager);
  for (const Reduction& reduction : loaded_.reductions) {
    if (!broken()) reduce(reduction, 0);
  }
  loaded_.engine.synchronise();
}

void Stepper::replay_actions() {
  walk(Mode::Actions);
}

void Stepper::capture_actions(const Program& capture) {
  std::map<WorkKey, const OpPart*> as_replayed;
  for (const OpPart& part : program_.parts) {
    if (part.kind == OpPart::Kind::Work) as_replayed[key_of(part.rank, part.work)] = &part;
  }
  for (const Op& op : capture.ops) {
    for (std::uint32_t at = op.first_part; at < op.end_part && !broken(); ++at) {
      const OpPart& captured = capture.parts[at];
      if (captured.kind != OpPart::Kind::Work) continue;
      for_each_work(captured, [&](const Work& work) {
        // Only the program that is replayed knows where the work's input comes from, and which
        // weight gradients are one call. It has neither a part for each of those nor, unchecked,
        // one for what is never replayed.
        const auto replayed = as_replayed.find(key_of(captured.rank, work));
        if (replayed != as_replayed.end()) capture_part(*replayed->second);
      });
    }
  }
  for (const auto& [key, part] : as_replayed) {
    CAPO_ASSERT(broken() || graph_of_.contains(key), "what is replayed has been captured");
  }
}

void Stepper::capture_part(const OpPart& part) {
  loaded_.engine.label(name_of(part.rank, part.work));
  loaded_.engine.begin_capture(0);
  bool first = true;
  for_each_layer(loaded_.table(), part.rank, part.work, [&](std::int32_t layer) {
    launch_layer(part, layer, std::exchange(first, false), Mode::Actions, 0);
  });
  const GraphId graph = loaded_.engine.end_capture();
  graph_of_[key_of(part.rank, part.work)] = graph;
  graphs_.push_back({.graph = graph, .rank = part.rank, .work = part.work});
}

void Stepper::capture_step() {
  Engine& engine = loaded_.engine;
  engine.label("the whole step");
  engine.begin_capture(0);
  const auto streams = static_cast<StreamId>(program_.rank_of_stream.size());
  const EventId fork = engine.record(0);
  for (StreamId stream = 1; stream < streams; ++stream) engine.wait(stream, fork);
  walk(Mode::Step);
  engine.label("the whole step");
  for (StreamId stream = 1; stream < streams; ++stream) engine.wait(0, engine.record(stream));
  graphs_.push_back({.graph = engine.end_capture()});
}

void Stepper::replay_step() {
  loaded_.engine.label("the whole step");
  loaded_.engine.replay(graphs_.front().graph, 0);
  loaded_.engine.synchronise();
}

void Stepper::walk(Mode mode) {
  Engine& engine = loaded_.engine;
  reads_left_ = reads_;
  if (mode == Mode::Eager && !clocks_) clocks_.emplace(program_);
  timeline_.clear();
  std::vector<bool> awaited(program_.ops.size(), false);
  for (const auto& waits : program_.waits) {
    for (const std::uint32_t op : waits) awaited[op] = true;
  }
  std::vector<EventId> done(program_.ops.size(), 0);
  std::vector<std::pair<EventId, EventId>> times;
  const EventId start = mode == Mode::Actions ? begin_times() : 0;
  for (std::uint32_t id = 0; id < program_.ops.size() && !broken(); ++id) {
    const Op& op = program_.ops[id];
    label(op);
    if (mode == Mode::Eager) land(id);
    const StreamId stream = mode == Mode::Eager ? 0 : op.stream;
    if (mode != Mode::Eager) {
      for (const std::uint32_t before : program_.waits[id]) engine.wait(stream, done[before]);
    }
    const bool timed = mode == Mode::Actions && takes_time(op);
    const EventId begin = timed ? engine.record(stream) : 0;
    for (std::uint32_t at = op.first_part; at < op.end_part && !broken(); ++at) {
      engine.label(labels_[at]);
      run_part(program_.parts[at], mode, stream);
    }
    end_op(stream);
    if (timed) {
      const EventId end = engine.record(stream);
      timeline_.push_back({.op = id});
      times.emplace_back(begin, end);
    }
    memory_.op_done(stream);
    if (mode != Mode::Eager && awaited[id]) done[id] = engine.record(stream);
  }
  for (const std::uint32_t at : std::exchange(in_flight_, {})) drop(program_.transfers[at].from, 0);
  if (mode == Mode::Step) return;
  // Errors on a device since the last time come to light here.
  engine.label(mode == Mode::Eager ? "some task of eager execution" : "some task of a replay");
  engine.synchronise();
  engine.label("times of a replay");
  for (std::size_t i = 0; i < times.size() && !engine.error(); ++i) {
    timeline_[i].begin = engine.between(start, times[i].first);
    timeline_[i].end = engine.between(start, times[i].second);
  }
  engine.forget_events();
}

EventId Stepper::begin_times() {
  using Clock = std::chrono::steady_clock;
  constexpr int kTries = 5;
  EventId closest = 0;
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point before = Clock::now();
    const EventId event = loaded_.engine.record(0);
    loaded_.engine.synchronise();
    const std::chrono::nanoseconds between = Clock::now() - before;
    const std::chrono::duration<double, std::micro> doubt = between / 2;
    if (i > 0 && doubt.count() >= beginning_.doubt) continue;
    closest = event;
    const std::chrono::nanoseconds at = before.time_since_epoch() + between / 2;
    beginning_ = {.nanoseconds = at.count(), .doubt = doubt.count()};
  }
  return closest;
}

// An op that only begins transfers, waits for their other ends, or gives out a gradient has nothing
// to time.
bool Stepper::takes_time(const Op& op) const {
  return std::any_of(program_.parts.begin() + op.first_part, program_.parts.begin() + op.end_part,
                     [](const OpPart& part) {
                       return part.kind != OpPart::Kind::Send &&
                              part.kind != OpPart::Kind::Receive &&
                              part.kind != OpPart::Kind::Delivered &&
                              part.kind != OpPart::Kind::Collect;
                     });
}

// The waits and events around an op belong to the first thing that it does.
void Stepper::label(const Op& op) {
  const bool has_parts = op.first_part < op.end_part;
  loaded_.engine.label(has_parts ? std::string_view(labels_[op.first_part]) : kOtherEnd);
}

void Stepper::run_part(const OpPart& part, Mode mode, StreamId stream) {
  if (loaded_.hooks.before) loaded_.hooks.before(part, loaded_.registry);
  switch (part.kind) {
    case OpPart::Kind::Work:
      return run_work(part, mode, stream);
    case OpPart::Kind::Send:
      return transport(mode).send(stream, loaded_.messages[part.to], memory_.at(part.from));
    case OpPart::Kind::Receive:
      return transport(mode).receive(stream, loaded_.messages[part.to]);
    case OpPart::Kind::Deliver:
      return deliver(part, mode, stream);
    case OpPart::Kind::Delivered:
      return transport(mode).finish(stream, loaded_.messages[part.to], part.end);
    case OpPart::Kind::Permute:
      return move_rows(part, stream);
    case OpPart::Kind::Return:
      return program_.exchanges[part.to].around_experts() ? bring_back(part, stream)
                                                          : move_rows(part, stream);
    case OpPart::Kind::Cross:
      return cross(loaded_.sent_rows[part.to], mode, stream);
    case OpPart::Kind::Reduce:
      if (mode == Mode::Eager) return;  // it reduces when the step is over
      bring_together(part.to, stream);
      if (!broken()) reduce(program_.reductions[part.to], stream);
      return;
    case OpPart::Kind::Collect:
      if (late_ != nullptr) late_->look(part.from, memory_.at(part.from), Reader::Send, stream);
      launch(stream, Copy{.bytes = outputs_.collected_bytes(part.to),
                          .from = memory_.at(part.from),
                          .to = outputs_.collected(part.to)});
      return drop(part.from, stream);
  }
}

// The buffer that is sent is free when either end is over, so when the first of them is.
void Stepper::deliver(const OpPart& part, Mode mode, StreamId stream) {
  if (late_ != nullptr) late_->look(part.from, memory_.at(part.from), Reader::Send, stream);
  transport(mode).finish(stream, loaded_.messages[part.to], part.end);
  if (mode != Mode::Eager) return drop(part.from, stream);
  in_flight_.push_back(part.to);  // until the rank that sent it knows
}

void Stepper::run_work(const OpPart& part, Mode mode, StreamId stream) {
  const BufferTable& table = loaded_.table();
  const auto each_layer = [&](auto visit) { for_each_layer(table, part.rank, part.work, visit); };
  const auto each_work = [&](auto visit) {
    for_each_work(part, [&](const Work& work) {
      each_layer([&](std::int32_t layer) { visit(work, layer); });
    });
  };
  bool alive = true;
  each_work([&](const Work& work, std::int32_t layer) {
    alive = alive && parameters_alive(part, work, layer);
  });
  if (!alive) return;
  const bool watched = mode != Mode::Eager && late_ != nullptr;
  if (watched) look_at_reads(part, stream);
  if (mode == Mode::Actions) {
    each_layer([&](std::int32_t layer) { note_written(part, layer); });
    loaded_.engine.replay(graph_of_.at(key_of(part.rank, part.work)), stream);
    each_layer([&](std::int32_t layer) { note_read(part, layer, stream); });
  } else {
    bool first = true;
    each_layer([&](std::int32_t layer) {
      note_written(part, layer);
      if (broken()) return;
      launch_layer(part, layer, std::exchange(first, false), mode, stream);
      note_read(part, layer, stream);
    });
  }
  if (part.origin.kind == Origin::Kind::Buffer &&
      table.at(part.origin.id).chunk != part.work.chunk) {
    drop(part.origin.id, stream);
  }
  if (watched) keep_what_was_touched(part, stream);
  each_work([&](const Work& work, std::int32_t layer) {
    accumulate_gradients(part, work, layer, stream);
  });
}

void Stepper::accumulate_gradients(const OpPart& part, const Work& work, std::int32_t at,
                                   StreamId stream) {
  if (work.kind == Kind::Forward) return;
  for (const std::uint32_t parameter : loaded_.layers.at(part.rank, work.chunk, at).parameter) {
    if (parameter == kNoParameter) continue;
    accumulate(loaded_.engine, stream, outputs_.gradients(parameter),
               deposits_.of(parameter, work.microbatch, is_weight(work)), work.microbatch);
  }
}

// A forward takes weak handles; a backward or weight gradient that has something for a parameter
// asks whether it is still there.
bool Stepper::parameters_alive(const OpPart& part, const Work& work, std::int32_t at) {
  const StepLayer& layer = loaded_.layers.at(part.rank, work.chunk, at);
  auto& handles = handles_[{loaded_.layers.number(part.rank, work.chunk, at), work.microbatch}];
  if (work.kind == Kind::Forward) {
    handles.clear();
    for (const std::uint32_t parameter : layer.parameter) {
      if (parameter != kNoParameter) handles.push_back(loaded_.registry.handle(parameter));
    }
    return true;
  }
  for (const ParameterHandle handle : handles) {
    const Deposit& deposit = deposits_.of(handle.index, work.microbatch, is_weight(work));
    const bool has_something =
        deposit.into != Deposit::Into::Nothing || deposit.handed != Deposit::Handed::Nothing;
    if (!has_something || loaded_.registry.alive(handle)) continue;
    lost_ = fmt::format("the parameter `{}` is gone, and its gradient has nowhere to go",
                        loaded_.registry.name(handle.index));
    return false;
  }
  return true;
}

void Stepper::launch(StreamId stream, const Call& call) {
  loaded_.engine.launch(stream, call);
}

}  // namespace capo::run
