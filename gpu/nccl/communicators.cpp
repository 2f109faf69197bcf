#include "gpu/nccl/communicators.h"

#include "gpu/engine/cuda_engine.h"
#include "gpu/kernels/kernels.h"
#include "gpu/runtime/check.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>

namespace capo::gpu {

namespace {

constexpr const char* kTimeoutHelp = "--timeout says how long that may take";

Error silent() {
  return {.kind = ErrorKind::Environment,
          .message = "the identities of NCCL's communicators did not come from rank 0",
          .help = kTimeoutHelp};
}

Error not_back() {
  return {.kind = ErrorKind::Environment,
          .message = "NCCL does not come back from making communicators: a process does not answer",
          .help = kTimeoutHelp};
}

int number_in(const std::vector<std::int32_t>& members, std::int32_t process) {
  return static_cast<int>(std::find(members.begin(), members.end(), process) - members.begin());
}

}  // namespace

bool comes_back(std::chrono::duration<double> timeout, std::function<void()> call) {
  std::packaged_task<void()> task(std::move(call));
  const std::future<void> back = task.get_future();
  std::thread(std::move(task)).detach();
  return back.wait_for(timeout) == std::future_status::ready;
}

// The thread that makes them may never come back, so it owns what it works on.
struct Communicators::Making {
  const NcclFunctions& nccl;
  std::int32_t process = 0;
  int device = 0;
  std::byte* scratch = nullptr;
  CUstream_st* stream = nullptr;
  std::string ids;
  std::vector<Made> made;
  std::optional<Error> error;

  void run() {
    auto status = CAPO_CUDA_CHECK_NOEXCEPT(cudaSetDevice(device));
    for (std::size_t i = 0; i < made.size() && status.ok() && !error; ++i) {
      if (number_in(made[i].members, process) < static_cast<int>(made[i].members.size())) join(i);
    }
    if (status.ok() && !error) status = CAPO_CUDA_CHECK_NOEXCEPT(cudaDeviceSynchronize());
    if (!status.ok() && !error) error = to_error("make NCCL's communicators", status);
  }

 private:
  void join(std::size_t number) {
    Made& of = made[number];
    ncclUniqueId id;
    std::memcpy(id.internal, ids.data() + number * sizeof id, sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = static_cast<int>(kExchangeBlocks);
    config.cgaClusterSize = 1;
    const ncclResult_t result = nccl.comm_init_rank(&of.comm, static_cast<int>(of.members.size()),
                                                    id, number_in(of.members, process), &config);
    if (result == ncclSuccess) return warm_up(of);
    of.comm = nullptr;
    error = nccl_error(nccl, "ncclCommInitRankConfig", result);
  }

  void warm_up(const Made& of) {
    const int own = number_in(of.members, process);
    ncclResult_t result = nccl.group_start();
    for (int peer = 0; peer < static_cast<int>(of.members.size()); ++peer) {
      if (peer == own || result != ncclSuccess) continue;
      std::byte* const place = scratch + std::ptrdiff_t{2} * peer;
      result = nccl.send(place, 1, ncclInt8, peer, of.comm, stream);
      if (result != ncclSuccess) break;
      result = nccl.receive(place + 1, 1, ncclInt8, peer, of.comm, stream);
    }
    const ncclResult_t ended = nccl.group_end();
    if (result == ncclSuccess) result = ended;
    if (result == ncclSuccess) return;
    error = nccl_error(nccl, "the first exchange of a communicator", result);
  }
};

Communicators::~Communicators() {
  for (const Made& made : made_) {
    if (!left_ && made.comm != nullptr) static_cast<void>(nccl_.comm_destroy(made.comm));
  }
}

// Rank 0 draws them for all.
std::optional<std::string> Communicators::identities(std::size_t count, Error& why) {
  std::string text;
  for (std::size_t i = 0; processes_.rank() == 0 && i < count; ++i) {
    ncclUniqueId id;
    const ncclResult_t result = nccl_.get_unique_id(&id);
    if (result != ncclSuccess) {
      why = nccl_error(nccl_, "ncclGetUniqueId", result);
      return std::nullopt;
    }
    text.append(id.internal, sizeof id.internal);
  }
  auto ids = processes_.spread(std::move(text));
  if (ids && ids->size() == count * sizeof(ncclUniqueId)) return ids;
  why = silent();
  return std::nullopt;
}

std::optional<Error> Communicators::make(const std::vector<std::vector<std::int32_t>>& members,
                                         std::byte* scratch, const CudaEngine& engine) {
  Error why;
  auto ids = identities(members.size(), why);
  if (!ids) return why;
  const auto making = std::make_shared<Making>(Making{.nccl = nccl_,
                                                      .process = processes_.rank(),
                                                      .device = engine.ordinal(),
                                                      .scratch = scratch,
                                                      .stream = engine.stream(0),
                                                      .ids = *std::move(ids)});
  for (const auto& all : members) making->made.push_back({.members = all});
  if (!comes_back(processes_.timeout(), [making] { making->run(); })) {
    return not_back();
  }
  const std::scoped_lock lock(mutex_);
  made_ = std::move(making->made);
  return making->error;
}

int Communicators::number_of(std::int32_t process, std::size_t communicator) const {
  return number_in(made_[communicator].members, process);
}

void Communicators::abort() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::thread> all;
  for (Made& made : made_) {
    ncclComm_t const comm = std::exchange(made.comm, nullptr);
    if (comm == nullptr) continue;
    all.emplace_back([&nccl = nccl_, comm] { static_cast<void>(nccl.comm_abort(comm)); });
  }
  for (std::thread& one : all) one.join();
}

}  // namespace capo::gpu
