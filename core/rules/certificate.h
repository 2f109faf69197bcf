// A certificate lets a program check a verdict that trusts no line of capo's: it has the memory of
// an accepted step under its plan, or the circle of waits of one that never ends.

#pragma once

#include <optional>
#include <string>

namespace capo {

class Context;
class PlanView;

/// The plan as JSON, with what shows that it is right (see certificate.cpp). Precondition: the
/// step is accepted and replayed as captured, and its plan has no hazard, not even a possible one.
[[nodiscard]] std::string certificate_of(const PlanView& view);

/// A circle of waits as JSON; nullopt if no transfers wait for each other, or the orders have
/// errors.
[[nodiscard]] std::optional<std::string> deadlock_certificate_of(const Context& context);

}  // namespace capo
