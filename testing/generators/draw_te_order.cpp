#include "testing/generators/draw_te_order.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <vector>

namespace capo::testing {

namespace {

bool sound_next(Kind kind, const ChunkProgress& done, bool delays, std::int32_t microbatches) {
  switch (kind) {
    case Kind::Forward:
      return done.forwards < microbatches;
    case Kind::Backward:
      return done.backwards < done.forwards;
    default:
      return delays && done.weights < done.backwards;
  }
}

void count(ChunkProgress& done, Kind kind) {
  ++(kind == Kind::Forward    ? done.forwards
     : kind == Kind::Backward ? done.backwards
                              : done.weights);
}

}  // namespace

TeOrder draw_te_shape(Dice& dice) {
  TeOrder order;
  const std::int32_t chunks = dice.between(1, 4);
  order.microbatches = dice.between(1, 5);
  for (std::int32_t c = 0; c < chunks; ++c) order.delays.push_back(dice.one_in(2));
  order.layers = {.form = Layers::Form::List};
  const bool delays =
      std::find(order.delays.begin(), order.delays.end(), true) != order.delays.end();
  const bool several = !delays && dice.one_in(2);
  for (std::int32_t c = 0; c < chunks; ++c)
    order.layers.values.push_back(several ? dice.between(1, 3) : 1);
  return order;
}

TeOrder draw_te_entries(Dice& dice, TeOrder shape, const MayFollow& may_follow) {
  std::vector<ChunkProgress> progress(shape.delays.size());
  while (true) {
    bool finished = true;
    std::vector<Action> next;
    for (std::int32_t chunk = 1; chunk <= shape.chunks(); ++chunk) {
      const auto c = as_index(chunk) - 1;
      for (const Kind kind : {Kind::Forward, Kind::Backward, Kind::BackwardWeight}) {
        if (!sound_next(kind, progress[c], shape.delays[c], shape.microbatches)) continue;
        finished = false;
        if (may_follow(kind, chunk, progress[c])) next.push_back({.kind = kind, .chunk = chunk});
      }
    }
    if (finished) return shape;
    CAPO_ASSERT(!next.empty(), "an order can always be completed");
    const Action action = next[dice.below(next.size())];
    count(progress[action.chunk.index()], action.kind);
    shape.list.entries.push_back(te_entry(action.kind, action.chunk));
  }
}

}  // namespace capo::testing
