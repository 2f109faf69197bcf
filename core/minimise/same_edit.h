// Keeps the mistake that somebody made while a schedule is cut, where the smallest breach of the
// same rule may be another one.
//
//   [1, 2, -2, -2, -1, -1.5, 1, 2, -2, -2.5, -1, -1.5]     the second `-2` was meant to be `-2.5`
//   [1, -1, -1, 1, -1, -1.5]                               is left of it
//   [1, -1.5, 1]                                           breaks the same rule and needs less
//
// An entry that was written for another is followed. What is cut is the schedule with the entry
// that was meant, so that its microbatches are counted as its author counted them; each candidate
// must be accepted so, and broken as it was written. The edits that the help of a finding offers
// are compared by the letters that they take away and put in: chunks and microbatches are
// renumbered by every cut. Tested by same_edit_test.cpp.

#pragma once

#include "core/cures/cures.h"
#include "core/order/input.h"
#include "core/order/schedule.h"
#include "core/rules/check_result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// An entry of the capture order of a single rank, and what was meant there.
struct Mistake {
  std::size_t position = 0;
  Action meant;  ///< its microbatch means nothing
};

/// The action that was written in place of the entry that is followed.
struct Miswritten {
  Kind kind = Kind::Forward;
  std::optional<ChunkId> chunk;  ///< nullopt: the chunk that was meant
};

/// The action that a mistake put in place of the one that was meant.
[[nodiscard]] Miswritten miswritten_of(const Schedule& schedule, const Mistake& mistake);

/// The schedule with the entry that was meant, which is followed from now on.
[[nodiscard]] Schedule with_meant(Schedule schedule, const Mistake& mistake);

/// The mistake in a schedule whose entry is followed; nullopt if that entry is gone.
[[nodiscard]] std::optional<Mistake> mistake_in(const Schedule& meant);

/// The schedule as it was written, with nothing followed.
[[nodiscard]] Schedule as_miswritten(Schedule meant, const Mistake& mistake,
                                     const Miswritten& miswritten);

/// The edits of those findings of a rule whose help cures them, without numbers: "W>;>W" moves a
/// weight gradient back. The text of `input` is an .order file.
[[nodiscard]] std::vector<std::string> cures_of(const Input& input, const CheckResult& found,
                                                std::string_view rule, const JudgeText& judge);

}  // namespace capo
