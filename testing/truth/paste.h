// A case of the truth campaign as lines to paste into a shell: the order, all that is declared of
// it, and the command that runs it.
//
//   cat > case.order <<'END'
//   capo 1
//   ...
//   END
//   cat > case.model <<'END'
//   {"schema": 1, "plan": "te", "modules": {...}, "layers": ...}
//   END
//   capo run case.order --model case.model --graphs per-step --seed 7 --unchecked
//
// Tested by tests/testing/truth/paste_test.cpp: what is pasted reads back as what was declared.

#pragma once

#include "testing/truth/truth_case.h"

#include <string>
#include <string_view>

namespace capo::testing {

/// `device` is "host" or "cuda".
[[nodiscard]] std::string paste_text(const TruthCase& of, std::string_view device);

}  // namespace capo::testing
