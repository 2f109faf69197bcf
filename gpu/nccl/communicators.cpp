#include "gpu/nccl/communicators.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace capo::gpu {

namespace {

Error silent() {
  return {.kind = ErrorKind::Environment,
          .message = "the identities of NCCL's communicators did not come from rank 0",
          .help = "--timeout says how long that may take"};
}

}  // namespace

Communicators::~Communicators() {
  for (const Made& made : made_) {
    if (!left_ && made.comm != nullptr) static_cast<void>(nccl_.comm_destroy(made.comm));
  }
}

std::optional<Error> Communicators::make(const std::vector<std::vector<std::int32_t>>& members,
                                         std::byte* scratch, CUstream_st* stream) {
  std::string text;
  if (processes_.rank() == 0) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      ncclUniqueId id;
      const ncclResult_t result = nccl_.get_unique_id(&id);
      if (result != ncclSuccess) return nccl_error(nccl_, "ncclGetUniqueId", result);
      text.append(id.internal, sizeof id.internal);
    }
  }
  const auto ids = processes_.spread(std::move(text));
  if (!ids || ids->size() != members.size() * sizeof(ncclUniqueId)) return silent();
  for (std::size_t i = 0; i < members.size(); ++i) {
    Made& made = made_.emplace_back();
    made.members = members[i];
    const auto& all = made.members;
    if (std::find(all.begin(), all.end(), processes_.rank()) == all.end()) continue;
    ncclUniqueId id;
    std::memcpy(id.internal, ids->data() + i * sizeof id, sizeof id);
    if (auto failed = join(made, id)) return failed;
    if (auto failed = warm_up(made, scratch, stream)) return failed;
  }
  return std::nullopt;
}

std::optional<Error> Communicators::join(Made& made, const ncclUniqueId& id) {
  const auto at = static_cast<std::size_t>(&made - made_.data());
  const ncclResult_t result = nccl_.comm_init_rank(
      &made.comm, static_cast<int>(made.members.size()), id, number_of(processes_.rank(), at));
  if (result == ncclSuccess) return std::nullopt;
  made.comm = nullptr;
  return nccl_error(nccl_, "ncclCommInitRank", result);
}

std::optional<Error> Communicators::warm_up(const Made& made, std::byte* scratch,
                                            CUstream_st* stream) {
  const int own = number_of(processes_.rank(), static_cast<std::size_t>(&made - made_.data()));
  ncclResult_t result = nccl_.group_start();
  for (int peer = 0; peer < static_cast<int>(made.members.size()); ++peer) {
    if (peer == own || result != ncclSuccess) continue;
    std::byte* const place = scratch + std::ptrdiff_t{2} * peer;
    result = nccl_.send(place, 1, ncclInt8, peer, made.comm, stream);
    if (result != ncclSuccess) break;
    result = nccl_.receive(place + 1, 1, ncclInt8, peer, made.comm, stream);
  }
  const ncclResult_t ended = nccl_.group_end();
  if (result == ncclSuccess) result = ended;
  if (result == ncclSuccess) return std::nullopt;
  return nccl_error(nccl_, "the first exchange of a communicator", result);
}

int Communicators::number_of(std::int32_t process, std::size_t communicator) const {
  const auto& members = made_[communicator].members;
  return static_cast<int>(std::find(members.begin(), members.end(), process) - members.begin());
}

void Communicators::abort() {
  const std::scoped_lock lock(mutex_);
  for (Made& made : made_) {
    ncclComm_t const comm = std::exchange(made.comm, nullptr);
    if (comm != nullptr) static_cast<void>(nccl_.comm_abort(comm));
  }
}

}  // namespace capo::gpu
