// A hazard is a read of memory that is no longer its buffer's; the finder holds a plan against a
// course.
//
//   [1, 1, -1, -1.5, ...] with a slot that passes on at -1   ->   -1.5 reads what F wrote there
//
// Each write takes over all buffers in its range. A buffer that is read after it was taken over is
// a victim: certainly if the write is over before the read, by chance if nothing orders the two (a
// race). A write beside reads that are not over for certain is the same race, seen from the other
// side. The finder does not ask whose plan it is; capo's own has no hazard.
//
// Two writes that nothing orders make victims of both buffers, since either may be the later one;
// the reader is then the work that wrote the buffer. A write is held against whoever owns the
// memory at that time: where several race for one place, those that have passed it on may be hurt
// too and have no hazard, but then others have.
//
// One victim has one hazard for each reader. Tested by hazards_test.cpp against rows that the
// unmodified graph.py made on an H200, and against a brute-force replay with version tags in
// testing/oracle.

#pragma once

#include "core/plan/course.h"
#include "core/plan/plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

/// A piece of work or a transfer, named by its entry or by the entry that it was added for.
struct MemoryUser {
  std::int32_t rank = 0;
  std::uint32_t entry = 0;
  Kind kind = Kind::Forward;

  friend bool operator==(const MemoryUser&, const MemoryUser&) = default;
};

struct Hazard {
  Buffer victim;
  BufferId taker = kNoBuffer;  ///< the buffer that took the memory over
  MemoryUser writer;           ///< it wrote the taker
  MemoryUser reader;           ///< it read the victim
  bool race = false;           ///< nothing orders writer and reader
  bool window = false;         ///< the reader is a send that must be over by then

  friend bool operator==(const Hazard& a, const Hazard& b) {
    return a.writer == b.writer && a.reader == b.reader && a.taker == b.taker && a.race == b.race &&
           a.window == b.window;
  }
};

/// Hazards in the order in which they were found. A large step may have one for each of its
/// backwards, so each takes 32 bytes and is made when it is asked for, and lists are joined without
/// being copied.
class HazardList {
 public:
  class Iterator;

  /// Precondition: victim, writer and reader are of one rank.
  void push_back(const Hazard& hazard) {
    if (parts_.empty()) parts_.emplace_back();
    parts_.back().emplace_back(hazard);
    ++size_;
  }
  void append(HazardList&& more) {
    for (Part& part : more.parts_) parts_.push_back(std::move(part));
    size_ += more.size_;
  }
  /// Gives back memory that is held for more.
  void close() {
    for (Part& part : parts_) part.shrink_to_fit();
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

 private:
  class Kept {
   public:
    explicit Kept(const Hazard& of);
    [[nodiscard]] Hazard made() const {
      return {.victim = {.rank = rank_,
                         .chunk = chunk_,
                         .layer = layer_,
                         .microbatch = microbatch_,
                         .kind = victim_},
              .taker = taker_,
              .writer = {.rank = rank_, .entry = writer_, .kind = writer_kind_},
              .reader = {.rank = rank_, .entry = reader_, .kind = reader_kind_},
              .race = race_,
              .window = window_};
    }

   private:
    std::int32_t rank_;
    std::int32_t chunk_;
    std::int32_t layer_;
    std::int32_t microbatch_;
    BufferId taker_;
    std::uint32_t writer_;
    std::uint32_t reader_;
    BufferKind victim_;
    Kind writer_kind_;
    Kind reader_kind_;
    bool race_ : 1;
    bool window_ : 1;
  };
  using Part = std::vector<Kept>;

  std::vector<Part> parts_;  // none is empty
  std::size_t size_ = 0;
};

class HazardList::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Hazard;
  using difference_type = std::ptrdiff_t;
  using pointer = const Hazard*;
  using reference = Hazard;

  Hazard operator*() const { return (*part_)[at_].made(); }
  Iterator& operator++() {
    if (++at_ == part_->size()) {
      ++part_;
      at_ = 0;
    }
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  friend class HazardList;
  explicit Iterator(std::vector<Part>::const_iterator part) : part_(part) {}

  std::vector<Part>::const_iterator part_;
  std::size_t at_ = 0;
};

inline HazardList::Iterator HazardList::begin() const {
  return Iterator(parts_.begin());
}
inline HazardList::Iterator HazardList::end() const {
  return Iterator(parts_.end());
}

/// The kind of memory, under the name that JSON and the user give it.
enum class HazardKind : std::uint8_t { StaticInput, GradOutput, Pool, P2pWindow };

/// "static-input", "grad-output", "pool", "p2p-window".
[[nodiscard]] std::string_view name_of(HazardKind kind);

/// The kind of the memory that a hazard is about.
[[nodiscard]] HazardKind kind_of(const Hazard& hazard);

/// Finds the hazards of one rank, and hears of no other.
class HazardFinder final : public CourseVisitor {
 public:
  /// Adds hazards to `found` in the order in which the course meets them. All outlive it.
  HazardFinder(const BufferTable& table, const Plan& plan, std::int32_t rank, HazardList& found);

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) override;
  void sent(const Sending& sending, const Clock& clock) override;
  void receiving(const Receiving& receiving, const Clock& clock) override;
  /// The course of the rank is over, and with it the send of the grad input that was handed on
  /// last.
  void end();

 private:
  // An event that touched memory, with the facts that later events ask for.
  struct Event {
    MemoryUser user;
    Point point;
    Point received;
  };
  using EventId = std::uint32_t;
  static constexpr EventId kNone = 0xffffffff;

  struct State {
    EventId taken_by = kNone;  // kNone: the buffer is intact
    EventId last_use = kNone;
    BufferId taker = kNoBuffer;
    EventId raced = kNone;  // a use that was found beside a taker
    EventId written_by = kNone;
  };

  // The owner of a range of memory that begins at the key. Where sizes are not declared every range
  // is one unit, and its owner is found by its address alone.
  struct Held {
    BufferId owner = kNoBuffer;
    std::int64_t end = 0;
  };

  // The owners of units, by region and address.
  struct Units {
    std::size_t most =
        0;  // what all buffers could fill one behind the other; 0 if sizes are declared
    std::array<std::vector<BufferId>, kRegions.size()> owners;
  };

  /// Returns a buffer that lay there and that may be written after the taker, or kNoBuffer.
  BufferId take_over(BufferId loser, BufferId taker, EventId event, const Clock& clock);
  void write(BufferId buffer, std::int64_t bytes, EventId event, const Clock& clock);
  // Returns the number of what a graph makes before it is copied to the buffer's place.
  [[nodiscard]] BufferId made_of(BufferId buffer) const {
    return static_cast<BufferId>(table_.all()) + buffer;
  }
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  /// Returns the first that take_over() returns of what lay in the range.
  BufferId claim(Range range, BufferId taker, BufferId owner, EventId event, const Clock& clock);
  /// Null if sizes are declared, or the address is beyond all that could be there.
  [[nodiscard]] BufferId* unit_at(std::int64_t address);
  [[nodiscard]] State& state_of(BufferId buffer) {
    const bool made = buffer >= table_.all();
    const auto of = static_cast<BufferId>(buffer - (made ? table_.all() : 0));
    return states_[buffers_.number_of(of) + (made ? buffers_.size() : 0)];
  }
  void read(BufferId buffer, EventId event, const Clock& clock, bool window = false);
  EventId note(const MemoryUser& user, Point point, Point received);
  void add(BufferId victim, BufferId taker, EventId writer, EventId reader, bool race, bool window);
  /// Whether nothing orders `other` with the event at hand, and they are not of one work.
  [[nodiscard]] bool beside(EventId other, EventId event, const Clock& clock) const;
  [[nodiscard]] bool over(EventId event, const Clock& clock) const {
    return clock.after(events_[event].point) || clock.after(events_[event].received);
  }

  const BufferTable& table_;
  const Plan& plan_;
  std::int32_t rank_;
  RankBuffers buffers_;
  HazardList& found_;
  bool has_receives_;
  std::vector<State> states_;           // by buffer of the rank, and behind these by what is made
  std::map<BufferId, BufferId> rival_;  // of an owner: the buffer that may be written after it
  std::map<std::int64_t, Held> held_;
  Units units_;
  BufferId handed_on_ = kNoBuffer;  // the grad input that a send may still be reading
  EventId last_ = kNone;            // the work that stands last in the order
  std::vector<Event> events_;
  std::vector<Hazard> of_this_work_;  // found since it began, if buffers can be one tensor
};

}  // namespace capo
