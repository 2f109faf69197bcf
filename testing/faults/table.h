// A PyTorch table as text: what the faults of cells break.

#pragma once

#include "core/frameworks/torch/csv_reader.h"
#include "core/order/schedule.h"
#include "core/rules/check_options.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace capo::testing {

struct Table {
  std::vector<std::vector<std::string>> rows;
  TorchDeclarations declarations;

  [[nodiscard]] std::string text() const;
};

/// A placed schedule without replay order as a compute-only table with all its declarations; layers
/// are left out, and chunks that are not wired become a chain, for which the actions may have to
/// change places.
[[nodiscard]] Table table_of(Schedule schedule);

/// To paste: JSON for `capo check -`, which has a place for what is declared of the cells. Where a
/// model is declared as well, the two files and the command for a shell.
[[nodiscard]] std::string shown_table(const Table& table, const CheckOptions& declared = {});

/// For rapidcheck: shown_table().
void showValue(const Table& table, std::ostream& out);

}  // namespace capo::testing
