// The verdict of a check.
//
//   accepted     no execution that docs/model.md permits breaks a rule of the families checked
//   rejected     at least one rule is broken; each finding has a witness
//   no verdict   the input is malformed or over a limit

#pragma once

#include <cstdint>
#include <string_view>

namespace capo {

enum class Verdict : std::uint8_t { Accepted, Rejected, NoVerdict };

/// "accepted", "rejected", "no-verdict".
[[nodiscard]] std::string_view name_of(Verdict verdict);

}  // namespace capo
