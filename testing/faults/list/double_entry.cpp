// One entry stands there twice in a row; reported is the last of its kind, which is one too many.

#include "testing/faults/faults.h"

namespace capo::testing::faults {

BrokenList double_entry(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const TeEntry entry = order.list.entries[at];
  order.list.entries.insert(order.list.entries.begin() + static_cast<std::ptrdiff_t>(at), entry);
  const Action twice = te_action(entry).value();
  const std::size_t surplus =
      places(order.list, twice.kind, twice.chunk)[static_cast<std::size_t>(order.microbatches)];
  const char* rule = twice.kind == Kind::Forward    ? "S14"
                     : twice.kind == Kind::Backward ? "S15"
                                                    : "S16";
  return {{order, rule, FaultPlace{.index = surplus}}};
}

}  // namespace capo::testing::faults
