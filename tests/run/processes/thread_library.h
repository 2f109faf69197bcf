// A library of messages between threads of one process, so that what processes do together can be
// tested without MPI, and with messages that go lost or astray.
//
//   Post post(2);                       what the threads share
//   ThreadLibrary mine(post, 0);        one for each thread
//   post.tamper = [](const Sent& sent) { return sent.number == 3 ? Fate::Lost : Fate::Arrives; };

#pragma once

#include "run/mpi/message_library.h"
#include "run/processes/processes.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::run {

struct Sent {
  int from = 0;
  int to = 0;
  int communicator = 0;
  int number = 0;  ///< counts all sends of all threads
};

enum class Fate { Arrives, Lost };

struct Post {
  explicit Post(int of) : size(of) {}

  struct Letter {
    std::vector<char> bytes;  // of a send
    Piece pieces[2];          // of a receive
    bool over = false;
  };
  using Way = std::tuple<int, int, int, int>;  // communicator, from, to, tag

  int size;
  std::mutex mutex;
  std::map<Way, std::deque<std::shared_ptr<Letter>>> sends;
  std::map<Way, std::deque<std::shared_ptr<Letter>>> receives;
  std::vector<std::shared_ptr<Letter>> meeting;
  int sent = 0;
  int largest_tag = std::numeric_limits<int>::max();
  std::function<Fate(const Sent&)> tamper;
};

class ThreadLibrary final : public MessageLibrary {
 public:
  ThreadLibrary(Post& post, int rank) : post_(post), rank_(rank) {}

  [[nodiscard]] const char* name() const override { return "the library of threads"; }
  void start() override {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return post_.size; }
  [[nodiscard]] int largest_tag() const override { return post_.largest_tag; }
  [[nodiscard]] int add_communicators(int count) override {
    return std::exchange(communicators_, communicators_ + count);
  }

  [[nodiscard]] int send(int communicator, int to, int tag, const Piece (&pieces)[2],
                         Mode mode) override {
    const std::scoped_lock lock(post_.mutex);
    auto letter = std::make_shared<Post::Letter>();
    for (const Piece& piece : pieces) {
      const char* begin = static_cast<const char*>(piece.begin);
      letter->bytes.insert(letter->bytes.end(), begin, begin + piece.bytes);
    }
    const Sent sent{.from = rank_, .to = to, .communicator = communicator, .number = post_.sent++};
    if (!post_.tamper || post_.tamper(sent) == Fate::Arrives) {
      post_.sends[{communicator, rank_, to, tag}].push_back(letter);
      match({communicator, rank_, to, tag});
    }
    if (mode == Mode::Buffered) letter->over = true;
    return keep(std::move(letter));
  }
  [[nodiscard]] int receive(int communicator, int from, int tag,
                            const Piece (&pieces)[2]) override {
    const std::scoped_lock lock(post_.mutex);
    auto letter = std::make_shared<Post::Letter>();
    letter->pieces[0] = pieces[0];
    letter->pieces[1] = pieces[1];
    post_.receives[{communicator, from, rank_, tag}].push_back(letter);
    match({communicator, from, rank_, tag});
    return keep(std::move(letter));
  }
  [[nodiscard]] int meet() override {
    const std::scoped_lock lock(post_.mutex);
    auto letter = std::make_shared<Post::Letter>();
    post_.meeting.push_back(letter);
    if (static_cast<int>(post_.meeting.size()) == post_.size) {
      for (const auto& one : post_.meeting) one->over = true;
      post_.meeting.clear();
    }
    return keep(std::move(letter));
  }
  [[nodiscard]] bool over(int request) override {
    const std::scoped_lock lock(post_.mutex);
    return requests_[static_cast<std::size_t>(request)]->over;
  }
  void cancel(int request) override {
    const std::scoped_lock lock(post_.mutex);
    const auto& letter = requests_[static_cast<std::size_t>(request)];
    for (auto* all : {&post_.sends, &post_.receives}) {
      for (auto& [way, letters] : *all) std::erase(letters, letter);
    }
    std::erase(post_.meeting, letter);
  }
  void leave() override {}
  void end_all(int) override {}
  [[nodiscard]] const char* error() const override { return nullptr; }

 private:
  [[nodiscard]] int keep(std::shared_ptr<Post::Letter> letter) {
    requests_.push_back(std::move(letter));
    return static_cast<int>(requests_.size()) - 1;
  }

  // The oldest of both sides meet.
  void match(const Post::Way& way) {
    auto& sends = post_.sends[way];
    auto& receives = post_.receives[way];
    if (sends.empty() || receives.empty()) return;
    const char* from = sends.front()->bytes.data();
    for (const Piece& piece : receives.front()->pieces) {
      std::copy(from, from + piece.bytes, static_cast<char*>(piece.begin));
      from += piece.bytes;
    }
    sends.front()->over = receives.front()->over = true;
    sends.pop_front();
    receives.pop_front();
  }

  Post& post_;
  int rank_;
  int communicators_ = 0;
  std::vector<std::shared_ptr<Post::Letter>> requests_;
};

/// Runs something in each of the threads that stand for processes.
inline void in_each(Post& post, Processes::Duration timeout,
                    const std::function<void(Processes&)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < post.size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadLibrary library(post, rank);
      Processes processes(library, timeout);
      work(processes);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace capo::run
