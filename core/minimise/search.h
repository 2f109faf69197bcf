// The search of minimise(): which parts it tries to take away, and in which order.
//
// Structure first (ranks, microbatches, chunks, weight gradients), since it makes everything else
// cheap; entries when that is done; pairs only where nothing goes alone; order and declarations at
// last. As long as a round has helped there is another, since a swap may free what nothing could
// delete. Internal to core/minimise; tested by minimise_test.cpp.

#pragma once

#include "core/minimise/minimised.h"
#include "core/minimise/size.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace capo {

class Search {
 public:
  /// `start` is settled and broken; `broken` and `options` outlive the search.
  Search(Schedule start, const StillBroken& broken, const MinimiseOptions& options);

  void run();
  [[nodiscard]] Minimised result() &&;

 private:
  [[nodiscard]] bool round();
  // Each says whether it made the schedule smaller.
  bool take_replay_away();
  bool take_kinds_away();
  bool take_ranks_away();
  bool take_microbatches_away();
  bool take_chunks_away();
  bool take_weights_away();
  bool take_entries_away();
  bool take_pairs_away();
  bool keep_two_cells();
  bool drop_declarations();
  bool rename();
  bool swap_neighbours();

  using Count = std::function<std::size_t(const Schedule&)>;
  using Without =
      std::function<std::optional<Schedule>(const Schedule&, std::size_t begin, std::size_t end)>;
  bool sweep(const Count& parts, const Without& without);
  bool try_each_of(std::vector<Schedule> (*candidates)(const Schedule&));
  bool swap_in(std::size_t rank, bool replay);

  /// Makes a smaller candidate the schedule if it is still broken.
  bool accept(std::optional<Schedule> candidate);
  [[nodiscard]] bool loses_a_fixed_chunk(const Schedule& candidate) const;

  Schedule schedule_;
  Size size_;
  const StillBroken& broken_;
  const MinimiseOptions& options_;
  std::uint64_t checks_ = 0;
  bool at_limit_ = false;
};

}  // namespace capo
