#include "core/plan/swept_course.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/graph/sweep.h"
#include "core/plan/later.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>

namespace capo {

namespace {

// A rank that another one exchanges tensors with.
struct Partner {
  RankId rank;
  std::uint32_t sent = 0;     // tensors that have gone there
  std::uint32_t read = 0;     // the first so many were read there, or one behind them was
  std::uint32_t arrived = 0;  // the first so many have arrived, as is known here
  std::uint32_t known = 0;    // the first so many are no longer in `places`
  /// The places over there by which each of them has arrived: of its receive on the communicator,
  /// or of a computation that has read it or one behind it.
  std::deque<std::int32_t> places;
};

struct Of {
  std::vector<Partner> partners;    // by rank
  std::vector<std::int32_t> over;   // by stream of this rank; see streams_of()
  std::vector<std::int32_t> heard;  // by partner: how far its communicator is, where ranks have one
  std::vector<std::uint32_t> queued;  // by communicator: transfers
  std::uint32_t position = 0;         // computations
};

// The place of the partner of this rank, or the one at which it would stand.
template <typename Partners>
auto place_among(Partners& partners, RankId rank) {
  return std::lower_bound(partners.begin(), partners.end(), rank,
                          [](const Partner& of, RankId than) { return of.rank < than; });
}

// A tensor that was handed on and that nobody has read yet.
struct OnItsWay {
  std::uint32_t number =
      0;  // of those from there to here, or its place on the receiver's communicator
  std::uint32_t behind = 0;  // so many of those from here to there were issued in front of it
};

// `Position` holds the number of every place that a clock tells of.
template <typename Position>
class SweptCourse final : public SweepListener {
 public:
  SweptCourse(const BufferTable& table, const StageMap& map, const SweptTransfers& transfers,
              const std::vector<std::vector<Delay>>& delay, CourseVisitor& visitor)
      : table_(table),
        map_(map),
        schedule_(*transfers.schedule),
        microbatches_(as_index(transfers.microbatches)),
        layout_(transfers.layout),
        mode_(transfers.mode),
        delay_(delay),
        visitor_(visitor),
        width_(whole_blocks(schedule_.ranks.size())),
        known_(schedule_.ranks.size() * width_),
        ranks_(schedule_.ranks.size()),
        cells_(as_index(map.stages()) * microbatches_ * 2) {
    find_partners();
    find_readers();
  }

  void acts(RankId rank, std::uint32_t first, std::uint32_t end) override {
    const auto& order = schedule_.ranks[rank.index()].order;
    Of& of = ranks_[rank.index()];
    ++of.position;
    bool learns = false;
    for (std::uint32_t i = first; i < end; ++i) learns = read(rank, order[i]) || learns;
    if (learns) note_arrivals(rank);
    const Clock clock(of.over.data(), {.stream = kComputations, .position = of.position});
    for (std::uint32_t i = first; i < end; ++i) {
      if (!is_compute(order[i].kind)) continue;
      const Work work =
          work_of(to_step(order[i].action(), i, order[i].group), delay_[rank.index()]);
      visitor_.work(rank, work, fed_by(table_, map_, rank, work), clock);
    }
    of.over[kComputations] = static_cast<std::int32_t>(of.position);
    if (layout_ != Communicators::PerRank)
      known_of(rank)[rank.index()] = static_cast<Position>(of.position);
  }

  void hands_on(const HandedOn& tensor) override {
    Of& sender = ranks_[tensor.from.index()];
    Of& receiver = ranks_[tensor.to.index()];
    const std::size_t to = partner_of(sender, tensor.to);
    const std::size_t from = partner_of(receiver, tensor.from);
    const Point sends = next_on(sender, to, Way::Out);
    const Point receives = next_on(receiver, from, Way::In);
    const Entry& maker = schedule_.ranks[tensor.from.index()].order[tensor.entry];
    std::uint32_t& cell =
        cell_of(map_.stage_of(tensor.to, tensor.reader), tensor.microbatch, tensor.forward);
    visitor_.receiving({.rank = tensor.to,
                        .chunk = tensor.reader,
                        .microbatch = tensor.microbatch,
                        .entry = cell,
                        .kind = tensor.forward ? Kind::ReceiveForward : Kind::ReceiveBackward},
                       Clock(receiver.over.data(), receives));
    Partner& there = sender.partners[to];
    ++there.sent;
    cell = take();
    OnItsWay& message = messages_[cell];
    message.behind = receiver.partners[from].sent;
    if (layout_ == Communicators::PerRank) {
      message.number = receives.position;
      meet(tensor, sends, receives, &clocks_[cell * stride_]);
      there.places.push_back(static_cast<std::int32_t>(receives.position));
    } else {
      message.number = there.sent;
      std::copy_n(known_of(tensor.from), width_, &clocks_[cell * stride_]);
    }
    visitor_.sent({.rank = tensor.from,
                   .chunk = maker.chunk,
                   .microbatch = tensor.microbatch,
                   .entry = tensor.entry,
                   .kind = tensor.forward ? Kind::SendForward : Kind::SendBackward,
                   .received = {.stream = arrivals_of(sender, to), .position = there.sent}},
                  Clock(sender.over.data(), sends));
  }

 private:
  static constexpr std::uint32_t kComputations = 0;  // the stream
  enum class Way : std::uint8_t { Out, In };

  // A rank's streams: its computations, its communicators, and what has arrived at each partner.
  [[nodiscard]] std::uint32_t communicators_of(const Of& of) const {
    const auto partners = static_cast<std::uint32_t>(of.partners.size());
    if (layout_ == Communicators::PerRank) return 1;
    return layout_ == Communicators::PerPair ? partners : 2 * partners;
  }
  [[nodiscard]] std::uint32_t arrivals_of(const Of& of, std::size_t partner) const {
    return 1 + communicators_of(of) + static_cast<std::uint32_t>(partner);
  }
  // The place of the next transfer to or from a partner.
  [[nodiscard]] Point next_on(Of& of, std::size_t partner, Way way) const {
    std::size_t at = 0;
    if (layout_ == Communicators::PerPair) at = partner;
    if (layout_ == Communicators::PerEdge) at = 2 * partner + (way == Way::In ? 1 : 0);
    return {.stream = static_cast<std::uint32_t>(at) + 1, .position = ++of.queued[at]};
  }

  void find_partners() {
    for (std::int32_t stage = 0; stage < map_.stages(); ++stage) {
      const StageId after = map_.after(stage);
      if (after == kNoStage || map_.same_rank(stage, after)) continue;
      add_partner(map_.home(stage).rank, map_.home(after).rank);
      add_partner(map_.home(after).rank, map_.home(stage).rank);
    }
    std::size_t most = 0;
    for (Of& of : ranks_) {
      of.over.resize(arrivals_of(of, of.partners.size()));
      of.queued.resize(communicators_of(of));
      of.heard.resize(of.partners.size());
      most = std::max(most, of.partners.size());
    }
    stride_ = layout_ == Communicators::PerRank ? most : width_;
  }
  void add_partner(RankId of, RankId partner) {
    auto& partners = ranks_[of.index()].partners;
    const auto at = place_among(partners, partner);
    if (at == partners.end() || at->rank != partner) partners.insert(at, Partner{.rank = partner});
  }
  [[nodiscard]] static std::size_t partner_of(const Of& of, RankId rank) {
    return static_cast<std::size_t>(place_among(of.partners, rank) - of.partners.begin());
  }

  // The entry that reads what a stage receives, and later the number of the message.
  [[nodiscard]] std::uint32_t& cell_of(StageId stage, MicrobatchId microbatch, bool forward) {
    return cells_[(stage.index() * microbatches_ + microbatch.index()) * 2 + (forward ? 1 : 0)];
  }
  void find_readers() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto& order = schedule_.ranks[r].order;
      for (std::uint32_t at = 0; at < order.size(); ++at) {
        const Entry& entry = order[at];
        if (!is_node(entry.kind)) continue;
        const StageId stage = map_.stage_of(static_cast<std::int32_t>(r), entry.chunk);
        cell_of(stage, entry.microbatch, is_forward_node(entry.kind)) = at;
      }
    }
  }

  [[nodiscard]] Position* known_of(RankId rank) { return &known_[rank.index() * width_]; }

  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) {
      clocks_.resize(clocks_.size() + stride_);
      messages_.emplace_back();
      return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t message = free_.back();
    free_.pop_back();
    return message;
  }

  // Both ends of a transfer come on communicators that know all that their ranks do. `heard` gets
  // what the receiver knows of its partners from then on.
  void meet(const HandedOn& tensor, Point sends, Point receives, Position* heard) {
    Position* there = known_of(tensor.to);
    Position* here = known_of(tensor.from);
    if (mode_ == TransferMode::Rendezvous) {
      keep_later_in_both(here, there, width_);
    } else {
      keep_later(here, there, width_);
    }
    here[tensor.from.index()] = static_cast<Position>(sends.position);
    there[tensor.to.index()] = static_cast<Position>(receives.position);
    for (const Partner& partner : ranks_[tensor.to.index()].partners)
      *heard++ = there[partner.rank.index()];
  }

  // Whether the action reads a tensor of another rank; what came with it is known from now on.
  bool read(RankId rank, const Entry& entry) {
    if (!is_node(entry.kind)) return false;
    const StageId stage = map_.stage_of(rank, entry.chunk);
    const StageId maker = map_.neighbour(entry.kind, stage);
    if (maker == kNoStage || map_.same_rank(maker, stage)) return false;
    const std::uint32_t message = cell_of(stage, entry.microbatch, is_forward_node(entry.kind));
    if (layout_ == Communicators::PerRank) {
      learn_from_communicator(rank, message);
    } else {
      learn_from_rank(rank, map_.home(maker).rank, message);
    }
    free_.push_back(message);
    return true;
  }

  void learn_from_communicator(RankId rank, std::uint32_t message) {
    Of& of = ranks_[rank.index()];
    std::int32_t& over = of.over[1];
    over = std::max(over, static_cast<std::int32_t>(messages_[message].number));
    for (std::size_t i = 0; i < of.partners.size(); ++i)
      of.heard[i] = std::max<std::int32_t>(of.heard[i], clocks_[message * stride_ + i]);
  }

  void learn_from_rank(RankId rank, RankId maker, std::uint32_t message) {
    Of& of = ranks_[rank.index()];
    keep_later(&clocks_[message * stride_], known_of(rank), width_);
    if (layout_ == Communicators::PerPair) {
      Partner& back = of.partners[partner_of(of, maker)];
      back.arrived = std::max(back.arrived, messages_[message].behind);
    }
    Of& sender = ranks_[maker.index()];
    Partner& here = sender.partners[partner_of(sender, rank)];
    for (; here.read < messages_[message].number; ++here.read)
      here.places.push_back(static_cast<std::int32_t>(of.position));
  }

  void note_arrivals(RankId rank) {
    Of& of = ranks_[rank.index()];
    for (std::size_t i = 0; i < of.partners.size(); ++i) {
      Partner& partner = of.partners[i];
      const std::int32_t so_far =
          layout_ == Communicators::PerRank ? of.heard[i] : known_of(rank)[partner.rank.index()];
      for (; !partner.places.empty() && partner.places.front() <= so_far; ++partner.known)
        partner.places.pop_front();
      partner.arrived = std::max(partner.arrived, partner.known);
      of.over[arrivals_of(of, i)] = static_cast<std::int32_t>(partner.arrived);
    }
  }

  const BufferTable& table_;
  const StageMap& map_;
  const Schedule& schedule_;
  std::size_t microbatches_;
  Communicators layout_;
  TransferMode mode_;
  const std::vector<std::vector<Delay>>& delay_;
  CourseVisitor& visitor_;
  std::size_t width_;            // of a clock by rank
  std::vector<Position> known_;  // by rank: a clock of communicators, or of computations
  std::vector<Of> ranks_;
  std::vector<std::uint32_t> cells_;
  std::vector<OnItsWay> messages_;
  std::size_t stride_ = 0;           // of what a message keeps
  std::vector<Position> clocks_;     // of messages: by rank, or by partner of the receiver
  std::vector<std::uint32_t> free_;  // messages that were read
};

template <typename Position>
void run_with(const BufferTable& table, const StageMap& map, const SweptTransfers& transfers,
              const std::vector<std::vector<Delay>>& delay, CourseVisitor& visitor) {
  SweptCourse<Position> course(table, map, transfers, delay, visitor);
  const bool complete = sweep(*transfers.schedule, map, transfers.microbatches, course);
  CAPO_ASSERT(complete, "every action finds its place");
}

}  // namespace

void run_swept(const BufferTable& table, const StageMap& map, const SweptTransfers& transfers,
               const std::vector<std::vector<Delay>>& delay, CourseVisitor& visitor) {
  // A rank has at most a send and a receive for each of its entries.
  std::size_t most = 0;
  for (const RankOrder& rank : transfers.schedule->ranks)
    most = std::max(most, 2 * rank.order.size());
  if (most <= std::numeric_limits<std::int16_t>::max()) {
    run_with<std::int16_t>(table, map, transfers, delay, visitor);
  } else {
    run_with<std::int32_t>(table, map, transfers, delay, visitor);
  }
}

}  // namespace capo
