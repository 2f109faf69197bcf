#include "testing/generators/sound_planned.h"

#include "core/base/index.h"
#include "testing/generators/fewer_microbatches.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace capo::testing {

namespace {

// A forward, or a backward with all that has to follow at once.
struct Piece {
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;
  bool backward = false;
};

// One rank's order in the making.
class OrderDraw {
 public:
  OrderDraw(const RankOrder& rank, std::int32_t microbatches, bool chain)
      : rank_(rank), microbatches_(microbatches), chain_(chain) {}

  std::vector<Entry> run(Dice& dice) {
    for (auto next = may_follow(); !next.empty(); next = may_follow()) {
      const Piece piece = next[dice.below(next.size())];
      if (piece.backward) {
        run_backward(piece);
      } else {
        add(Kind::Forward, piece.chunk, piece.microbatch);
      }
    }
    return std::move(order_);
  }

 private:
  [[nodiscard]] bool has(Kind kind, std::int32_t chunk, std::int32_t microbatch) const {
    const Action action{.kind = kind, .chunk = chunk, .microbatch = microbatch};
    return std::any_of(order_.begin(), order_.end(),
                       [&](const Entry& entry) { return entry.action() == action; });
  }

  [[nodiscard]] std::vector<Piece> may_follow() const {
    std::vector<Piece> next;
    for (std::int32_t chunk = 1; chunk <= rank_.chunks; ++chunk) {
      for (std::int32_t m = 0; m < microbatches_; ++m) {
        const bool fed = !chain_ || chunk == 1 || has(Kind::Forward, chunk - 1, m);
        const bool last = !chain_ || chunk == rank_.chunks;
        if (!has(Kind::Forward, chunk, m)) {
          if (fed) next.push_back({.chunk = chunk, .microbatch = m});
        } else if (last && !has(Kind::Backward, chunk, m)) {
          next.push_back({.chunk = chunk, .microbatch = m, .backward = true});
        }
      }
    }
    return next;
  }

  void run_backward(const Piece& piece) {
    const std::int32_t down_to = chain_ ? 1 : piece.chunk;
    for (std::int32_t chunk = piece.chunk; chunk >= down_to; --chunk) {
      add(Kind::Backward, chunk, piece.microbatch);
      const Delay delay = (*rank_.delay)[as_index(chunk) - 1];
      if (delay == Delay::Always) add(Kind::BackwardWeight, chunk, piece.microbatch);
    }
  }

  void add(Kind kind, std::int32_t chunk, std::int32_t microbatch) {
    order_.push_back({.chunk = chunk, .microbatch = microbatch, .kind = kind});
  }

  const RankOrder& rank_;
  std::int32_t microbatches_;
  bool chain_;
  std::vector<Entry> order_;
};

Module layer(const char* name, bool delays) {
  return {.name = name,
          .kind = ModuleKind::Linear,
          .dtype = DataType::Bf16,
          .shape = {.tokens = 16, .hidden = 32, .ffn = 32},
          .flags = {.delay_wgrad = delays, .fuse_wgrad_accumulation = true}};
}

}  // namespace

Declared draw_sound_planned(Dice& dice) {
  Declared declared;
  Schedule& schedule = declared.schedule;
  const bool chain = dice.one_in(2);
  schedule.naming = Naming::Named;
  schedule.topology = chain ? Topology::Chain : Topology::Independent;
  schedule.microbatches = dice.between(1, 4);
  const std::int32_t ranks = chain ? 1 : dice.between(1, 3);
  const std::int32_t chunks = dice.between(1, 3);

  ModuleTable& table = declared.options.modules;
  table.list = {layer("whole", false), layer("delayed", true)};
  for (std::int32_t r = 0; r < ranks; ++r) {
    RankOrder& rank = schedule.ranks.emplace_back();
    rank.chunks = chunks;
    rank.chunks_declared = true;
    rank.delay.emplace();
    auto& layers = table.layers.emplace_back();
    for (std::int32_t c = 0; c < chunks; ++c) {
      const bool delays = dice.one_in(2);
      rank.delay->push_back(delays ? Delay::Always : Delay::Never);
      layers.push_back({delays ? 1 : 0});
    }
    rank.order = OrderDraw(rank, *schedule.microbatches, chain).run(dice);
  }
  place_stages(schedule);
  declared.options.plan.kind = PlanKind::Te;
  declared.options.environment.weight_stream = false;  // no warning about one is wanted
  return declared;
}

rc::Gen<Declared> sound_planned() {
  return generator(draw_sound_planned, with_fewer_microbatches<Declared>);
}

}  // namespace capo::testing
