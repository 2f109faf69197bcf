// Laws of verdicts: what is sound is accepted, and every fault in it is reported, by its rule and
// at its place.
//
// The first is for generators that promise sound orders; the breach is the report that `capo check`
// prints. The second is for rules: `sound` is broken in every way that faults.h knows for its kind,
// and a fault that is not reported is named, with what was broken, to paste. `sound` is what a
// generator of capo::testing makes, which declares everything. Tested by
// tests/testing/laws/verdicts_test.cpp; that capo keeps it is a property in tests/properties/.

#pragma once

#include "testing/laws/checked.h"
#include "testing/laws/law.h"

#include <cstddef>

namespace capo::testing::laws {

template <typename Subject>
[[nodiscard]] Breach is_accepted(const Subject& subject) {
  const Checked verdict = checked(subject);
  if (verdict.accepted()) return std::nullopt;
  return verdict.report();
}
/// The verdict is relative to an environment, modules and a plan.
[[nodiscard]] Breach is_accepted(const Schedule& schedule, const CheckOptions& options);

/// `choice`, any number, says which entry each fault breaks.
[[nodiscard]] Breach faults_are_reported(const TeOrder& sound, std::size_t choice);
[[nodiscard]] Breach faults_are_reported(const Schedule& sound, std::size_t choice);
[[nodiscard]] Breach faults_are_reported(const Table& sound, std::size_t choice);
[[nodiscard]] Breach faults_are_reported(const Communication& sound, std::size_t choice);
/// Tries the faults of modules and reductions; `sound` is a sound_declared().
[[nodiscard]] Breach module_faults_are_reported(const Declared& sound, std::size_t choice);
/// Tries the faults of plans; `sound` is a sound_planned().
[[nodiscard]] Breach plan_faults_are_reported(const Declared& sound, std::size_t choice);

}  // namespace capo::testing::laws
