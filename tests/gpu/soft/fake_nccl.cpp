// NCCL in software, for tests: what capo calls of it, between processes of one machine, by sockets.
// It is built as a library of its own, which CAPO_NCCL_LIBRARY names.
//
// It keeps what matters of NCCL: messages of two ranks and a communicator are matched by their
// order and by nothing else, a send waits until its receive has begun, what is in a group moves
// together, and what waits goes on waiting until its communicator is aborted. Streams of CUDA in
// software run at once, so it is the end of a group that waits here.
//
// CAPO_FAKE_NCCL has words, separated by commas. lose:3 loses the third message of the process of
// rank 0 in a communicator, warming up not counted; stop:3 stops the process of rank 1 at its third
// group, and has no communicator destroyed or aborted by the end of a call after that; fail:3 has
// the third group of a process give an error, and fail_of_one:3 the third of rank 1; init:1 lets
// the process with this number in a communicator not join it, and silent:1 never come back from
// that; hang:3 keeps the end of the third group of a process for ever. later:1000 has groups with a
// message of 1000 bytes or more move while nobody waits in their end, as a device does: an event
// behind one is over when the group is. Such a message has to fit into the buffer of a socket.
// room:1000 has a message of fewer bytes sent at once, since NCCL has room for what is small.

#include <nccl.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

struct ncclComm {
  int rank = 0;
  std::vector<int> sockets;
  std::vector<std::string> came;   // bytes of a peer that nobody has taken
  std::vector<std::int64_t> owed;  // acknowledgements of a peer that no send has taken
  std::atomic<bool> aborted = false;
  std::atomic<int> kernels = 0;  // that have been launched and are not over
};

// CUDA in software has it (soft_cuda.h), in the program that loads this library.
extern "C" __attribute__((weak)) void capo_soft_later(cudaStream_t stream, bool (*over)(void*),
                                                      void* what);

namespace {

struct Operation {
  bool sends = false;
  char* bytes = nullptr;
  std::size_t count = 0;
  int peer = 0;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::size_t written = 0;
  bool over = false;
};

thread_local int depth = 0;
std::vector<Operation> group;
std::vector<ncclComm*> made_here;
int sends_begun = 0;
int groups_ended = 0;
int groups_of_one = 0;
std::string last_error;

// The number behind a word of CAPO_FAKE_NCCL; -1 if it has no such word.
int asked(const char* word) {
  const char* const all = std::getenv("CAPO_FAKE_NCCL");
  const std::string text = std::string(",") + (all == nullptr ? "" : all);
  const std::string begin = "," + std::string(word) + ":";
  const std::size_t at = text.find(begin);
  return at == text.npos ? -1 : std::atoi(text.c_str() + at + begin.size());
}

void wait_for_ever() {
  for (;;) pause();
}

void wait_for_the_stopped() {
  while (asked("stop") >= 0) std::this_thread::yield();
}

sockaddr_un address_of(const ncclUniqueId& id, int rank, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = std::string(id.internal) + "-" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a name without a file
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

void listen_as(const ncclUniqueId& id, int rank, int socket) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(id, rank, length);
  bind(socket, reinterpret_cast<const sockaddr*>(&address), length);
  listen(socket, 64);
}

int connected_to(const ncclUniqueId& id, int rank, int own) {
  socklen_t length = 0;
  const sockaddr_un address = address_of(id, rank, length);
  const int made = socket(AF_UNIX, SOCK_STREAM, 0);
  while (connect(made, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    std::this_thread::yield();
  }
  [[maybe_unused]] const auto told = write(made, &own, sizeof own);
  return made;
}

void take_what_came(ncclComm& comm, int peer) {
  char bytes[65536];
  ssize_t count = 0;
  auto& came = comm.came[static_cast<std::size_t>(peer)];
  while ((count = read(comm.sockets[static_cast<std::size_t>(peer)], bytes, sizeof bytes)) > 0) {
    came.append(bytes, static_cast<std::size_t>(count));
  }
}

// Messages and acknowledgements of a peer come mixed, each behind a byte and a length.
struct Head {
  std::uint64_t acknowledges = 0;
  std::uint64_t bytes = 0;
};

void sort_out(ncclComm& comm, int peer) {
  auto& came = comm.came[static_cast<std::size_t>(peer)];
  Head head;
  std::size_t at = 0;
  while (came.size() >= at + sizeof head) {
    std::memcpy(&head, came.data() + at, sizeof head);
    if (head.acknowledges != 0) {
      ++comm.owed[static_cast<std::size_t>(peer)];
      came.erase(at, sizeof head);
    } else {
      at += sizeof head + head.bytes;
    }
  }
}

void put(const ncclComm& comm, int peer, const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0 && !comm.aborted) {
    const ssize_t done =
        send(comm.sockets[static_cast<std::size_t>(peer)], at, count, MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EINTR) return;
    if (done < 0) std::this_thread::yield();
    if (done > 0) {
      at += done;
      count -= static_cast<std::size_t>(done);
    }
  }
}

// Whether such a message is sent though nobody has begun to receive it.
bool has_room(std::size_t bytes) {
  return static_cast<int>(bytes) < asked("room");
}

void go_on(Operation& of) {
  ncclComm& comm = *of.comm;
  const auto peer = static_cast<std::size_t>(of.peer);
  take_what_came(comm, of.peer);
  sort_out(comm, of.peer);
  if (of.sends) {
    if (of.written == 0) {
      const Head head{.acknowledges = 0, .bytes = of.count};
      put(comm, of.peer, &head, sizeof head);
      put(comm, of.peer, of.bytes, of.count);
      of.written = 1;
    }
    if (has_room(of.count)) of.over = true;
    if (of.over || comm.owed[peer] == 0) return;
    --comm.owed[peer];
    of.over = true;
    return;
  }
  auto& came = comm.came[peer];
  Head head;
  if (came.size() < sizeof head) return;
  std::memcpy(&head, came.data(), sizeof head);
  if (came.size() < sizeof head + head.bytes) return;
  std::memcpy(of.bytes, came.data() + sizeof head, std::min<std::size_t>(of.count, head.bytes));
  came.erase(0, sizeof head + head.bytes);
  const Head taken{.acknowledges = 1, .bytes = 0};
  if (!has_room(head.bytes)) put(comm, of.peer, &taken, sizeof taken);
  of.over = true;
}

// Moves what can move; whether all is over, or will never be.
bool all_over(std::vector<Operation>& all) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].comm->aborted) return true;
    bool first = true;  // of its direction and peer: the others come behind it
    for (std::size_t j = 0; j < i; ++j) {
      first = first && (all[j].over || all[j].sends != all[i].sends || all[j].peer != all[i].peer ||
                        all[j].comm != all[i].comm);
    }
    if (!all[i].over && first) go_on(all[i]);
    left += all[i].over ? 0 : 1;
  }
  return left == 0;
}

bool is_over_later(void* what) {
  auto* const all = static_cast<std::vector<Operation>*>(what);
  const bool over = all_over(*all);
  if (!over) return false;
  --all->front().comm->kernels;
  delete all;
  return true;
}

bool moves_later(const std::vector<Operation>& all) {
  const int least = asked("later");
  return least >= 0 && capo_soft_later != nullptr &&
         std::any_of(all.begin(), all.end(), [&](const Operation& of) {
           return of.count >= static_cast<std::size_t>(least);
         });
}

struct Kernel {
  ncclComm* comm = nullptr;
  std::vector<Operation> operations;
};

// A group is a kernel for each of its communicators. On one stream they run one after
// the other, and NCCL does not say which is first: here the last that was added is.
using Kernels = std::map<cudaStream_t, std::deque<Kernel>>;  // by stream, the first in front

Kernels kernels_of(const std::vector<Operation>& all) {
  Kernels kernels;
  for (const Operation& of : all) {
    std::deque<Kernel>& lane = kernels[of.stream];
    auto found = std::find_if(lane.begin(), lane.end(),
                              [&](const Kernel& kernel) { return kernel.comm == of.comm; });
    if (found == lane.end()) found = lane.insert(lane.begin(), {.comm = of.comm});
    found->operations.push_back(of);
  }
  return kernels;
}

void move_later(Kernels kernels) {
  for (auto& [stream, lane] : kernels) {
    for (Kernel& kernel : lane) {
      ++kernel.comm->kernels;
      capo_soft_later(stream, is_over_later,
                      new std::vector<Operation>(std::move(kernel.operations)));
    }
  }
}

// The first of each stream moves.
bool move_firsts(Kernels& kernels) {
  bool any = false;
  for (auto& [stream, lane] : kernels) {
    if (!lane.empty() && all_over(lane.front().operations)) lane.pop_front();
    any = any || !lane.empty();
  }
  return any;
}

ncclResult_t finish(const std::vector<Operation>& all) {
  if (moves_later(all)) {
    move_later(kernels_of(all));
    return ncclSuccess;
  }
  Kernels kernels = kernels_of(all);
  while (move_firsts(kernels)) std::this_thread::yield();
  for (const Operation& of : all) {
    if (!of.comm->aborted) continue;
    last_error = "the communicator was aborted";
    return ncclInternalError;
  }
  return ncclSuccess;
}

ncclResult_t add(const Operation& of) {
  if (of.sends && of.count > 1 && of.comm->rank == 0 && ++sends_begun == asked("lose")) {
    Operation lost = of;
    lost.written = 1;  // nothing is written, and nobody acknowledges it
    group.push_back(lost);
  } else {
    group.push_back(of);
  }
  if (depth > 0) return ncclSuccess;
  return finish(std::exchange(group, {}));
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "capo-fake-nccl-%d-%08x%08x",
                static_cast<int>(getpid()), random(), random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int count, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->maxCTAs < 1 || config->maxCTAs > 16) {
    last_error = "messages could take the device from products";
    return ncclInvalidArgument;
  }
  if (asked("init") == rank) {
    last_error = "asked for";
    return ncclSystemError;
  }
  if (asked("silent") == rank) wait_for_ever();
  auto* made = new ncclComm;
  made->rank = rank;
  made->sockets.assign(static_cast<std::size_t>(count), -1);
  made->came.resize(static_cast<std::size_t>(count));
  made->owed.resize(static_cast<std::size_t>(count));
  const int door = socket(AF_UNIX, SOCK_STREAM, 0);
  listen_as(id, rank, door);
  for (int peer = 0; peer < rank; ++peer) {
    made->sockets[static_cast<std::size_t>(peer)] = connected_to(id, peer, rank);
  }
  for (int others = rank + 1; others < count; ++others) {
    const int came = accept(door, nullptr, nullptr);
    int peer = 0;
    [[maybe_unused]] const auto told = read(came, &peer, sizeof peer);
    made->sockets[static_cast<std::size_t>(peer)] = came;
  }
  for (const int socket : made->sockets) {
    if (socket >= 0) fcntl(socket, F_SETFL, O_NONBLOCK);
  }
  close(door);
  made_here.push_back(made);
  *comm = made;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  wait_for_the_stopped();
  std::erase(made_here, comm);
  for (const int socket : comm->sockets) {
    if (socket >= 0) close(socket);
  }
  delete comm;
  return ncclSuccess;
}

// It stays where it is: another thread may be waiting in it. NCCL waits for the device here, which
// what hangs in another communicator keeps busy.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  wait_for_the_stopped();
  for (const ncclComm* other : made_here) {
    while (other->kernels > 0 && !other->aborted) std::this_thread::yield();
  }
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* bytes, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({.sends = true,
              .bytes = const_cast<char*>(static_cast<const char*>(bytes)),
              .count = count,
              .peer = peer,
              .comm = comm,
              .stream = stream});
}

ncclResult_t ncclRecv(void* bytes, size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({.sends = false,
              .bytes = static_cast<char*>(bytes),
              .count = count,
              .peer = peer,
              .comm = comm,
              .stream = stream});
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  const bool of_one = !group.empty() && group.front().comm->rank == 1;
  groups_of_one += of_one ? 1 : 0;
  if (of_one && groups_of_one == asked("stop")) raise(SIGSTOP);
  if (++groups_ended == asked("hang")) wait_for_ever();
  if (groups_ended == asked("fail") || (of_one && groups_of_one == asked("fail_of_one"))) {
    last_error = "asked for";
    return ncclSystemError;
  }
  return finish(std::exchange(group, {}));
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "unhandled system error";
}

const char* ncclGetLastError(ncclComm_t) {
  return last_error.c_str();
}

}  // extern "C"
