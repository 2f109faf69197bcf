// NCCL as a library of messages, for orders that are walked without tensors
// (run/processes/walk_all.h).
//
// A message is a buffer of the device, as large as it is told to be, since whether NCCL waits for
// the other side depends on that: what fits into its own buffers is sent at once. The piece that is
// given stands at its beginning and its end; the rest is nobody's. A communicator has a stream of
// its own, as one of torch.distributed has.
//
// Communicators are made once, for one layout, and used by walk after walk. What was cancelled
// still hangs in them: cancelled() says so, and renew() aborts them all and makes new ones, in all
// processes alike. Either takes no longer than the timeout of the processes, or is an error. Memory
// is taken by have_room(), before anything moves, because CUDA may wait for the device when it is
// asked for some. Rank, meetings and ends are those of the processes. Tested by nccl_test.cpp.

#pragma once

#include "core/model/environment.h"
#include "gpu/engine/cuda_engine.h"
#include "gpu/nccl/communicators.h"
#include "run/mpi/message_library.h"
#include "run/processes/processes.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

struct CUevent_st;

namespace capo::gpu {

/// The layout of communicators, and the numbers of those between two ranks that transfers use
/// (core/graph/meetings.h).
struct Layout {
  capo::Communicators of = capo::Communicators::PerRank;
  std::vector<int> used = {0};
};

class NcclMessages final : public run::MessageLibrary {
 public:
  NcclMessages(CudaEngine& engine, const NcclFunctions& nccl, run::Processes& processes,
               Layout layout, std::int64_t message_bytes);
  ~NcclMessages() override;

  [[nodiscard]] const char* name() const override { return "NCCL"; }
  void start() override {}
  [[nodiscard]] int rank() const override { return processes_.rank(); }
  [[nodiscard]] int size() const override { return processes_.size(); }
  [[nodiscard]] int add_communicators(int) override { return 0; }
  void have_room(std::size_t messages) override;
  [[nodiscard]] int send(int communicator, int to, int tag, const run::Piece (&pieces)[2],
                         Mode mode) override;
  [[nodiscard]] int receive(int communicator, int from, int tag,
                            const run::Piece (&pieces)[2]) override;
  void begin_group() override;
  void end_group() override;
  [[nodiscard]] int meet() override { return processes_.library().meet(); }
  [[nodiscard]] bool over(int request) override;
  void cancel(int request) override;
  void leave() override {}
  void end_all(int code) override { processes_.library().end_all(code); }
  [[nodiscard]] const char* error() const override {
    return error_.empty() ? nullptr : error_.c_str();
  }

  [[nodiscard]] bool cancelled() const { return cancelled_; }
  /// All processes call.
  void renew();

 private:
  struct Request {
    bool sends = false;
    std::size_t through = 0;  // a communicator
    int peer = 0;
    run::Piece piece;
    std::byte* buffer = nullptr;
    CUevent_st* over = nullptr;
  };

  // Messages of one way go through one communicator: the number between two ranks, and the two
  // ranks that have it for themselves; in order if it is of one direction, -1 if all ranks have it.
  struct Way {
    int communicator = 0;
    int a = -1;
    int b = -1;

    friend auto operator<=>(const Way&, const Way&) = default;
  };
  [[nodiscard]] Way way_of(int communicator, int from, int to) const;

  void make();
  [[nodiscard]] bool abort();
  void forget_requests();
  int add(Request request);
  void begin(const std::vector<int>& requests);
  void stamp(const Request& request, CUstream_st* stream);
  [[nodiscard]] bool launch(const Request& request);
  void fail(const std::string& what);
  [[nodiscard]] std::byte* buffer();
  [[nodiscard]] CUstream_st* stream_of(const Request& request) const;

  CudaEngine& engine_;
  const NcclFunctions& nccl_;
  run::Processes& processes_;
  Layout layout_;
  std::int64_t bytes_;
  std::shared_ptr<Communicators> communicators_;
  std::map<Way, std::size_t> number_;
  std::byte* scratch_ = nullptr;
  std::vector<Request> requests_;
  std::vector<std::byte*> spare_;
  std::optional<std::vector<int>> group_;
  bool cancelled_ = false;
  std::string error_;
};

}  // namespace capo::gpu
