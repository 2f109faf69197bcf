#include "run/host/host_engine.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace capo::run::host {

namespace {

constexpr auto kAligned = static_cast<std::align_val_t>(kAlignment);

struct GiveBack {
  void operator()(std::byte* memory) const { ::operator delete(memory, kAligned); }
};

void merge(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& from) {
  std::vector<std::uint32_t> all;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(all));
  into = std::move(all);
}

}  // namespace

HostEngine::HostEngine(std::int64_t limit) : limit_(limit), captured_(1) {
}

HostEngine::~HostEngine() {
  for (const auto& [memory, bytes] : memory_) GiveBack{}(memory);
}

std::byte* HostEngine::allocate(std::int64_t bytes, std::string_view what) {
  if (error_) return nullptr;
  if (origin_) {
    fail("memory was allocated while a capture was open");
    return nullptr;
  }
  const auto refuse = [&]() -> std::byte* {
    fail(fmt::format("there is no memory for {} bytes of {}", bytes, what));
    return nullptr;
  };
  if (bytes > limit_ - allocated_) return refuse();
  // A tensor of no elements has an address too.
  const auto size = as_index(std::max<std::int64_t>(bytes, 1));
  std::unique_ptr<std::byte, GiveBack> memory(
      static_cast<std::byte*>(::operator new(size, kAligned, std::nothrow)));
  if (memory == nullptr) return refuse();
  memory_.emplace(memory.get(), bytes);
  allocated_ += bytes;
  return memory.release();
}

void HostEngine::release(std::byte* memory) {
  const auto found = memory_.find(memory);
  if (found == memory_.end()) return fail("memory was given back that nobody had");
  allocated_ -= found->second;
  GiveBack{}(memory);
  memory_.erase(found);
}

// If there are no bytes the addresses may be null, which memcpy does not take.
void HostEngine::write(void* to, const void* from, std::int64_t bytes) {
  if (origin_) return fail("memory was written from outside while a capture was open");
  if (!error_ && bytes > 0) std::memcpy(to, from, as_index(bytes));
}

void HostEngine::read(void* to, const void* from, std::int64_t bytes) {
  if (origin_) return fail("memory was read from outside while a capture was open");
  if (!error_ && bytes > 0) std::memcpy(to, from, as_index(bytes));
}

void HostEngine::have_streams(std::uint32_t count) {
  streams_ = std::max(streams_, count);
  captured_.resize(streams_);
}

bool HostEngine::knows(StreamId stream) {
  if (stream < streams_) return true;
  fail(fmt::format("there is no stream {}", stream));
  return false;
}

void HostEngine::launch(StreamId stream, const Call& call) {
  if (error_ || !knows(stream)) return;
  if (!origin_) return execute(call);
  CapturedStream& captured = captured_[stream];
  if (!captured.drawn_in) {
    return fail(fmt::format("stream {} was used during a capture that it is no part of", stream));
  }
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({.call = call, .after = std::exchange(captured.after, {node})});
}

EventId HostEngine::record(StreamId stream) {
  if (error_ || !knows(stream)) return 0;
  Event event{.when = Clock::now(), .after = std::nullopt, .capture = captures_};
  if (origin_ && captured_[stream].drawn_in) event.after = captured_[stream].after;
  events_.push_back(std::move(event));
  return static_cast<EventId>(events_.size() - 1);
}

void HostEngine::wait(StreamId stream, EventId id) {
  if (error_ || !knows(stream)) return;
  if (id >= events_.size()) return fail("a stream waits for an event that nobody recorded");
  const Event& event = events_[id];
  if (!origin_) {
    if (event.after) fail("a stream waits for an event of a capture that is over");
    return;
  }
  if (!event.after || event.capture != captures_) {
    return fail("a captured stream waits for an event outside the capture");
  }
  CapturedStream& captured = captured_[stream];
  captured.drawn_in = true;
  merge(captured.after, *event.after);
}

void HostEngine::begin_capture(StreamId origin) {
  if (error_ || !knows(origin)) return;
  if (origin_) return fail("a capture was begun while another was open");
  origin_ = origin;
  ++captures_;
  nodes_.clear();
  captured_.assign(streams_, {});
  captured_[origin].drawn_in = true;
}

// The nodes that are over before the next one on the origin would begin.
std::vector<bool> HostEngine::joined_nodes(StreamId origin) const {
  std::vector<bool> joined(nodes_.size(), false);
  for (const std::uint32_t node : captured_[origin].after) joined[node] = true;
  // A node waits only for earlier ones.
  for (std::size_t node = nodes_.size(); node-- > 0;) {
    if (!joined[node]) continue;
    for (const std::uint32_t before : nodes_[node].after) joined[before] = true;
  }
  return joined;
}

GraphId HostEngine::end_capture() {
  if (!origin_) {
    fail("a capture was ended that nobody began");
    return 0;
  }
  const StreamId origin = *std::exchange(origin_, std::nullopt);
  const std::vector<bool> joined = joined_nodes(origin);
  for (StreamId stream = 0; stream < streams_ && !error_; ++stream) {
    const auto& last = captured_[stream].after;
    const bool all =
        std::all_of(last.begin(), last.end(), [&](std::uint32_t node) { return joined[node]; });
    if (!all) fail(fmt::format("the capture ended with stream {} unjoined", stream));
  }
  graphs_.push_back(std::exchange(nodes_, {}));
  return static_cast<GraphId>(graphs_.size() - 1);
}

void HostEngine::replay(GraphId graph, StreamId stream) {
  if (error_ || !knows(stream)) return;
  if (graph >= graphs_.size()) return fail("a graph was replayed that nobody captured");
  if (origin_) return fail("a graph was replayed while a capture was open");
  for (const GraphNode& node : graphs_[graph]) execute(node.call);
}

std::vector<GraphNode> HostEngine::inspect(GraphId graph) {
  return graph < graphs_.size() ? graphs_[graph] : std::vector<GraphNode>{};
}

double HostEngine::between(EventId from, EventId to) {
  if (from >= events_.size() || to >= events_.size()) {
    fail("the time was asked of an event that nobody recorded");
    return 0;
  }
  const std::chrono::duration<double, std::micro> time = events_[to].when - events_[from].when;
  return time.count();
}

void HostEngine::forget_events() {
  events_.clear();
}

void HostEngine::fail(std::string what) {
  if (error_) return;
  error_ = Error{.kind = ErrorKind::Environment,
                 .message = label_.empty() ? fmt::format("host engine: {}", what)
                                           : fmt::format("host engine: {}: {}", label_, what),
                 .help = ""};
}

}  // namespace capo::run::host
