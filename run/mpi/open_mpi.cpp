// MPI as a MessageLibrary: a module of its own, which nothing links and run/processes loads.
//
// Synchronous sends are the rendezvous that plans are verified for; a buffered one sends a copy.
// MPI promises to match messages of two ranks, a communicator and a tag by their order. An error is
// returned and not fatal, since whoever drives tells it with the task that met it.

#include "run/mpi/message_library.h"

#include <mpi.h>

#include <cstdlib>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

constexpr const char* kTooLarge = "a message of 2 GiB or more";

class OpenMpi final : public MessageLibrary {
 public:
  [[nodiscard]] const char* name() const override { return "MPI"; }
  void start() override {
    check(MPI_Init(nullptr, nullptr));
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    check(MPI_Comm_dup(MPI_COMM_WORLD, &meeting_));
    ask_for_largest_tag();
  }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int largest_tag() const override { return largest_tag_; }

  int add_communicators(int count) override {
    const std::size_t first = communicators_.size();
    communicators_.resize(first + static_cast<std::size_t>(count), MPI_COMM_NULL);
    for (std::size_t at = first; at < communicators_.size(); ++at) {
      check(MPI_Comm_dup(MPI_COMM_WORLD, &communicators_[at]));
    }
    return static_cast<int>(first);
  }

  int send(int communicator, int to, int tag, const Piece (&pieces)[2], Mode mode) override {
    const MPI_Comm through = communicators_[static_cast<std::size_t>(communicator)];
    if (mode == Mode::Buffered) return send_copy(through, to, tag, pieces);
    return begin(pieces, [&](MPI_Datatype type, MPI_Request* request) {
      return MPI_Issend(MPI_BOTTOM, 1, type, to, tag, through, request);
    });
  }
  int receive(int communicator, int from, int tag, const Piece (&pieces)[2]) override {
    return begin(pieces, [&](MPI_Datatype type, MPI_Request* request) {
      return MPI_Irecv(MPI_BOTTOM, 1, type, from, tag,
                       communicators_[static_cast<std::size_t>(communicator)], request);
    });
  }
  int meet() override {
    const int at = vacant();
    if (error_.empty()) check(MPI_Ibarrier(meeting_, &requests_[static_cast<std::size_t>(at)]));
    return at;
  }

  bool over(int request) override {
    MPI_Request& at = requests_[static_cast<std::size_t>(request)];
    int done = 0;
    check(MPI_Test(&at, &done, MPI_STATUS_IGNORE));
    if (done == 0) return false;
    vacant_.push_back(request);
    return error_.empty();
  }
  void cancel(int request) override {
    MPI_Request& at = requests_[static_cast<std::size_t>(request)];
    if (at != MPI_REQUEST_NULL) {
      MPI_Cancel(&at);
      MPI_Request_free(&at);
    }
    vacant_.push_back(request);
  }

  void leave() override { MPI_Finalize(); }
  void end_all(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }
  [[nodiscard]] const char* error() const override {
    return error_.empty() ? nullptr : error_.c_str();
  }

 private:
  void check(int code) {
    if (code == MPI_SUCCESS || !error_.empty()) return;
    char words[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, words, &length);
    error_.assign(words, static_cast<std::size_t>(length));
  }

  // The attribute is a pointer to the number.
  void ask_for_largest_tag() {
    void* number = nullptr;
    int is_there = 0;
    check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&number), &is_there));
    if (is_there != 0) largest_tag_ = *static_cast<const int*>(number);
  }

  [[nodiscard]] int vacant() {
    if (vacant_.empty()) {
      vacant_.push_back(static_cast<int>(requests_.size()));
      requests_.push_back(MPI_REQUEST_NULL);
    }
    const int at = vacant_.back();
    vacant_.pop_back();
    requests_[static_cast<std::size_t>(at)] = MPI_REQUEST_NULL;
    return at;
  }

  // A copy is kept until it has left, however long that takes; the send itself is over at once.
  // MPI's own buffered sends do the same in room of a size that is set before, and that cannot be
  // given back as long as one message in it is not received.
  [[nodiscard]] int send_copy(MPI_Comm through, int to, int tag, const Piece (&pieces)[2]) {
    std::erase_if(copies_, [&](Copy& copy) {
      int gone = 0;
      check(MPI_Test(&copy.request, &gone, MPI_STATUS_IGNORE));
      return gone != 0;
    });
    Copy& copy = copies_.emplace_back();
    for (const Piece& piece : pieces) {
      const char* bytes = static_cast<const char*>(piece.begin);
      copy.bytes.insert(copy.bytes.end(), bytes, bytes + piece.bytes);
    }
    if (!std::in_range<int>(copy.bytes.size())) {
      error_ = kTooLarge;
    } else if (error_.empty()) {
      check(MPI_Isend(copy.bytes.data(), static_cast<int>(copy.bytes.size()), MPI_BYTE, to, tag,
                      through, &copy.request));
    }
    return vacant();
  }

  // Begins what moves two pieces as one message, without a copy of either.
  template <typename Begin>
  int begin(const Piece (&pieces)[2], Begin call) {
    const int at = vacant();
    if (!error_.empty()) return at;
    int lengths[2] = {};
    MPI_Aint places[2] = {};
    for (std::size_t i = 0; i < 2; ++i) {
      if (!std::in_range<int>(pieces[i].bytes)) {
        error_ = kTooLarge;
        return at;
      }
      lengths[i] = static_cast<int>(pieces[i].bytes);
      MPI_Get_address(pieces[i].begin, &places[i]);
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    check(MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &type));
    check(MPI_Type_commit(&type));
    check(call(type, &requests_[static_cast<std::size_t>(at)]));
    check(MPI_Type_free(&type));
    return at;
  }

  int rank_ = 0;
  int size_ = 1;
  int largest_tag_ = 32'767;  // every MPI has as many
  MPI_Comm meeting_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> communicators_;
  std::vector<MPI_Request> requests_;
  std::vector<int> vacant_;
  struct Copy {
    std::vector<char> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::list<Copy> copies_;  // of buffered messages, which stay where they lie until they have left
  std::string error_;
};

}  // namespace

}  // namespace capo::run

[[gnu::visibility("default")]] capo::run::MessageLibrary* capo_message_library() {
  static auto* const library = new capo::run::OpenMpi;
  return library;
}
