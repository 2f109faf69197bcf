// The transport of ranks on several GPUs, a process each: messages of NCCL, from device to device.
//
// Transfers whose streams are joined by messages have a communicator together, and the processes at
// their ends are its members. So communicators are laid out as the environment declares: one for
// all ranks if each rank has one stream for all its transfers, one for each two ranks, direction or
// edge if these have streams of their own. Where a process has several ranks NCCL cannot have two
// of them in one communicator; each two ranks have one then, still on the streams of the plan.
//
// send() and receive() take note. The first finish() on a stream puts all that has begun there
// between ncclGroupStart and ncclGroupEnd, on that stream, so that members of a fused group are one
// group; what it has for each communicator is on a stream of its own then. A call only launches:
// what waits is a kernel, and whoever needs the message waits for the stream by an event. NCCL
// matches by order, knows no tags, and gives a receive whatever comes; a message for another
// receive shows in the gradients. Graphs may hold the calls.
//
// When nothing new was launched and no message ended for longer than the timeout, and the step is
// not over, a thread asks which messages are still under way and aborts the communicators, which
// ends their kernels. Within a graph that holds messages none is seen to end, so that a replay of
// one has to be over within the timeout. The error is then the stuck state of all ranks, as that of
// processes is. Tested by nccl_test.cpp with a library in software, and on devices by
// bench/gpu/nccl.sh.

#pragma once

#include "gpu/engine/cuda_engine.h"
#include "gpu/nccl/communicators.h"
#include "run/processes/between_processes.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

struct CUevent_st;
struct CUstream_st;

namespace capo::gpu {

class NcclTransport final : public run::Transport {
 public:
  NcclTransport(CudaEngine& engine, const NcclFunctions& nccl, const run::Apart& apart);
  ~NcclTransport() override;

  void expect(const run::Message& message, std::byte* place) override;
  void prepare() override;
  void begin_step() override;
  void end_step() override;
  void send(run::StreamId stream, const run::Message& message, const std::byte* from) override;
  void receive(run::StreamId stream, const run::Message& message) override;
  void finish(run::StreamId stream, const run::Message& message, run::End end) override;
  [[nodiscard]] const std::optional<Error>& error() const override { return error_; }

 private:
  // An end of a message; its event is null while it is being launched, and in a capture.
  struct Issued {
    run::Message message;
    run::End end = run::End::Send;
    std::byte* bytes = nullptr;
    CUevent_st* over = nullptr;
  };

  using Lanes = std::map<std::size_t, CUstream_st*>;  // by communicator: the stream of its kernel

  [[nodiscard]] bool broken();
  [[nodiscard]] CUstream_st* beside(std::size_t communicator);
  [[nodiscard]] Lanes lanes_of(const std::vector<Issued>& group, CUstream_st* on);
  void end_lanes(const Lanes& lanes, CUstream_st* on, std::size_t first);
  [[nodiscard]] CUevent_st* recorded(CUstream_st* stream);
  void wait(CUstream_st* stream, CUevent_st* event);
  void issue(run::StreamId stream);
  [[nodiscard]] ncclResult_t launch(const Issued& of, CUstream_st* stream);
  [[nodiscard]] static bool is_over(const Issued& of);
  [[nodiscard]] bool nothing_moves();
  void note_what_waits();
  void give_up(const std::vector<run::StuckRank>& own);
  [[nodiscard]] run::StuckRank stuck(const Issued& of) const;
  [[nodiscard]] CUevent_st* event();

  CudaEngine& engine_;
  const NcclFunctions& nccl_;
  run::Apart apart_;
  std::shared_ptr<Communicators> communicators_;
  std::map<run::Message, std::size_t> communicator_of_;
  std::map<run::Message, std::byte*> places_;
  std::map<run::StreamId, std::vector<Issued>> begun_;
  std::map<std::size_t, CUstream_st*> beside_;  // by communicator
  std::vector<CUevent_st*> events_;
  std::size_t events_in_use_ = 0;
  std::mutex mutex_;                   // of what follows, which the watchdog reads
  std::vector<Issued> issued_;         // in this step
  std::ptrdiff_t over_ = 0;            // of those, when the watchdog last asked
  std::vector<run::StuckRank> stuck_;  // when the watchdog gave up
  std::optional<Error> error_;
  std::shared_ptr<Watchdog> end_of_all_;
  Watchdog watchdog_;  // ends first
};

/// The communicators of these messages, each as the messages that go through it.
[[nodiscard]] std::vector<std::vector<run::Message>> joined_by_streams(
    const std::vector<run::Ends>& ends, const run::Division& division);

}  // namespace capo::gpu
