#include "testing/generators/te_capturable_order.h"

#include "testing/generators/draw_te_order.h"

namespace capo::testing {

TeOrder draw_te_capturable_order(Dice& dice) {
  const TeOrder shape = draw_te_shape(dice);
  return draw_te_entries(
      dice, shape, [&](Kind kind, std::int32_t chunk, const ChunkProgress& done) {
        const bool delays = shape.delays[static_cast<std::size_t>(chunk) - 1];
        return kind != Kind::Backward || !delays || done.weights == done.backwards;
      });
}

rc::Gen<TeOrder> te_capturable_order() {
  return generator(draw_te_capturable_order, simpler);
}

}  // namespace capo::testing
