#include "run/modules/heads.h"

namespace capo::run {

namespace {

AttentionShape heads_of(const LayerShape& shape) {
  return {.rows = shape.tokens,
          .sequence = shape.sequence,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim};
}

}  // namespace

void launch_attention(const LayerShape& shape, const HeadPlaces& places, const Sink& launch) {
  launch(Attention{.type = shape.type,
                   .shape = heads_of(shape),
                   .qkv = places.qkv,
                   .y = places.y,
                   .log_sums = places.log_sums});
}

// The gradient of the keys reads what that of the queries leaves in `inner`.
void launch_attention_gradients(const LayerShape& shape, const HeadPlaces& places,
                                const Sink& launch) {
  launch(AttentionQueryGradient{.type = shape.type,
                                .shape = heads_of(shape),
                                .qkv = places.qkv,
                                .y = places.y,
                                .log_sums = places.log_sums,
                                .dy = places.dy,
                                .dqkv = places.dqkv,
                                .inner = places.inner});
  launch(AttentionKeyGradient{.type = shape.type,
                              .shape = heads_of(shape),
                              .qkv = places.qkv,
                              .log_sums = places.log_sums,
                              .inner = places.inner,
                              .dy = places.dy,
                              .dqkv = places.dqkv});
}

}  // namespace capo::run
