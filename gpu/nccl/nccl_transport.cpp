#include "gpu/nccl/nccl_transport.h"

#include "core/base/assert.h"
#include "gpu/nccl/between_devices.h"
#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

namespace capo::gpu {

namespace {

// Streams as a forest: those of one tree are joined by messages.
class Joined {
 public:
  explicit Joined(const std::vector<run::Ends>& ends) {
    for (const run::Ends& of : ends) root_[root(of.sender)] = root(of.receiver);
  }
  run::StreamId root(run::StreamId stream) {
    const auto at = root_.try_emplace(stream, stream).first;
    return at->second == stream ? stream : at->second = root(at->second);
  }

 private:
  std::map<run::StreamId, run::StreamId> root_;
};

constexpr int kEnded = 5;  // exit code

// Once it watches it ends all processes, unless it is gone within three timeouts: the report takes
// two at most, and NCCL may never come back once a process does not answer.
std::shared_ptr<Watchdog> end_of_all(run::Processes& processes) {
  return std::make_shared<Watchdog>(
      3 * processes.timeout(), [] { return true; },
      [library = &processes.library(), rank = processes.rank()] {
        std::fprintf(stderr,
                     "error: rank %d: NCCL does not come back from an exchange that was aborted\n",
                     static_cast<int>(rank));
        library->end_all(kEnded);
      });
}

}  // namespace

std::vector<std::vector<run::Message>> joined_by_streams(const std::vector<run::Ends>& ends,
                                                         const run::Division& division) {
  Joined joined(ends);
  std::map<run::StreamId, std::map<std::int32_t, std::set<run::StreamId>>>
      streams_of;  // by process
  for (const run::Ends& of : ends) {
    auto& all = streams_of[joined.root(of.sender)];
    all[division.home(of.message.channel.sender)].insert(of.sender);
    all[division.home(of.message.channel.receiver)].insert(of.receiver);
  }
  using Key = std::pair<run::StreamId, run::StreamId>;
  std::map<Key, std::vector<run::Message>> communicators;
  for (const run::Ends& of : ends) {
    const run::StreamId root = joined.root(of.sender);
    const auto& all = streams_of[root];
    const bool together =
        std::all_of(all.begin(), all.end(), [](const auto& one) { return one.second.size() == 1; });
    const Key key = together ? Key(root, root) : Key(std::minmax(of.sender, of.receiver));
    communicators[key].push_back(of.message);
  }
  std::vector<std::vector<run::Message>> all;
  for (auto& [key, messages] : communicators) all.push_back(std::move(messages));
  return all;
}

NcclTransport::NcclTransport(CudaEngine& engine, const NcclFunctions& nccl, const run::Apart& apart)
    : engine_(engine),
      nccl_(nccl),
      apart_(apart),
      communicators_(std::make_shared<Communicators>(nccl, apart.processes)),
      end_of_all_(end_of_all(apart.processes)),
      watchdog_(
          apart.processes.timeout(), [this] { return nothing_moves(); },
          [all = communicators_, end = end_of_all_] {
            end->watch();
            all->abort();
          }) {
}

NcclTransport::~NcclTransport() {
  for (const auto& [through, stream] : beside_) {
    static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamDestroy(stream)));
  }
  for (CUevent_st* const event : events_) {
    static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaEventDestroy(event)));
  }
}

void NcclTransport::expect(const run::Message& message, std::byte* place) {
  places_[message] = place;
}

void NcclTransport::prepare() {
  std::vector<std::vector<std::int32_t>> members;
  for (const auto& messages : joined_by_streams(apart_.ends, apart_.division)) {
    std::set<std::int32_t> processes;
    for (const run::Message& message : messages) {
      communicator_of_[message] = members.size();
      processes.insert(apart_.division.home(message.channel.sender));
      processes.insert(apart_.division.home(message.channel.receiver));
    }
    members.emplace_back(processes.begin(), processes.end());
  }
  std::byte* const scratch =
      engine_.allocate(std::int64_t{2} * apart_.processes.size(), "warming NCCL up");
  if (engine_.error()) return;
  if (auto failed = communicators_->make(members, scratch, engine_)) {
    communicators_->leave();
    failed->message = "rank " + std::to_string(apart_.division.of(apart_.processes.rank()).first) +
                      ": " + failed->message;
    error_ = std::move(failed);
  }
}

void NcclTransport::begin_step() {
  if (broken()) return;
  const auto late = begin_together(engine_, apart_, places_);
  if (late) return give_up({*late});
  {
    const std::scoped_lock lock(mutex_);
    issued_.clear();
    events_in_use_ = 0;
    over_ = 0;
  }
  watchdog_.watch();
}

void NcclTransport::end_step() {
  watchdog_.rest();
  static_cast<void>(broken());
}

void NcclTransport::send(run::StreamId stream, const run::Message& message, const std::byte* from) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a send reads what it is given
  auto* bytes = const_cast<std::byte*>(from);
  begun_[stream].push_back({.message = message, .end = run::End::Send, .bytes = bytes});
}

void NcclTransport::receive(run::StreamId stream, const run::Message& message) {
  begun_[stream].push_back(
      {.message = message, .end = run::End::Receive, .bytes = places_.at(message)});
}

void NcclTransport::finish(run::StreamId stream, const run::Message&, run::End) {
  if (!broken() && !begun_[stream].empty()) issue(stream);
}

void NcclTransport::issue(run::StreamId stream) {
  watchdog_.progress();
  CUstream_st* const on = engine_.stream(stream);
  std::vector<Issued> group = std::exchange(begun_[stream], {});
  const std::size_t first = issued_.size();
  {
    const std::scoped_lock lock(mutex_);
    issued_.insert(issued_.end(), group.begin(), group.end());
  }
  const Lanes lanes = lanes_of(group, on);
  if (error_) return;
  ncclResult_t result = nccl_.group_start();
  for (const Issued& of : group) {
    if (result == ncclSuccess) result = launch(of, lanes.at(communicator_of_.at(of.message)));
  }
  const ncclResult_t ended = nccl_.group_end();
  if (result == ncclSuccess) result = ended;
  if (broken()) return;
  if (result != ncclSuccess) {
    error_ = nccl_error(nccl_, "ncclGroupEnd", result);
    error_->message = "rank " + std::to_string(stuck(group.front()).rank) + ": " +
                      name_of(group.front().message, apart_.words) + ": " + error_->message;
    return;
  }
  end_lanes(lanes, on, first);
}

// A group is a kernel for each communicator. On one stream these would wait for each other, and a
// receive perhaps for what the send behind it brings about. So each but the first has a stream
// beside, which begins where the one that is given is, and which that one waits for.
NcclTransport::Lanes NcclTransport::lanes_of(const std::vector<Issued>& group, CUstream_st* on) {
  Lanes lanes;
  for (const Issued& of : group) {
    const std::size_t through = communicator_of_.at(of.message);
    if (!lanes.contains(through)) lanes[through] = lanes.empty() ? on : beside(through);
  }
  if (lanes.size() == 1) return lanes;
  CUevent_st* const begun = recorded(on);
  for (const auto& [through, lane] : lanes) {
    if (lane != on) wait(lane, begun);
  }
  return lanes;
}

CUstream_st* NcclTransport::beside(std::size_t communicator) {
  CUstream_st*& stream = beside_[communicator];
  if (stream != nullptr) return stream;
  const auto status =
      CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (!status.ok() && !error_) error_ = to_error("create a stream", status);
  return stream;
}

void NcclTransport::end_lanes(const Lanes& lanes, CUstream_st* on, std::size_t first) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamIsCapturing(on, &capture));
  const bool captured = capture != cudaStreamCaptureStatusNone;
  if (captured) communicators_->leave();
  if (!status.ok() && !error_) error_ = to_error("ask whether a stream is captured", status);
  if (!status.ok() || (captured && lanes.size() == 1)) return;
  std::map<std::size_t, CUevent_st*> over;
  for (const auto& [through, lane] : lanes) over[through] = recorded(lane);
  for (const auto& [through, lane] : lanes) {
    if (lane != on) wait(on, over.at(through));
  }
  if (captured) return;
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = first; i < issued_.size(); ++i) {
    issued_[i].over = over.at(communicator_of_.at(issued_[i].message));
  }
}

// If CUDA records no event this is null, and what is before it counts as under way.
CUevent_st* NcclTransport::recorded(CUstream_st* stream) {
  CUevent_st* const made = event();
  if (made == nullptr) return nullptr;
  return CAPO_CUDA_CHECK_NOEXCEPT(cudaEventRecord(made, stream)).ok() ? made : nullptr;
}

void NcclTransport::wait(CUstream_st* stream, CUevent_st* event) {
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamWaitEvent(stream, event, 0));
  if (!status.ok() && !error_) error_ = to_error("let a stream wait for messages", status);
}

ncclResult_t NcclTransport::launch(const Issued& of, CUstream_st* stream) {
  const bool sends = of.end == run::End::Send;
  const run::Channel& channel = of.message.channel;
  const std::size_t through = communicator_of_.at(of.message);
  const int peer = communicators_->number_of(
      apart_.division.home(sends ? channel.receiver : channel.sender), through);
  const auto bytes = static_cast<std::size_t>(of.message.bytes);
  ncclComm_t const comm = communicators_->at(through);
  return sends ? nccl_.send(of.bytes, bytes, ncclInt8, peer, comm, stream)
               : nccl_.receive(of.bytes, bytes, ncclInt8, peer, comm, stream);
}

bool NcclTransport::is_over(const Issued& of) {
  return of.over != nullptr && CAPO_CUDA_CHECK_NOEXCEPT(cudaEventQuery(of.over)).ok();
}

CUevent_st* NcclTransport::event() {
  if (events_in_use_ == events_.size()) {
    cudaEvent_t made = nullptr;
    if (!CAPO_CUDA_CHECK_NOEXCEPT(cudaEventCreate(&made)).ok()) return nullptr;
    events_.push_back(made);
  }
  return events_[events_in_use_++];
}

run::StuckRank NcclTransport::stuck(const Issued& of) const {
  const bool sends = of.end == run::End::Send;
  const run::Channel& channel = of.message.channel;
  const std::int32_t peer = sends ? channel.receiver : channel.sender;
  return {.rank = sends ? channel.sender : channel.receiver,
          .awaited = peer,
          .words = "waits for rank " + std::to_string(peer) + " to " +
                   (sends ? "receive " : "send ") + name_of(of.message, apart_.words)};
}

// Runs on the watchdog's thread, while the other one waits for the device or for NCCL. The device
// may be behind with what was launched long ago, and messages end all the same.
bool NcclTransport::nothing_moves() {
  const std::scoped_lock lock(mutex_);
  static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaSetDevice(engine_.ordinal())));
  const auto over = std::count_if(issued_.begin(), issued_.end(), is_over);
  if (std::exchange(over_, over) < over) return false;
  note_what_waits();
  return true;
}

void NcclTransport::note_what_waits() {
  const run::RankRange own = apart_.division.of(apart_.processes.rank());
  for (std::int32_t rank = own.first; rank < own.end; ++rank) {
    stuck_.push_back(
        {.rank = rank,
         .words = issued_.empty() ? "waits in the graph of its step" : "has no message under way"});
  }
  for (auto of = issued_.rbegin(); of != issued_.rend(); ++of) {
    if (is_over(*of)) continue;
    const run::StuckRank waits = stuck(*of);
    stuck_[static_cast<std::size_t>(waits.rank - own.first)] = waits;
  }
}

bool NcclTransport::broken() {
  if (error_) return true;
  std::vector<run::StuckRank> all;
  {
    const std::scoped_lock lock(mutex_);
    all = stuck_;
  }
  if (all.empty()) return false;
  give_up(all);
  return true;
}

// Whatever NCCL or CUDA waits for from here on, this process is not to wait with them for ever.
void NcclTransport::give_up(const std::vector<run::StuckRank>& own) {
  communicators_->leave();
  end_of_all_->watch();
  error_ = Error{.kind = ErrorKind::Environment,
                 .message = stuck_state_of(apart_.processes, own, apart_.division.ranks),
                 .help = "--timeout says how long a message may take"};
}

Result<run::BetweenFactory> messages_of_nccl() {
  const auto nccl = nccl_functions();
  if (!nccl) return nccl.error();
  return run::BetweenFactory([&nccl = **nccl](run::Engine& engine, const run::Apart& apart) {
    auto* const cuda = dynamic_cast<CudaEngine*>(&engine);
    CAPO_ASSERT(cuda != nullptr, "NCCL moves the memory of CUDA devices");
    return std::make_unique<NcclTransport>(*cuda, nccl, apart);
  });
}

}  // namespace capo::gpu
