#include "testing/generators/sound_order.h"

#include "core/base/index.h"
#include "testing/generators/draw_te_order.h"

#include <algorithm>

namespace capo::testing {

namespace {

std::vector<TeOrder> simpler_uncapturable(const TeOrder& order) {
  std::vector<TeOrder> orders = simpler(order);
  std::erase_if(orders, [](const TeOrder& smaller) { return !two_outstanding(smaller); });
  return orders;
}

}  // namespace

TeOrder draw_sound_order(Dice& dice) {
  return draw_te_entries(dice, draw_te_shape(dice),
                         [](Kind, std::int32_t, const ChunkProgress&) { return true; });
}

rc::Gen<TeOrder> sound_order() {
  return generator(draw_sound_order, simpler);
}

TeOrder draw_te_capturable_order(Dice& dice) {
  const TeOrder shape = draw_te_shape(dice);
  return draw_te_entries(
      dice, shape, [&](Kind kind, std::int32_t chunk, const ChunkProgress& done) {
        const bool delays = shape.delays[as_index(chunk) - 1];
        return kind != Kind::Backward || !delays || done.weights == done.backwards;
      });
}

rc::Gen<TeOrder> te_capturable_order() {
  return generator(draw_te_capturable_order, simpler);
}

TeOrder draw_te_uncapturable_order(Dice& dice) {
  TeOrder shape = draw_te_shape(dice);
  shape.microbatches = std::max(shape.microbatches, 2);
  const std::int32_t late_chunk = dice.between(1, shape.chunks());
  const std::int32_t late_weight = dice.between(0, shape.microbatches - 2);
  shape.delays[as_index(late_chunk) - 1] = true;
  shape.layers.values.assign(shape.delays.size(), 1);
  return draw_te_entries(
      dice, shape, [&](Kind kind, std::int32_t chunk, const ChunkProgress& done) {
        const bool late =
            kind == Kind::BackwardWeight && chunk == late_chunk && done.weights == late_weight;
        return !late || done.backwards >= late_weight + 2;
      });
}

rc::Gen<TeOrder> te_uncapturable_order() {
  return generator(draw_te_uncapturable_order, simpler_uncapturable);
}

bool two_outstanding(const TeOrder& order) {
  for (std::int32_t chunk = 1; chunk <= order.chunks(); ++chunk) {
    if (!order.delays[as_index(chunk) - 1]) continue;
    const auto backwards = places(order.list, Kind::Backward, chunk);
    const auto weights = places(order.list, Kind::BackwardWeight, chunk);
    for (std::size_t k = 0; k + 1 < backwards.size() && k < weights.size(); ++k) {
      if (backwards[k + 1] < weights[k]) return true;
    }
  }
  return false;
}

}  // namespace capo::testing
