// The catalogue as text: a table for a terminal, or the page docs/rules.md, which a test compares.

#pragma once

#include <string>

namespace capo {

[[nodiscard]] std::string rules_as_text();
[[nodiscard]] std::string rules_as_markdown();

}  // namespace capo
