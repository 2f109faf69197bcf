// The words that capo needs of a library of messages between processes, so that the program depends
// on none: run/processes loads one when it is asked for, by the function at the end.
//
//   MessageLibrary* mpi = capo_message_library();
//   mpi->start();                                   each of mpi->size() processes has a rank()
//   int sent = mpi->send(0, 1, 7, pieces, Mode::Rendezvous);
//   int came = mpi->receive(0, 1, 7, pieces);
//   while (!mpi->over(came)) ...
//
// All calls return at once but start(), add_communicators() and leave(), in which all processes
// take part. A message is made of two pieces, so that one can say who sent it without a copy of the
// other. Messages of one pair of ranks, communicator and tag are matched in the order in which both
// sides began them, as NCCL does, which knows no tags. The first error is kept, and after it
// nothing more begins.
//
// open_mpi.cpp is the library that is built where MPI is found.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace capo::run {

/// Bytes of a message, up to 2^31 - 1; none where `bytes` is 0.
struct Piece {
  void* begin = nullptr;
  std::int64_t bytes = 0;
};

class MessageLibrary {
 public:
  virtual ~MessageLibrary() = default;

  enum class Mode : std::uint8_t {
    Rendezvous,  ///< a send is over when its receive has begun
    Buffered,    ///< a send is over at once, and its bytes are copied
  };

  /// Its name in messages to users, such as MPI.
  [[nodiscard]] virtual const char* name() const = 0;

  /// Makes this process one of those that were launched together.
  virtual void start() = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Tags of messages go from 0 to this, which is known once start() is over.
  [[nodiscard]] virtual int largest_tag() const { return std::numeric_limits<int>::max(); }

  /// Makes so many communicators more, numbered from 0 on; returns the number of the first. No
  /// message of one is matched with one of another.
  [[nodiscard]] virtual int add_communicators(int count) = 0;
  /// So many messages of this process may be under way at a time, before a library that needs to
  /// know begins any.
  virtual void have_room(std::size_t /*messages*/) {}
  /// Begins; returns the number of a request, which over() or cancel() forgets. Pieces stay as they
  /// are until then.
  [[nodiscard]] virtual int send(int communicator, int to, int tag, const Piece (&pieces)[2],
                                 Mode mode) = 0;
  [[nodiscard]] virtual int receive(int communicator, int from, int tag,
                                    const Piece (&pieces)[2]) = 0;
  /// Sends and receives between the two calls begin together, where a library knows groups.
  virtual void begin_group() {}
  virtual void end_group() {}
  /// Begins to wait until all processes have begun to.
  [[nodiscard]] virtual int meet() = 0;
  /// Whether a request is over; from then on it is forgotten.
  [[nodiscard]] virtual bool over(int request) = 0;
  /// Takes a request back if it still can be, and forgets it.
  virtual void cancel(int request) = 0;

  /// Ends well, with all the others.
  virtual void leave() = 0;
  /// Ends every process, this one included, with an exit code.
  virtual void end_all(int code) = 0;
  /// The first error in words; null if there was none.
  [[nodiscard]] virtual const char* error() const = 0;
};

}  // namespace capo::run

/// The one library of this process, which is never destroyed.
extern "C" capo::run::MessageLibrary* capo_message_library();
