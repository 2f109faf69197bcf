// A plan against a course: every read of memory that is no longer its buffer's.
//
// Each write takes over what lies in its range. Whoever reads a buffer that was taken over is a
// victim: certainly where the taking over is over before the read, by chance where nothing orders
// the two (a race). A write beside reads that are not over for certain is the same race, seen from
// the other side. It makes no difference here whose plan it is; capo's own is found without any.
//
// One victim has one hazard for each reader. Tested by hazards_test.cpp against rows that the
// unmodified graph.py made on an H200, and against a brute-force replay with version tags in
// testing/oracle.

#pragma once

#include "core/plan/course.h"
#include "core/plan/plan.h"

#include <cstdint>
#include <map>
#include <vector>

namespace capo {

/// A piece of work or a send, by the entry that it is or was made for.
struct Site {
  std::int32_t rank = 0;
  std::uint32_t entry = 0;
  Kind kind = Kind::Forward;

  friend bool operator==(const Site&, const Site&) = default;
};

struct Hazard {
  Buffer victim;
  BufferId taker = kNoBuffer;  ///< the buffer that took the memory over
  Site writer;                 ///< of the taker
  Site reader;                 ///< of the victim
  bool race = false;           ///< nothing orders the two
  bool window = false;         ///< the reader is a send that must be over by then

  friend bool operator==(const Hazard& a, const Hazard& b) {
    return a.writer == b.writer && a.reader == b.reader && a.taker == b.taker && a.race == b.race &&
           a.window == b.window;
  }
};

class HazardFinder final : public CourseVisitor {
 public:
  HazardFinder(const BufferTable& table, const Plan& plan);

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override;
  void sent(const Sending& sending, const Clock& clock) override;

  /// In the order in which they were met.
  std::vector<Hazard> hazards;

 private:
  // An event that touched memory, as far as anybody asks for it later.
  struct Event {
    Site site;
    Point point;
    Point received;
  };
  using EventId = std::uint32_t;
  static constexpr EventId kNone = 0xffffffff;

  struct State {
    EventId taken_by = kNone;  // intact, if none
    EventId last_use = kNone;
    BufferId taker = kNoBuffer;
  };

  // A range of memory, by where it begins.
  struct Held {
    BufferId owner = kNoBuffer;
    std::int64_t end = 0;
  };

  void take_over(BufferId loser, BufferId taker, EventId event, const Clock& clock);
  void write(std::int32_t rank, BufferId buffer, EventId event, const Clock& clock);
  void read(BufferId buffer, EventId event, const Clock& clock, bool window = false);
  EventId note(const Site& site, Point point, Point received);
  void found(BufferId victim, BufferId taker, EventId writer, EventId reader, bool race,
             bool window);
  [[nodiscard]] bool over(EventId event, const Clock& clock) const {
    return clock.after(events_[event].point) || clock.after(events_[event].received);
  }

  const BufferTable& table_;
  const Plan& plan_;
  std::vector<State> states_;                       // by buffer
  std::vector<std::map<std::int64_t, Held>> held_;  // by rank
  std::vector<BufferId> handed_on_;  // by rank: the grad input that a send may still be reading
  std::vector<Event> events_;
};

}  // namespace capo
