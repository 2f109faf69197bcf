#include "run/processes/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

constexpr int kBrokenOff = 5;  // exit code

// All processes see whether each has left.
using Left = std::atomic<bool>;

struct Head {
  enum class Kind : std::int32_t { Data, Taken, Meet };
  Kind kind = Kind::Data;
  std::int32_t communicator = 0;
  std::int32_t tag = 0;
  std::int32_t request = -1;  // of the sender, if it waits until its message is taken
  std::int64_t bytes = 0;
};

// This is the other end of a socket.
struct Peer {
  int socket = -1;
  std::string out;
  std::string in;
  std::int64_t meetings = 0;
  bool gone = false;
};

class Sockets final : public MessageLibrary {
 public:
  Sockets(int rank, std::vector<int> sockets, Left& left, std::chrono::duration<double> timeout)
      : rank_(rank), left_(left), timeout_(timeout), peers_(sockets.size()) {
    for (std::size_t i = 0; i < sockets.size(); ++i) peers_[i].socket = sockets[i];
  }

  [[nodiscard]] const char* name() const override { return "the library of sockets"; }
  void start() override {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(peers_.size()); }
  [[nodiscard]] int add_communicators(int count) override {
    return std::exchange(communicators_, communicators_ + count);
  }

  [[nodiscard]] int send(int communicator, int to, int tag, const Piece (&pieces)[2],
                         Mode mode) override {
    const bool waits = mode == Mode::Rendezvous;
    const int request = add({.kind = Request::Kind::Send, .peer = to, .over = !waits});
    Head head{.communicator = communicator, .tag = tag, .request = waits ? request : -1};
    for (const Piece& piece : pieces) head.bytes += piece.bytes;
    Peer& peer = at(to);
    put(peer, head);
    for (const Piece& piece : pieces) {
      peer.out.append(static_cast<const char*>(piece.begin), static_cast<std::size_t>(piece.bytes));
    }
    pump();
    return request;
  }
  [[nodiscard]] int receive(int communicator, int from, int tag,
                            const Piece (&pieces)[2]) override {
    const int request =
        add({.kind = Request::Kind::Receive, .peer = from, .pieces = {pieces[0], pieces[1]}});
    const Way way{from, communicator, tag};
    awaited_[way].push_back(request);
    match(way);
    return request;
  }
  [[nodiscard]] int meet() override {
    const int request = add({.kind = Request::Kind::Meet, .meeting = ++meetings_});
    for (int to = 0; to < size(); ++to) {
      if (to != rank_) put(at(to), {.kind = Head::Kind::Meet});
    }
    pump();
    return request;
  }
  [[nodiscard]] bool over(int request) override {
    pump();
    Request& of = requests_.at(request);
    if (of.kind == Request::Kind::Meet) of.over = all_came(of.meeting);
    if (!of.over) return waits_for_gone(of), false;
    requests_.erase(request);
    return true;
  }
  void cancel(int request) override {
    for (auto& [way, requests] : awaited_) std::erase(requests, request);
    requests_.erase(request);
  }

  // The others may still need what this one has sent; one that takes nothing for the timeout does
  // not answer.
  void leave() override {
    auto last = std::chrono::steady_clock::now();
    for (std::size_t before = unsent(); before > 0;) {
      pump();
      const std::size_t now = unsent();
      if (std::exchange(before, now) != now) {
        last = std::chrono::steady_clock::now();
      } else if (std::chrono::steady_clock::now() - last > timeout_) {
        end_without_answer();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    left_ = true;
  }
  [[noreturn]] void end_all(int code) override { std::_Exit(code); }
  [[nodiscard]] const char* error() const override {
    return error_.empty() ? nullptr : error_.c_str();
  }

 private:
  using Way = std::tuple<int, int, int>;  // from, communicator, tag
  struct Request {
    enum class Kind : std::uint8_t { Send, Receive, Meet };
    Kind kind = Kind::Send;
    int peer = -1;
    std::int64_t meeting = 0;
    std::array<Piece, 2> pieces = {};
    bool over = false;
  };
  struct Letter {
    int request = -1;
    std::string bytes;
  };

  [[nodiscard]] Peer& at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  int add(Request request) {
    requests_[next_] = request;
    return next_++;
  }

  static void put(Peer& peer, const Head& head) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes of a plain value
    peer.out.append(reinterpret_cast<const char*>(&head), sizeof head);
  }

  // Bytes that a process has not taken which is still there.
  [[nodiscard]] std::size_t unsent() const {
    std::size_t bytes = 0;
    for (const Peer& peer : peers_) bytes += peer.gone ? 0 : peer.out.size();
    return bytes;
  }
  [[noreturn]] void end_without_answer() {
    for (int rank = 0; rank < size(); ++rank) {
      const Peer& peer = at(rank);
      if (!peer.gone && !peer.out.empty()) {
        fmt::print(stderr, "error: rank {} does not take its messages for {:g} s\n", rank,
                   timeout_.count());
      }
    }
    end_all(kBrokenOff);
  }
  [[nodiscard]] bool all_came(std::int64_t meeting) const {
    for (int rank = 0; rank < size(); ++rank) {
      const Peer& peer = peers_[static_cast<std::size_t>(rank)];
      if (rank != rank_ && peer.meetings < meeting) return false;
    }
    return true;
  }

  void waits_for_gone(const Request& request) {
    for (int rank = 0; rank < size(); ++rank) {
      const Peer& peer = peers_[static_cast<std::size_t>(rank)];
      const bool awaited = request.kind == Request::Kind::Meet ? peer.meetings < request.meeting
                                                               : request.peer == rank;
      if (awaited && peer.gone && error_.empty()) error_ = fmt::format("rank {} has ended", rank);
    }
  }

  void pump() {
    for (int rank = 0; rank < size(); ++rank) {
      Peer& peer = at(rank);
      if (rank == rank_ || peer.gone) continue;
      write_to(peer);
      read_from(peer);
      take_letters(rank);
    }
  }

  static void write_to(Peer& peer) {
    while (!peer.out.empty()) {
      const ssize_t count = ::send(peer.socket, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        peer.gone = errno != EAGAIN && errno != EWOULDBLOCK;
        return;
      }
      peer.out.erase(0, static_cast<std::size_t>(count));
    }
  }

  static void read_from(Peer& peer) {
    std::array<char, 65536> bytes;
    for (;;) {
      const ssize_t count = ::recv(peer.socket, bytes.data(), bytes.size(), 0);
      if (count > 0) {
        peer.in.append(bytes.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
        peer.gone = true;
        return;
      } else if (errno != EINTR) {
        return;
      }
    }
  }

  void take_letters(int from) {
    Peer& peer = at(from);
    std::size_t taken = 0;
    Head head;
    while (peer.in.size() - taken >= sizeof head) {
      std::memcpy(&head, peer.in.data() + taken, sizeof head);
      const auto bytes = static_cast<std::size_t>(head.bytes);
      if (peer.in.size() - taken - sizeof head < bytes) break;
      take(from, head, peer.in.substr(taken + sizeof head, bytes));
      taken += sizeof head + bytes;
    }
    peer.in.erase(0, taken);
  }

  void take(int from, const Head& head, std::string bytes) {
    switch (head.kind) {
      case Head::Kind::Meet:
        ++at(from).meetings;
        return;
      case Head::Kind::Taken:
        if (const auto of = requests_.find(head.request); of != requests_.end()) {
          of->second.over = true;
        }
        return;
      case Head::Kind::Data:
        const Way way{from, head.communicator, head.tag};
        arrived_[way].push_back({.request = head.request, .bytes = std::move(bytes)});
        match(way);
    }
  }

  // The oldest of both sides meet.
  void match(const Way& way) {
    auto& letters = arrived_[way];
    auto& awaited = awaited_[way];
    while (!letters.empty() && !awaited.empty()) {
      Request& request = requests_.at(awaited.front());
      const char* from = letters.front().bytes.data();
      for (const Piece& piece : request.pieces) {
        if (piece.bytes > 0) std::memcpy(piece.begin, from, static_cast<std::size_t>(piece.bytes));
        from += piece.bytes;
      }
      request.over = true;
      if (letters.front().request >= 0) {
        put(at(std::get<0>(way)), {.kind = Head::Kind::Taken, .request = letters.front().request});
        write_to(at(std::get<0>(way)));  // this process may wait for something else from here on
      }
      letters.pop_front();
      awaited.pop_front();
    }
  }

  int rank_;
  Left& left_;
  std::chrono::duration<double> timeout_;
  std::vector<Peer> peers_;
  int communicators_ = 0;
  int next_ = 0;
  std::int64_t meetings_ = 0;
  std::map<int, Request> requests_;
  std::map<Way, std::deque<int>> awaited_;
  std::map<Way, std::deque<Letter>> arrived_;
  std::string error_;
};

Error cannot(std::string_view what) {
  return {.kind = ErrorKind::Environment,
          .message = fmt::format("cannot {}: {}", what, std::strerror(errno)),
          .help = ""};
}

// Waits until every process has ended; the exit code of them all.
class Watch {
 public:
  Watch(std::vector<pid_t> ranks, const Left* left) : ranks_(std::move(ranks)), left_(left) {}

  [[nodiscard]] int end() {
    while (ended_ < ranks_.size()) {
      int status = 0;
      const pid_t ended = waitpid(-1, &status, 0);
      if (ended < 0 && errno == EINTR) continue;
      if (ended < 0) break;
      note(ended, status);
    }
    return code_;
  }

 private:
  void note(pid_t ended, int status) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank] != ended) continue;
      ++ended_;
      ranks_[rank] = 0;
      if (broken_) return;
      if (WIFEXITED(status) && left_[rank]) {
        if (rank == 0) code_ = WEXITSTATUS(status);
        return;
      }
      broken_ = true;
      const bool told = WIFEXITED(status) && WEXITSTATUS(status) != 0;
      code_ = told ? WEXITSTATUS(status) : kBrokenOff;
      if (WIFSIGNALED(status)) {
        fmt::print(stderr, "error: the process of rank {} was ended by signal {} ({})\n", rank,
                   WTERMSIG(status), strsignal(WTERMSIG(status)));
      }
      for (const pid_t other : ranks_) {
        if (other > 0) kill(other, SIGKILL);
      }
    }
  }

  std::vector<pid_t> ranks_;
  const Left* left_;
  std::size_t ended_ = 0;
  bool broken_ = false;
  int code_ = kBrokenOff;
};

// Sockets between each two of them, [rank][peer].
Result<std::vector<std::vector<int>>> make_sockets(int count) {
  const auto all = static_cast<std::size_t>(count);
  std::vector<std::vector<int>> sockets(all, std::vector<int>(all, -1));
  for (std::size_t a = 0; a < all; ++a) {
    for (std::size_t b = a + 1; b < all; ++b) {
      std::array<int, 2> ends{};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return cannot("make sockets between processes");
      }
      sockets[a][b] = ends[0];
      sockets[b][a] = ends[1];
    }
  }
  return sockets;
}

void close_others(const std::vector<std::vector<int>>& sockets, int own) {
  for (int rank = 0; rank < static_cast<int>(sockets.size()); ++rank) {
    for (const int socket : sockets[static_cast<std::size_t>(rank)]) {
      if (rank != own && socket >= 0) close(socket);
    }
  }
}

}  // namespace

Result<MessageLibrary*> spawn(int count, std::chrono::duration<double> timeout) {
  auto sockets = make_sockets(count);
  if (!sockets) return sockets.error();
  const auto bytes = sizeof(Left) * static_cast<std::size_t>(count);
  void* const shared =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return cannot("share memory between processes");
  auto* const left = new (shared) Left[static_cast<std::size_t>(count)]{};
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t made = fork();
    if (made < 0) {
      for (const pid_t other : ranks) kill(other, SIGKILL);
      return cannot("start a process");
    }
    if (made > 0) {
      ranks.push_back(made);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) std::_Exit(kBrokenOff);
    close_others(*sockets, rank);
    return new Sockets(rank, (*sockets)[static_cast<std::size_t>(rank)], left[rank], timeout);
  }
  close_others(*sockets, -1);
  const int code = Watch(std::move(ranks), left).end();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace capo::run
