#include "schedules/counted_order.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>

namespace capo::schedules {

CountedOrder::CountedOrder(std::int32_t chunks) : next_(as_index(chunks)) {
}

CountedOrder::Next& CountedOrder::next(std::int32_t chunk) {
  const auto index = as_index(chunk - 1);
  CAPO_ASSERT(chunk >= 1 && index < next_.size(), "a move names a chunk of its rank");
  return next_[index];
}

void CountedOrder::forward(std::int32_t chunk) {
  moves_.push_back({.kind = Kind::Forward, .chunk = chunk, .microbatch = next(chunk).forward++});
}

void CountedOrder::backward(std::int32_t chunk) {
  moves_.push_back({.kind = Kind::Backward, .chunk = chunk, .microbatch = next(chunk).backward++});
}

void CountedOrder::backward_input(std::int32_t chunk) {
  moves_.push_back(
      {.kind = Kind::BackwardInput, .chunk = chunk, .microbatch = next(chunk).backward++});
  owed_.push_back(moves_.back());
}

void CountedOrder::backward_weight() {
  pay(owed_.begin());
}

void CountedOrder::backward_weight(std::int32_t chunk) {
  pay(std::find_if(owed_.begin(), owed_.end(),
                   [chunk](const Move& input_half) { return input_half.chunk == chunk; }));
}

void CountedOrder::pay(const std::deque<Move>::iterator& input_half) {
  CAPO_ASSERT(input_half != owed_.end(), "a weight half follows its input half");
  moves_.push_back({.kind = Kind::BackwardWeight,
                    .chunk = input_half->chunk,
                    .microbatch = input_half->microbatch});
  owed_.erase(input_half);
}

void CountedOrder::overlap(std::int32_t forward_chunk, std::int32_t backward_chunk) {
  forward(forward_chunk);
  backward(backward_chunk);
  moves_.back().joins = true;
}

std::int32_t MicrobatchGroups::forward_chunk(std::int64_t step) const {
  const std::int64_t group_steps = std::int64_t{group} * chunks;
  const std::int64_t first = step - step % group_steps;  // the first step of the step's group
  const std::int64_t size = std::min<std::int64_t>(group, microbatches - first / chunks);
  return static_cast<std::int32_t>((step - first) / size) + 1;
}

std::vector<Move> interleaved_rank(const MicrobatchGroups& groups, std::int64_t ahead) {
  CountedOrder order(groups.chunks);
  for (std::int64_t step = 0; step < ahead; ++step) order.forward(groups.forward_chunk(step));
  for (std::int64_t step = 0; step < groups.steps(); ++step) {
    if (ahead + step < groups.steps()) order.forward(groups.forward_chunk(ahead + step));
    order.backward(groups.backward_chunk(step));
  }
  return std::move(order).take();
}

}  // namespace capo::schedules
