// A program is built of these beside its ops: the places where works find what they read, the
// exchanges that move it meanwhile, and the gradients that leave the step. They are private to the
// making of programs (program.h).
//
// Handovers tells where a work finds what it reads, and which gradients leave the step, if no rows
// are exchanged:
//
//   F1.0 of the first stage      what the step is given
//   F2.0 behind F1.0, one rank   the buffer that F1.0 made
//   F1.0 of another rank         where a transfer lands
//
// ExchangesOfProgram is told of each dispatch and combine when it is launched, and of each work
// that ran, in the order of launches. By that it knows what each of them moves:
//
//   dispatch-F2.0 combine-F2.0 F2.0     what F2.0 reads goes out, and comes back
//   F1.0 dispatch-F1.0 combine-F1.0     what F1.0 made goes out, and comes back
//   dispatch-F2.0 F2.0 combine-F2.0     what F2.0 reads goes out, and what it made comes back: that
//                                       is what experts do
//
// The first of such a chain permutes rows, the next one permutes them back, and so on. Where
// several ranks of a group exchange together, their permuted rows cross at the point where they
// meet:
//
//   rank 0: permute e0 -\         /-          a dispatch, which permutes before rows cross, and a
//   rank 1: permute e1 --> cross ->-          combine, which permutes back behind that; they cross
//   rank 0:             -\         /- return   where the members meet: each has begun, and none is
//   rank 1:             --> cross ->- return   over
//
// GivenOut collects the gradients of inputs that leave the step.
//
// Tested by program_test.cpp, program_laws_test.cpp and tests/run/steps/exchanges_test.cpp,
// crossings_test.cpp and experts_test.cpp.

#pragma once

#include "run/execute/program.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace capo::run {

class Handovers {
 public:
  /// Both outlive it.
  Handovers(const BufferTable& table, const Course& course);

  /// Tells where a layer of a chunk finds what it reads, if no exchange has moved it.
  [[nodiscard]] Origin origin_of(std::int32_t rank, const Work& work, std::int32_t layer) const;
  /// Whether no stage stands before a chunk, so that its grad input leaves the step.
  [[nodiscard]] bool leaves(std::int32_t rank, std::int32_t chunk) const;
  /// Whether a chunk's grad input is given out, since it leaves the step or is handed on by a send
  /// that nobody wires.
  [[nodiscard]] bool gives_out(std::int32_t rank, std::int32_t chunk) const;

 private:
  const BufferTable& table_;
  const Course& course_;
  Cells cells_;
  std::map<WorkKey, BufferId> fed_by_;  // what a work reads of its neighbour on the same rank
};

class ExchangesOfProgram {
 public:
  /// A vertex of the course's task graph.
  using Point = std::uint32_t;

  /// Appends to the program, which outlives it, as do the others.
  ExchangesOfProgram(const BufferTable& table, const Course& course, const Handovers& handovers,
                     Program& program);

  /// A rank performs an exchange at this point, on this stream.
  void meets(Point point, std::int32_t rank, std::uint32_t stream);
  /// An exchange is one of those that meet there. All ranks of the point are known.
  void goes_through(Point point, TaskId exchange);

  /// Launched at the start of an exchange that has one apart from its end, and at its end.
  void begin(TaskId exchange);
  void end(TaskId exchange);
  /// Launched at a point: rows of the exchanges that have begun go to and fro, if there are any.
  void cross(Point point, std::int32_t rank);
  /// Launched behind a work that has layers.
  void note_run(std::int32_t rank, const Work& work);

  /// Tells where a layer of a chunk finds what it reads, now.
  [[nodiscard]] Origin origin_of(std::int32_t rank, const Work& work, std::int32_t layer) const;
  /// Whether a backward reads rows that are with it, and are to go back.
  [[nodiscard]] bool are_with(std::int32_t rank, const Work& work) const;

 private:
  using Key = std::tuple<std::uint32_t, std::int32_t, Way>;  // cell, layer and way
  struct Meeting {
    std::map<std::int32_t, std::uint32_t> streams;  // by rank
    std::vector<std::uint32_t> out;
    std::vector<std::uint32_t> back;
  };

  void finish(const OpPart& moved);
  [[nodiscard]] std::optional<OpPart> move(TaskId id);
  [[nodiscard]] std::optional<OpPart> return_of_experts(std::int32_t rank, const Work& work,
                                                        Way way);
  [[nodiscard]] std::uint32_t route_of(std::uint32_t cell, Way way, std::uint32_t own) const;
  [[nodiscard]] bool takes_layers_apart();
  [[nodiscard]] Kind backward_of(std::int32_t rank, const Step& step) const;

  const BufferTable& table_;
  const Course& course_;
  const Handovers& handovers_;
  Program& program_;
  Cells cells_;
  std::map<Key, std::uint32_t> before_;  // exchanges of what a layer reads
  std::map<Key, std::uint32_t> behind_;  // and of what it made
  std::vector<bool> returns_;            // by exchange: whether its next part is a Return
  std::map<Point, Meeting> meetings_;
  std::map<TaskId, Point> through_;  // exchanges of several ranks, with where these meet
  std::map<TaskId, OpPart> begun_;   // the same ones, until they end
  std::set<WorkKey> ran_;
  std::optional<bool> apart_;
};

class GivenOut {
 public:
  /// Appends to the program, which outlives it, as do the others.
  GivenOut(const BufferTable& table, const Handovers& handovers,
           const ExchangesOfProgram& exchanges, Program& program);

  /// Launched behind a backward that has layers, on its stream: collects the grad input of a chunk
  /// that no stage stands before, since it leaves the step; if the chunk hands it on, after its
  /// send is over.
  void note_run(std::int32_t rank, const Work& work, std::uint32_t stream);
  /// Launched behind all ops: collects what is still handed on then.
  void end();

 private:
  // A buffer that may still be on its way, and the stream that it was made on.
  struct HandedOn {
    BufferId buffer = kNoBuffer;
    std::uint32_t stream = 0;
  };

  [[nodiscard]] OpPart collecting(BufferId made) const;
  void collect(BufferId made);
  [[nodiscard]] std::vector<std::uint32_t> last_beside(std::uint32_t stream) const;

  const BufferTable& table_;
  const Handovers& handovers_;
  const ExchangesOfProgram& exchanges_;
  Program& program_;
  Cells cells_;
  std::vector<HandedOn> handed_on_;  // by rank
};

}  // namespace capo::run
