// The engine on a CUDA device: it has real streams, events and graphs, in the words of engine.h.
//
// Captures are thread-local stream captures; a graph is instantiated and uploaded when its capture
// ends, and its kernels are read back from CUDA itself. Memory comes from cudaMalloc and stays
// where it is.
//
// A failed call is quoted with CUDA's name and text for the error, with its purpose, the graph and
// the task: the label that was current or, for a graph that is replayed or read back, the one that
// it was captured under:
//
//   cannot launch a grouped product (W of chunk 1, microbatch 2 of rank 0, captured into graph 3):
//   cudaLaunchKernel(...) gave cudaErrorStreamCaptureInvalidated (operation failed due to a
//   previous error during capture) at gpu/kernels/kernels.cpp:48
//
// The first error is kept, and a capture that is open then is ended, so that nothing hangs and no
// stream stays in capture mode. Destructors are silent. A failure on the device while it runs comes
// to light at a later call, which the message then names; its help says so.
//
// This header needs no CUDA header. Tested on a device by engine_test.cpp and runs_test.cpp; with
// each call of CUDA failing in turn by failures_test.cpp.

#pragma once

#include "core/base/error.h"
#include "core/base/result.h"
#include "gpu/runtime/check.h"
#include "run/engine/engine.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct CUgraph_st;
struct CUstream_st;

namespace capo::gpu {

class CudaEngine final : public run::Engine {
 public:
  /// Makes an engine on the device of this ordinal; an error says why there is none.
  [[nodiscard]] static Result<std::unique_ptr<CudaEngine>> make(int ordinal = 0);
  ~CudaEngine() override;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] std::string device() const override { return device_; }

  [[nodiscard]] std::byte* allocate(std::int64_t bytes, std::string_view what) override;
  void release(std::byte* memory) override;
  void write(void* to, const void* from, std::int64_t bytes) override;
  void read(void* to, const void* from, std::int64_t bytes) override;

  void have_streams(std::uint32_t count) override;
  void leave_room_for_exchanges() override;
  void launch(run::StreamId stream, const run::Call& call) override;
  [[nodiscard]] run::EventId record(run::StreamId stream) override;
  void wait(run::StreamId stream, run::EventId event) override;

  void begin_capture(run::StreamId origin) override;
  [[nodiscard]] run::GraphId end_capture() override;
  void replay(run::GraphId graph, run::StreamId stream) override;
  [[nodiscard]] std::vector<run::GraphNode> inspect(run::GraphId graph) override;
  [[nodiscard]] run::GraphTimes graph_times() const override;

  void synchronise() override;
  [[nodiscard]] double between(run::EventId from, run::EventId to) override;
  void forget_events() override;

  void label(std::string_view what) override { label_ = what; }
  [[nodiscard]] const std::optional<Error>& error() const override { return error_; }

  /// The device, as cudaSetDevice takes it, and a stream, for libraries that launch by themselves.
  [[nodiscard]] int ordinal() const;
  [[nodiscard]] CUstream_st* stream(run::StreamId stream) const;

 private:
  struct State;
  CudaEngine(std::string device, std::unique_ptr<State> state);

  void fail(std::string_view tried, const CudaStatus& status);
  void misuse(std::string what);
  void keep(Error error);
  [[nodiscard]] std::string graph_text(run::GraphId graph) const;
  void end_open_capture();
  [[nodiscard]] bool knows(run::StreamId stream);

  std::string device_;
  std::unique_ptr<State> state_;
  std::string label_;
  std::optional<Error> error_;
};

/// Reads a captured graph back from CUDA: its nodes, the calls that their kernels take, and its
/// edges. The engine remembers none of the capture, since CUDA will replay what CUDA says. A node
/// that is no kernel of capo's is an error. `name` is what an error calls the graph: "graph 3 (W of
/// chunk 1, microbatch 2 of rank 0)".
[[nodiscard]] Result<std::vector<run::GraphNode>> read_graph(CUgraph_st* graph,
                                                             const std::string& name);

}  // namespace capo::gpu
