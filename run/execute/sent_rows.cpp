#include "run/execute/sent_rows.h"

#include <algorithm>
#include <map>
#include <utility>

namespace capo::run {

namespace {

// Adds the blocks of one crossing to those before it.
class RowsOfCrossing {
 public:
  RowsOfCrossing(const Program& program, const Cells& cells, const StepInputs& inputs,
                 std::map<Channel, std::uint32_t>& sent)
      : program_(program), cells_(cells), inputs_(inputs), sent_(sent) {}

  [[nodiscard]] std::vector<SentBlock> all(const Crossing& crossing) {
    for (const std::uint32_t exchange : crossing.out) divide(exchange, false);
    for (const std::uint32_t exchange : crossing.back) divide(exchange, true);
    return std::move(all_);
  }

 private:
  void divide(std::uint32_t exchange, bool back) {
    const auto& among = program_.exchanges[exchange].among;
    const StepInputs::Route& route = inputs_.route(exchange);
    const auto own =
        static_cast<std::size_t>(std::find(among.begin(), among.end(), exchange) - among.begin());
    for (std::size_t member = 0; member < among.size(); ++member) {
      const RowBlock cut = inputs_.block(program_.exchanges[exchange], own, member);
      if (cut.rows == 0) continue;
      const std::uint32_t there = among[member];
      const std::int64_t row_bytes = back ? route.row_bytes_back : route.row_bytes;
      const std::int64_t lands = cut.lands * row_bytes;
      SentBlock& block = all_.emplace_back();
      block = {.offset = lands, .there = there, .exchange = exchange, .back = back};
      if (back) {
        const bool made = program_.exchanges[there].around_experts();
        block.from = made ? nullptr : inputs_.route(there).arrived + lands;
        block.to = route.back + cut.begin * row_bytes;
      } else {
        block.from = route.rows + cut.begin * row_bytes;
        block.to = inputs_.route(there).arrived + lands;
      }
      block.message = {.channel = {.sender = rank_of(back ? there : exchange),
                                   .receiver = rank_of(back ? exchange : there),
                                   .communicator = kCrossingsThrough},
                       .bytes = cut.rows * row_bytes};
      if (!block.stays()) block.message.number = sent_[block.message.channel]++;
    }
  }

  [[nodiscard]] std::int32_t rank_of(std::uint32_t exchange) const {
    return cells_.at(program_.exchanges[exchange].cell).rank;
  }

  const Program& program_;
  const Cells& cells_;
  const StepInputs& inputs_;
  std::map<Channel, std::uint32_t>& sent_;
  std::vector<SentBlock> all_;
};

}  // namespace

SentRows rows_between(const Program& program, const Cells& cells, const StepInputs& inputs) {
  SentRows sent_rows;
  std::map<Channel, std::uint32_t> sent;
  for (const Crossing& crossing : program.crossings) {
    sent_rows.push_back(RowsOfCrossing(program, cells, inputs, sent).all(crossing));
  }
  return sent_rows;
}

}  // namespace capo::run
