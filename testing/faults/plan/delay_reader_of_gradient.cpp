// In a chain on one rank, what a chunk hands back is read behind the backwards of the next
// microbatch: freed by the first of them, taken by the second.
//
//   B2.0 B1.0 B2.1 B1.1   -->   B2.0 B2.1 B1.1 B1.0

#include "testing/faults/faults.h"
#include "testing/faults/plan.h"

namespace capo::testing::faults {

BrokenPlan delay_reader_of_gradient(const Declared& sound, std::size_t choice) {
  const Schedule& schedule = sound.schedule;
  if (schedule.topology != Topology::Chain || schedule.ranks.front().chunks < 2)
    return std::nullopt;
  // The first chunk's backwards with another behind them.
  std::vector<EntryPlace> readers =
      entries_that(schedule, [](const Entry& entry, const RankOrder&) {
        return entry.kind == Kind::Backward && entry.chunk == 1;
      });
  if (readers.size() < 2) return std::nullopt;
  const std::size_t nth = choice % (readers.size() - 1);
  const EntryPlace reader = readers[nth];
  Declared broken = sound;
  auto& order = broken.schedule.ranks.front().order;
  EntryPlace maker = reader;
  while (order[maker.at].kind != Kind::Backward || order[maker.at].chunk != 2) --maker.at;
  // Its weight gradient stays behind it.
  const bool delays = fellow(schedule, reader, Kind::BackwardWeight).has_value();
  const std::size_t last = readers[nth + 1].at + (delays ? 1 : 0);
  move_behind(order, reader.at, last);
  if (delays) move_behind(order, reader.at, last);
  return {{broken, "B03", fault_place(broken.schedule, maker)}};
}

}  // namespace capo::testing::faults
