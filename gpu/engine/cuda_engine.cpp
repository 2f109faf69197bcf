#include "gpu/engine/cuda_engine.h"

#include "gpu/kernels/kernels.h"
#include "gpu/runtime/check.h"
#include "gpu/runtime/device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace capo::gpu {

namespace {

// A handle of CUDA's as a value that owns what it names; `Destroy` gives it back, and without a
// word, since a destructor can tell nobody, and an error that broke the context comes back from
// every call that follows.
template <typename Handle, cudaError_t (*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle_ != nullptr) static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(Destroy(handle_)));
  }

  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

struct CapturedGraph {
  Graph graph;
  GraphExec exec;
  std::string label;  // the one at the beginning of its capture
};

struct OpenCapture {
  run::StreamId origin = 0;
  std::string label;
};

// Adds the microseconds of a call of the driver to a sum.
template <typename Call>
CudaStatus timed(double& sum, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  const CudaStatus status = call();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  sum += took.count();
  return status;
}

}  // namespace

struct CudaEngine::State {
  int ordinal = 0;
  std::map<std::byte*, std::int64_t> memory;
  std::vector<Stream> streams;
  std::vector<Event> events;  // those in use come first, then spare ones
  std::size_t events_in_use = 0;
  std::vector<CapturedGraph> graphs;
  run::GraphTimes times;
  std::optional<OpenCapture> open;
  Room room = Room::All;
};

Result<std::unique_ptr<CudaEngine>> CudaEngine::make(int ordinal) {
  const auto devices = list_devices();
  if (!devices) return devices.error();
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices->size()) {
    return Error{.kind = ErrorKind::Environment,
                 .message = "there is no CUDA device " + std::to_string(ordinal),
                 .help = "`capo devices` lists those that there are"};
  }
  const Device& device = (*devices)[static_cast<std::size_t>(ordinal)];
  if (device.capability < ComputeCapability{.major = 8, .minor = 0}) {
    return Error{.kind = ErrorKind::Environment,
                 .message = "capo's kernels need a device of capability 8.0, and " + device.name +
                            " has " + std::to_string(device.capability.major) + "." +
                            std::to_string(device.capability.minor),
                 .help = "--device host runs the same plan on this machine's processor"};
  }
  CAPO_CUDA_TRY("use device " + std::to_string(ordinal), cudaSetDevice(ordinal));
  auto state = std::make_unique<State>();
  state->ordinal = ordinal;
  std::unique_ptr<CudaEngine> engine(new CudaEngine(device.name, std::move(state)));
  engine->have_streams(1);
  if (engine->error_) return *engine->error_;
  return engine;
}

CudaEngine::CudaEngine(std::string device, std::unique_ptr<State> state)
    : device_(std::move(device)), state_(std::move(state)) {
}

CudaEngine::~CudaEngine() {
  end_open_capture();
  static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaDeviceSynchronize()));
  for (const auto& [memory, bytes] : state_->memory) {
    static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaFree(memory)));
  }
}

std::byte* CudaEngine::allocate(std::int64_t bytes, std::string_view what) {
  if (error_) return nullptr;
  void* memory = nullptr;
  // A tensor of no elements has an address too.
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaMalloc(&memory, size));
  if (!status.ok()) {
    fail("allocate " + std::to_string(bytes) + " bytes of " + std::string(what), status);
    return nullptr;
  }
  auto* allocated = static_cast<std::byte*>(memory);
  state_->memory.emplace(allocated, bytes);
  return allocated;
}

void CudaEngine::release(std::byte* memory) {
  if (error_ || !state_->memory.contains(memory)) return;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaFree(memory));
  if (!status.ok()) return fail("give memory back", status);
  state_->memory.erase(memory);
}

void CudaEngine::write(void* to, const void* from, std::int64_t bytes) {
  synchronise();
  if (error_) return;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice));
  if (!status.ok()) fail("write " + std::to_string(bytes) + " bytes to the device", status);
}

void CudaEngine::read(void* to, const void* from, std::int64_t bytes) {
  synchronise();
  if (error_) return;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost));
  if (!status.ok()) fail("read " + std::to_string(bytes) + " bytes from the device", status);
}

void CudaEngine::have_streams(std::uint32_t count) {
  while (!error_ && state_->streams.size() < count) {
    cudaStream_t stream = nullptr;
    const auto status =
        CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!status.ok()) return fail("create a stream", status);
    state_->streams.emplace_back(stream);
  }
}

int CudaEngine::ordinal() const {
  return state_->ordinal;
}

CUstream_st* CudaEngine::stream(run::StreamId stream) const {
  return state_->streams[stream].get();
}

void CudaEngine::leave_room_for_exchanges() {
  state_->room = Room::LeaveToExchanges;
}

bool CudaEngine::knows(run::StreamId stream) {
  if (stream < state_->streams.size()) return true;
  misuse("there is no stream " + std::to_string(stream));
  return false;
}

// Keeps an error of the program that drives the engine.
void CudaEngine::misuse(std::string what) {
  keep({.kind = ErrorKind::Environment,
        .message = "cuda engine: " + (label_.empty() ? "" : label_ + ": ") + what,
        .help = ""});
}

void CudaEngine::launch(run::StreamId stream, const run::Call& call) {
  if (error_ || !knows(stream)) return;
  const CudaStatus status = gpu::launch(call, state_->streams[stream].get(), state_->room);
  if (!status.ok()) fail("launch " + std::string(name_of(call)), status);
}

run::EventId CudaEngine::record(run::StreamId stream) {
  if (error_ || !knows(stream)) return 0;
  if (state_->events_in_use == state_->events.size()) {
    cudaEvent_t event = nullptr;
    const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaEventCreate(&event));
    if (!status.ok()) {
      fail("create an event", status);
      return 0;
    }
    state_->events.emplace_back(event);
  }
  const std::size_t id = state_->events_in_use++;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaEventRecord(state_->events[id].get(), state_->streams[stream].get()));
  if (!status.ok()) fail("record an event", status);
  return static_cast<run::EventId>(id);
}

void CudaEngine::wait(run::StreamId stream, run::EventId event) {
  if (error_ || !knows(stream)) return;
  if (event >= state_->events_in_use)
    return misuse("a stream waits for an event that nobody recorded");
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaStreamWaitEvent(state_->streams[stream].get(), state_->events[event].get(), 0));
  if (!status.ok()) fail("let a stream wait for an event", status);
}

void CudaEngine::synchronise() {
  if (error_) return;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaDeviceSynchronize());
  if (!status.ok()) fail("wait for the device", status);
}

double CudaEngine::between(run::EventId from, run::EventId to) {
  if (error_) return 0;
  if (from >= state_->events_in_use || to >= state_->events_in_use) {
    misuse("the time was asked of an event that nobody recorded");
    return 0;
  }
  float milliseconds = 0;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaEventElapsedTime(&milliseconds, state_->events[from].get(), state_->events[to].get()));
  if (!status.ok()) fail("read the time between two events", status);
  return static_cast<double>(milliseconds) * 1000;
}

void CudaEngine::forget_events() {
  state_->events_in_use = 0;
}

void CudaEngine::begin_capture(run::StreamId origin) {
  if (error_ || !knows(origin)) return;
  const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
      cudaStreamBeginCapture(state_->streams[origin].get(), cudaStreamCaptureModeThreadLocal));
  if (!status.ok()) return fail("begin a capture", status);
  state_->open = OpenCapture{.origin = origin, .label = label_};
}

run::GraphId CudaEngine::end_capture() {
  if (error_ || !state_->open) return 0;
  OpenCapture open = *std::exchange(state_->open, std::nullopt);
  const cudaStream_t origin = state_->streams[open.origin].get();
  const auto id = static_cast<run::GraphId>(state_->graphs.size());
  CapturedGraph& captured = state_->graphs.emplace_back();
  captured.label = std::move(open.label);
  cudaGraph_t graph = nullptr;
  auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamEndCapture(origin, &graph));
  captured.graph = Graph(graph);
  if (!status.ok()) {
    keep(to_error("end the capture of " + graph_text(id), status));
    return id;
  }
  cudaGraphExec_t exec = nullptr;
  status = timed(state_->times.instantiate,
                 [&] { return CAPO_CUDA_CHECK_NOEXCEPT(cudaGraphInstantiate(&exec, graph, 0)); });
  captured.exec = GraphExec(exec);
  if (!status.ok()) {
    keep(to_error("instantiate " + graph_text(id), status));
    return id;
  }
  status = timed(state_->times.upload,
                 [&] { return CAPO_CUDA_CHECK_NOEXCEPT(cudaGraphUpload(exec, origin)); });
  if (!status.ok()) keep(to_error("upload " + graph_text(id), status));
  return id;
}

void CudaEngine::replay(run::GraphId graph, run::StreamId stream) {
  if (error_ || !knows(stream)) return;
  if (graph >= state_->graphs.size()) return misuse("a graph was replayed that nobody captured");
  const auto status = timed(state_->times.launch, [&] {
    return CAPO_CUDA_CHECK_NOEXCEPT(
        cudaGraphLaunch(state_->graphs[graph].exec.get(), state_->streams[stream].get()));
  });
  if (!status.ok()) keep(to_error("replay " + graph_text(graph), status));
}

run::GraphTimes CudaEngine::graph_times() const {
  return state_->times;
}

std::vector<run::GraphNode> CudaEngine::inspect(run::GraphId graph) {
  if (error_ || graph >= state_->graphs.size()) return {};
  auto nodes = read_graph(state_->graphs[graph].graph.get(), graph_text(graph));
  if (nodes) return *std::move(nodes);
  keep(nodes.error());
  return {};
}

std::string CudaEngine::graph_text(run::GraphId graph) const {
  const std::string& label = state_->graphs[graph].label;
  return "graph " + std::to_string(graph) + (label.empty() ? "" : " (" + label + ")");
}

void CudaEngine::fail(std::string_view tried, const CudaStatus& status) {
  std::string where = label_;
  if (state_->open) {
    where += (where.empty() ? "" : ", ") + std::string("captured into graph ") +
             std::to_string(state_->graphs.size());
  }
  std::string what(tried);
  if (!where.empty()) what += " (" + where + ")";
  keep(to_error(what, status));
}

void CudaEngine::keep(Error error) {
  if (error_) return;
  error_ = std::move(error);
  end_open_capture();
}

// A stream that stays in capture mode would refuse everything that comes later.
void CudaEngine::end_open_capture() {
  if (!state_->open) return;
  const run::StreamId origin = std::exchange(state_->open, std::nullopt)->origin;
  cudaGraph_t graph = nullptr;
  static_cast<void>(
      CAPO_CUDA_CHECK_NOEXCEPT(cudaStreamEndCapture(state_->streams[origin].get(), &graph)));
  const Graph dropped(graph);
}

}  // namespace capo::gpu
