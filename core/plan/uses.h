// UseVisitor walks a course and reports who uses which buffer when: each piece of work uses its
// operands and results, a backward the gradients that it hands on until the next one is over or the
// step is, a send what it sends, and a receive what it receives.
//
//   rank 0: F1 B1     F1 uses output and activations; B1 reads them, and uses the grad input
//
// Certificates (core/rules/certificate.cpp) and lists of buffers (python/) ask here. Tested by
// uses_test.cpp.

#pragma once

#include "core/plan/buffers.h"
#include "core/plan/course.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace capo {

struct BufferUse {
  BufferId buffer = kNoBuffer;
  std::int32_t rank = 0;
  Point at;
  std::uint32_t number = 0;       ///< a number of its own for each piece of work and each transfer
  std::uint32_t layer = 0;        ///< 0: what it is fed is copied in; its layers run from 1 on
  std::uint32_t entry = 0;        ///< the place in the rank's order
  std::optional<Point> received;  ///< of a transfer: where the data arrives
};

/// A visitor of a course that hears of each use.
class UseVisitor : public CourseVisitor {
 public:
  explicit UseVisitor(const BufferTable& table);

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) final;
  void sent(const Sending& sending, const Clock& clock) final;
  void receiving(const Receiving& receiving, const Clock& clock) final;
  /// The course is over, and with it the sends of the gradients that were handed on last.
  void end();

 protected:
  /// Uses come work by work, in an order in which they could happen.
  virtual void use(const BufferUse& of) = 0;

 private:
  const BufferTable& table_;
  std::vector<BufferId> handed_on_;  // by rank
  std::vector<BufferUse> last_;      // by rank: the work that stands last in its order
  std::vector<bool> received_;       // by buffer of a receive: one has begun
  std::uint32_t number_ = 0;
};

}  // namespace capo
