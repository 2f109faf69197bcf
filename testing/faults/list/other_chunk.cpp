// An entry names another chunk than is meant, so that one chunk lacks it and the other has one too
// many.
//
//   [1, 2, -2, -1]   ->   [1, 2, -1, -1]
//
// TransformerEngine accepts that one in silence. Reported is the surplus, at the last of its kind;
// a weight gradient of a chunk that does not delay is reported where it stands.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList other_chunk(const TeOrder& sound, std::size_t choice) {
  if (sound.chunks() < 2) return std::nullopt;
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const Action meant = te_action(order.list.entries[at]).value();
  const std::int32_t other = meant.chunk % order.chunks() + 1;
  order.list.entries[at] = te_entry(meant.kind, other);
  if (meant.kind == Kind::BackwardWeight && !order.delays[static_cast<std::size_t>(other) - 1]) {
    return {{order, "S17", FaultPlace{.index = at}}};
  }
  const std::size_t surplus =
      places(order.list, meant.kind, other)[static_cast<std::size_t>(order.microbatches)];
  const char* rule = meant.kind == Kind::Forward    ? "S14"
                     : meant.kind == Kind::Backward ? "S15"
                                                    : "S16";
  return {{order, rule, FaultPlace{.index = surplus}}};
}

}  // namespace capo::testing::faults
