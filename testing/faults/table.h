// A PyTorch table as text, whose cells faults can break; and broken subjects as text to paste.
//
//   {"csv": ["0F0,1F0,1B0,0B0"], "stage_to_rank": [0,0], ...}
//
// shown() prints any subject as rapidcheck does, in .order lines or JSON for `capo check -`. A
// subject that is judged as a table is shown as one, since some faults of tables are no faults of
// the same order in .order text. Tested by table_test.cpp and, by pasting,
// tests/cli/paste_test.cpp.

#pragma once

#include "core/frameworks/torch/csv_reader.h"
#include "core/order/schedule.h"
#include "core/rules/check_options.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/sound_declared.h"

#include <iosfwd>
#include <sstream>
#include <string>
#include <vector>

namespace capo::testing {

struct Table {
  std::vector<std::vector<std::string>> rows;
  TorchDeclarations declarations;

  [[nodiscard]] std::string text() const;
};

/// Prints a placed schedule as a compute-only table with all its declarations. Layers are left out,
/// and chunks that are not wired become a chain, for which the actions may have to change places.
/// Precondition: the schedule has no replay order.
[[nodiscard]] Table table_of(Schedule schedule);

/// JSON to paste into `capo check -`, since JSON has a place for the table's declarations. If a
/// model is declared as well, the text is a shell's: the two files and the command.
[[nodiscard]] std::string shown_table(const Table& table, const CheckOptions& declared = {});

/// Prints shown_table() for rapidcheck.
void showValue(const Table& table, std::ostream& out);

/// The text that has the fault that the subject has.
template <typename Subject>
[[nodiscard]] std::string shown(const Subject& subject) {
  std::ostringstream text;
  showValue(subject, text);
  return text.str();
}
[[nodiscard]] std::string shown(const Declared& declared);

}  // namespace capo::testing
