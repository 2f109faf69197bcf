#include "testing/laws/verdicts.h"

#include "testing/faults/faults.h"
#include "testing/laws/reported.h"

#include <fmt/format.h>

#include <span>
#include <string>

namespace capo::testing::laws {

namespace {

template <typename Subject>
Breach all_reported(std::span<const Fault<Subject>> faults, const Subject& sound,
                    std::size_t choice) {
  for (const Fault<Subject>& fault : faults) {
    const auto broken = fault.apply(sound, choice);
    if (!broken) continue;
    const Checked verdict = checked(broken->subject);
    if (reports(verdict, *broken)) continue;
    const std::string place =
        broken->place ? fmt::format("rank {} index {}", broken->place->rank, broken->place->index)
                      : "no place";
    return fmt::format("{}: expected {} at {}, found [{}] in\n{}", fault.name, broken->rule, place,
                       verdict.findings(), shown(broken->subject));
  }
  return std::nullopt;
}

}  // namespace

Breach is_accepted(const Schedule& schedule, const CheckOptions& options) {
  const Checked verdict = checked(schedule, options);
  if (verdict.accepted()) return std::nullopt;
  return verdict.report();
}

Breach faults_are_reported(const TeOrder& sound, std::size_t choice) {
  return all_reported(list_faults(), sound, choice);
}

Breach faults_are_reported(const Schedule& sound, std::size_t choice) {
  return all_reported(order_faults(), sound, choice);
}

Breach faults_are_reported(const Table& sound, std::size_t choice) {
  return all_reported(table_faults(), sound, choice);
}

Breach faults_are_reported(const Communication& sound, std::size_t choice) {
  return all_reported(communication_faults(), sound, choice);
}

Breach module_faults_are_reported(const Declared& sound, std::size_t choice) {
  return all_reported(module_faults(), sound, choice);
}

Breach plan_faults_are_reported(const Declared& sound, std::size_t choice) {
  return all_reported(plan_faults(), sound, choice);
}

}  // namespace capo::testing::laws
