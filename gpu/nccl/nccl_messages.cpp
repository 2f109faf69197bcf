#include "gpu/nccl/nccl_messages.h"

#include "core/base/assert.h"
#include "gpu/nccl/between_devices.h"
#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo::gpu {

NcclMessages::NcclMessages(CudaEngine& engine, const NcclFunctions& nccl, run::Processes& processes,
                           Layout layout, std::int64_t message_bytes)
    : engine_(engine),
      nccl_(nccl),
      processes_(processes),
      layout_(std::move(layout)),
      bytes_(message_bytes),
      scratch_(engine.allocate(std::int64_t{2} * processes.size(), "warming NCCL up")) {
  make();
}

NcclMessages::~NcclMessages() {
  if (cancelled_ && !abort()) return;  // CUDA would wait for what hangs before it gave memory back
  forget_requests();
  for (std::byte* const buffer : spare_) engine_.release(buffer);
}

NcclMessages::Way NcclMessages::way_of(int communicator, int from, int to) const {
  using enum capo::Communicators;
  const bool by_all = layout_.of == PerRank || layout_.of == PerDirection ||
                      (layout_.of == LazyHybrid && communicator < 2);
  if (by_all) return {.communicator = communicator};
  if (layout_.of == PerEdge) return {.communicator = communicator, .a = from, .b = to};
  return {.communicator = communicator, .a = std::min(from, to), .b = std::max(from, to)};
}

// A stream of the engine belongs to each, behind the first.
void NcclMessages::make() {
  communicators_ = std::make_shared<Communicators>(nccl_, processes_);
  number_.clear();
  std::vector<std::vector<std::int32_t>> members;
  for (const int communicator : layout_.used) {
    for (int from = 0; from < size(); ++from) {
      for (int to = 0; to < size(); ++to) {
        const Way way = way_of(communicator, from, to);
        if (from == to || !number_.try_emplace(way, members.size()).second) continue;
        std::vector<std::int32_t>& all = members.emplace_back();
        if (way.a < 0) {
          all.resize(static_cast<std::size_t>(size()));
          std::iota(all.begin(), all.end(), 0);
        } else {
          all = {std::min(from, to), std::max(from, to)};
        }
      }
    }
  }
  engine_.have_streams(static_cast<std::uint32_t>(members.size()) + 1);
  if (engine_.error()) return fail(engine_.error()->message);
  if (const auto failed = communicators_->make(members, scratch_, engine_)) {
    communicators_->leave();
    fail(failed->message);
  }
}

// False if NCCL, or the device, does not come back within the timeout.
bool NcclMessages::abort() {
  const bool back = comes_back(
      processes_.timeout(), [communicators = communicators_, device = engine_.ordinal()] {
        static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaSetDevice(device)));
        communicators->abort();
        static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaDeviceSynchronize()));
      });
  if (!back) fail("NCCL does not come back from communicators that were aborted");
  return back;
}

void NcclMessages::renew() {
  if (!error_.empty() || !abort()) return;
  cancelled_ = false;
  forget_requests();
  make();
}

// None of them is under way any more.
void NcclMessages::forget_requests() {
  for (const Request& request : requests_) {
    if (request.over != nullptr) {
      static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaEventDestroy(request.over)));
    }
    if (request.buffer != nullptr) spare_.push_back(request.buffer);
  }
  requests_.clear();
}

void NcclMessages::have_room(std::size_t messages) {
  while (spare_.size() < messages) {
    std::byte* const buffer = engine_.allocate(bytes_, "a message");
    if (buffer == nullptr) return fail(engine_.error()->message);
    spare_.push_back(buffer);
  }
}

CUstream_st* NcclMessages::stream_of(const Request& request) const {
  return engine_.stream(static_cast<run::StreamId>(request.through + 1));
}

std::byte* NcclMessages::buffer() {
  if (spare_.empty()) return engine_.allocate(bytes_, "a message");
  std::byte* const last = spare_.back();
  spare_.pop_back();
  return last;
}

int NcclMessages::send(int communicator, int to, int, const run::Piece (&pieces)[2], Mode) {
  return add({.sends = true,
              .through = number_.at(way_of(communicator, rank(), to)),
              .peer = to,
              .piece = pieces[0]});
}

int NcclMessages::receive(int communicator, int from, int, const run::Piece (&pieces)[2]) {
  return add({.sends = false,
              .through = number_.at(way_of(communicator, from, rank())),
              .peer = from,
              .piece = pieces[0]});
}

int NcclMessages::add(Request request) {
  const int id = static_cast<int>(requests_.size());
  request.buffer = buffer();
  requests_.push_back(request);
  group_ ? group_->push_back(id) : begin({id});
  return id;
}

void NcclMessages::begin_group() {
  group_.emplace();
}

void NcclMessages::end_group() {
  const auto all = std::exchange(group_, std::nullopt);
  if (all && !all->empty()) begin(*all);
}

void NcclMessages::stamp(const Request& request, CUstream_st* stream) {
  const auto bytes = static_cast<std::size_t>(request.piece.bytes);
  for (std::byte* const place : {request.buffer, request.buffer + bytes_ - request.piece.bytes}) {
    const auto status = CAPO_CUDA_CHECK_NOEXCEPT(
        cudaMemcpyAsync(place, request.piece.begin, bytes, cudaMemcpyHostToDevice, stream));
    if (!status.ok()) fail(to_error("write a message", status).message);
  }
}

bool NcclMessages::launch(const Request& request) {
  const int peer = communicators_->number_of(request.peer, request.through);
  CUstream_st* const stream = stream_of(request);
  const auto bytes = static_cast<std::size_t>(bytes_);
  ncclComm_t const comm = communicators_->at(request.through);
  const ncclResult_t result =
      request.sends ? nccl_.send(request.buffer, bytes, ncclInt8, peer, comm, stream)
                    : nccl_.receive(request.buffer, bytes, ncclInt8, peer, comm, stream);
  if (result != ncclSuccess) fail(nccl_error(nccl_, "ncclSend or ncclRecv", result).message);
  return result == ncclSuccess;
}

void NcclMessages::begin(const std::vector<int>& requests) {
  if (engine_.error()) fail(engine_.error()->message);
  if (!error_.empty()) return;
  const auto at = [&](int id) -> Request& { return requests_[static_cast<std::size_t>(id)]; };
  for (const int id : requests) {
    if (at(id).sends) stamp(at(id), stream_of(at(id)));
  }
  if (const ncclResult_t begun = nccl_.group_start(); begun != ncclSuccess) {
    return fail(nccl_error(nccl_, "ncclGroupStart", begun).message);
  }
  for (const int id : requests) {
    if (!launch(at(id))) break;
  }
  const ncclResult_t result = nccl_.group_end();
  if (result != ncclSuccess) return fail(nccl_error(nccl_, "ncclGroupEnd", result).message);
  for (const int id : requests) {
    auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaEventCreate(&at(id).over));
    if (!status.ok()) return fail(to_error("create an event", status).message);
    status = CAPO_CUDA_CHECK_NOEXCEPT(cudaEventRecord(at(id).over, stream_of(at(id))));
    if (!status.ok()) return fail(to_error("record an event", status).message);
  }
}

bool NcclMessages::over(int request) {
  Request& of = requests_[static_cast<std::size_t>(request)];
  if (!error_.empty() || of.over == nullptr) return false;
  const auto asked = CAPO_CUDA_CHECK_NOEXCEPT(cudaEventQuery(of.over));
  if (asked.code == cudaErrorNotReady) return false;
  if (!asked.ok()) {
    fail(to_error("ask an event", asked).message);
    return false;
  }
  if (!of.sends) {
    const auto bytes = static_cast<std::size_t>(of.piece.bytes);
    const auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaMemcpy(
        of.piece.begin, of.buffer + bytes_ - of.piece.bytes, bytes, cudaMemcpyDeviceToHost));
    if (!status.ok()) fail(to_error("read a message", status).message);
  }
  static_cast<void>(CAPO_CUDA_CHECK_NOEXCEPT(cudaEventDestroy(std::exchange(of.over, nullptr))));
  spare_.push_back(std::exchange(of.buffer, nullptr));
  return true;
}

// The buffer stays in use until the communicators are renewed.
void NcclMessages::cancel(int) {
  cancelled_ = true;
}

void NcclMessages::fail(const std::string& what) {
  if (error_.empty()) error_ = "rank " + std::to_string(rank()) + ": " + what;
}

Result<std::unique_ptr<run::MessageLibrary>> walk_of_nccl(run::Engine& engine,
                                                          run::Processes& processes,
                                                          capo::Communicators layout,
                                                          std::vector<int> used) {
  // NCCL has no room for a message of that size, so that a send waits for its receive.
  constexpr std::int64_t kLarge = std::int64_t{256} << 20;
  const auto nccl = nccl_functions();
  if (!nccl) return nccl.error();
  auto* const cuda = dynamic_cast<CudaEngine*>(&engine);
  CAPO_ASSERT(cuda != nullptr, "NCCL moves the memory of CUDA devices");
  return std::unique_ptr<run::MessageLibrary>(std::make_unique<NcclMessages>(
      *cuda, **nccl, processes, Layout{.of = layout, .used = std::move(used)}, kLarge));
}

}  // namespace capo::gpu
