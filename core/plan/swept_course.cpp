#include "core/plan/swept_course.h"

#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace capo {

class RankCourse {
 public:
  RankCourse(const SweptCourse& step, const BufferTable& table, RankId rank, CourseVisitor& visitor)
      : table_(table),
        map_(step.map_),
        delay_(step.delay_[rank.index()]),
        visitor_(visitor),
        rank_(rank),
        order_(step.transfers_.schedule->ranks[rank.index()].order),
        log_(step.log_->ranks[rank.index()]),
        neighbours_(step.log_->neighbours[rank.index()]),
        layout_(step.transfers_.layout),
        heard_(step.hearsay_.of(rank)),
        cells_(step.transfers_.microbatches),
        entry_(cells_.count(step.transfers_.schedule->ranks[rank.index()].chunks)),
        received_(entry_.size()) {
    over_.resize(arrivals_of(neighbours_.ranks().size()));
    for (std::uint32_t at = 0; at < order_.size(); ++at) {
      if (is_node(order_[at].kind)) entry_[cell_of(order_[at])] = at;
    }
  }

  void run() {
    for_each_computation(order_, [&](std::uint32_t first, std::uint32_t end) {
      transfer_up_to(log_.issued[computed_]);
      ++computed_;
      compute(first, end);
    });
    transfer_up_to(log_.transfers.size());
  }

 private:
  static constexpr std::uint32_t kComputations = 0;  // the stream

  // Streams: computations, the rank's communicators, and what has arrived at each neighbour.
  [[nodiscard]] std::uint32_t communicators() const {
    const auto neighbours = static_cast<std::uint32_t>(neighbours_.ranks().size());
    if (layout_ == Communicators::PerRank) return 1;
    return layout_ == Communicators::PerPair ? neighbours : 2 * neighbours;
  }
  [[nodiscard]] std::uint32_t arrivals_of(std::size_t neighbour) const {
    return 1 + communicators() + static_cast<std::uint32_t>(neighbour);
  }
  [[nodiscard]] Point next_on_communicator(const SweptTransfer& transfer) {
    std::size_t at = 0;
    if (layout_ == Communicators::PerPair) at = transfer.neighbour();
    if (layout_ == Communicators::PerEdge)
      at = 2 * transfer.neighbour() + (transfer.sends() ? 0 : 1);
    return {.stream = static_cast<std::uint32_t>(at) + 1, .position = ++queued_[at]};
  }

  [[nodiscard]] std::uint32_t cell_of(const Entry& entry) const {
    return cells_.of(entry.chunk, entry.microbatch, is_forward_node(entry.kind));
  }

  void compute(std::uint32_t first, std::uint32_t end) {
    bool learns = false;
    for (std::uint32_t i = first; i < end; ++i) learns = read(order_[i]) || learns;
    if (learns) note_arrivals();
    const Clock clock(over_.data(), {.stream = kComputations, .position = computed_});
    for (std::uint32_t i = first; i < end; ++i) {
      if (!is_compute(order_[i].kind)) continue;
      const Work work = work_of(to_step(order_[i].action(), i, order_[i].group), delay_);
      visitor_.work(rank_, work, fed_by(table_, map_, rank_, work), clock);
    }
    over_[kComputations] = static_cast<std::int32_t>(computed_);
  }

  // Whether the action reads a tensor of another rank, whose receive is so known to be over.
  bool read(const Entry& entry) {
    if (!is_node(entry.kind)) return false;
    const auto maker = neighbours_.maker(entry.chunk, is_forward_node(entry.kind)).neighbour;
    if (maker < 0) return false;
    const std::uint32_t known = received_[cell_of(entry)];
    if (layout_ == Communicators::PerRank) {
      over_[1] = std::max(over_[1], static_cast<std::int32_t>(known));
    } else if (layout_ == Communicators::PerPair) {
      std::uint32_t& arrived = arrived_[as_index(maker)];
      arrived = std::max(arrived, known);
    }
    return true;
  }

  void note_arrivals() {
    const std::size_t place =
        layout_ == Communicators::PerRank ? as_index(over_[1]) : std::size_t{computed_};
    for (std::size_t i = 0; i < neighbours_.ranks().size(); ++i) {
      const KnownPlaces& arrives = heard_[i].arrives;
      std::uint32_t& arrived = arrived_[i];
      while (arrived < arrives.size() && arrives[arrived] <= heard_[i].over[place]) ++arrived;
      over_[arrivals_of(i)] = static_cast<std::int32_t>(arrived);
    }
  }

  void transfer_up_to(std::size_t end) {
    for (; transferred_ < end; ++transferred_) {
      const SweptTransfer& transfer = log_.transfers[transferred_];
      transfer.sends() ? send(transfer) : receive(transfer);
    }
  }

  void send(const SweptTransfer& transfer) {
    const std::uint32_t at = entry_[transfer.cell()];
    const Entry& maker = order_[at];
    const std::uint32_t sent = ++sent_[transfer.neighbour()];
    visitor_.sent({.rank = rank_,
                   .chunk = maker.chunk,
                   .microbatch = maker.microbatch,
                   .entry = at,
                   .kind = is_forward_node(maker.kind) ? Kind::SendForward : Kind::SendBackward,
                   .received = {.stream = arrivals_of(transfer.neighbour()), .position = sent}},
                  Clock(over_.data(), next_on_communicator(transfer)));
  }

  void receive(const SweptTransfer& transfer) {
    const std::uint32_t at = entry_[transfer.cell()];
    const Entry& reader = order_[at];
    const Point receives = next_on_communicator(transfer);
    // With a communicator for each pair, what was sent in front of the receive is over by its end.
    received_[transfer.cell()] =
        layout_ == Communicators::PerRank ? receives.position : sent_[transfer.neighbour()];
    visitor_.receiving(
        {.rank = rank_,
         .chunk = reader.chunk,
         .microbatch = reader.microbatch,
         .entry = at,
         .kind = is_forward_node(reader.kind) ? Kind::ReceiveForward : Kind::ReceiveBackward},
        Clock(over_.data(), receives));
  }

  const BufferTable& table_;
  const StageMap& map_;
  const std::vector<Delay>& delay_;
  CourseVisitor& visitor_;
  RankId rank_;
  const std::vector<Entry>& order_;
  const SweptRank& log_;
  const Neighbours& neighbours_;
  Communicators layout_;
  std::array<Hearing, 2> heard_;
  Cells cells_;
  std::vector<std::uint32_t> entry_;     // by cell: its place in the order
  std::vector<std::uint32_t> received_;  // by cell: what is known to be over once it is read
  std::vector<std::int32_t> over_;       // by stream
  std::uint32_t computed_ = 0;           // computations, the one at hand included
  std::size_t transferred_ = 0;
  std::array<std::uint32_t, 4> queued_{};   // by communicator: transfers
  std::array<std::uint32_t, 2> sent_{};     // by neighbour: tensors
  std::array<std::uint32_t, 2> arrived_{};  // so many of these have arrived, as is known here
};

SweptCourse::SweptCourse(const StageMap& map, const SweptTransfers& transfers,
                         const std::vector<std::vector<Delay>>& delay,
                         std::shared_ptr<const SweptLog> log)
    : map_(map),
      transfers_(transfers),
      delay_(delay),
      log_(std::move(log)),
      hearsay_(transfers_, *log_) {
}

std::vector<Work> SweptCourse::work_of(RankId rank) const {
  const auto& order = transfers_.schedule->ranks[rank.index()].order;
  std::vector<Work> work;
  work.reserve(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    if (is_compute(order[at].kind))
      work.push_back(
          capo::work_of(to_step(order[at].action(), at, order[at].group), delay_[rank.index()]));
  }
  return work;
}

void SweptCourse::run(const BufferTable& table, RankId rank, CourseVisitor& visitor) const {
  RankCourse(*this, table, rank, visitor).run();
}

}  // namespace capo
