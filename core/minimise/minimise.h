// The smallest schedule that still breaks a rule: what a report of a bug, a test or a question to a
// colleague should hold instead of four hundred entries.
//
//   [1, 2, 1, -2, 2, -1, -2.5, -2, ... 100 entries]   ->   F1 B1 F2 W1 B2 W2
//
// Ranks, microbatches, chunks, weight gradients and single entries go away, first halves of them,
// at last one by one; where none can go alone, two at a time; then neighbours are swapped as long
// as that brings the order closer to the canonical one (size.h). Every step asks anew whether the
// rule is still broken, and makes the schedule less by `Size`, so the result is a fixed point: no
// single rank, microbatch, chunk or entry can go, and minimising it again changes nothing. It is
// not always the smallest there is: no more than two parts are taken away at once.
//
// What is declared about the model stays true: chunks delay their weight gradients or do not, and
// only all of a rank's together may cease to. What is declared beside the schedule by its numbers,
// such as a group of ranks, keeps those numbers: they are not deleted. Other rules may be broken
// along the way. On demand the mistake that was made stays too, by which a colleague knows his own
// order (same_edit.h). Tested by minimise_test.cpp, and against the rules' corpus.

#pragma once

#include "core/minimise/same_edit.h"
#include "core/order/input.h"
#include "core/order/schedule.h"
#include "core/rules/check_options.h"
#include "core/text/limits.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace capo {

struct MinimiseOptions {
  std::uint64_t max_checks = 20'000;
  Limits limits;  ///< of a schedule's text
  /// The first so many ranks stay, since something outside the schedule numbers them.
  std::size_t fixed_ranks = 0;
  bool fixed_chunks = false;  ///< all chunks stay, for the same reason
  /// The topology keeps its name, for a form that lists stages and names none.
  bool fixed_topology = false;
  /// Stays, and with what was meant there the schedule is accepted.
  std::optional<Mistake> mistake;
  /// A finding of the rule stays that an edit of the same shape cures, if one does at first.
  bool same_cure = false;
};

struct Minimised {
  Schedule schedule;
  std::uint64_t checks = 0;
  bool at_limit = false;           ///< max_checks ended it, and it may not be minimal
  std::optional<Mistake> mistake;  ///< the one that was asked for, at its new place
};

using StillBroken = std::function<bool(const Schedule&)>;

/// Returns nullopt if `schedule` is not broken itself once it is settled and reduced to what .order
/// text can say.
[[nodiscard]] std::optional<Minimised> minimise(const Schedule& schedule, const StillBroken& broken,
                                                const MinimiseOptions& options = {});

/// A schedule is broken if it has a finding of this rule, named by its id, that is an error if one
/// in `input` is. Ranks and chunks that `declared` numbers stay. Returns nullopt if the input does
/// not break the rule, or only by its form, such as a number that is no action, or an action that
/// only a PyTorch table splits as it does; or if `options` ask for a cure that there is not.
[[nodiscard]] std::optional<Minimised> minimise(const Input& input, std::string_view rule,
                                                const CheckOptions& declared,
                                                MinimiseOptions options = {});

}  // namespace capo
