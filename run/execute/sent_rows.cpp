#include "run/execute/sent_rows.h"

#include "core/base/index.h"

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
        static_cast<std::int32_t>(std::find(among.begin(), among.end(), exchange) - among.begin());
    for (std::int32_t member = 0; as_index(member) < among.size(); ++member) {
      const StepInputs::Block cut = inputs_.block(program_.exchanges[exchange], own, member);
      if (cut.bytes == 0) continue;
      const std::uint32_t there = among[as_index(member)];
      std::byte* const away = inputs_.route(there).arrived + cut.lands;
      SentBlock& block = all_.emplace_back();
      block = {.from = back ? away : route.rows + cut.begin,
               .to = back ? route.back + cut.begin : away,
               .exchange = exchange,
               .back = back};
      block.message = {.channel = {.sender = rank_of(back ? there : exchange),
                                   .receiver = rank_of(back ? exchange : there),
                                   .communicator = kCrossingsThrough},
                       .bytes = cut.bytes};
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
