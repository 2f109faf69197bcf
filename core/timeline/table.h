// Times as reports print them: numbers, shares, and tables of both.
//
//   rank  busy  bubble
//   0      6.5       3
//
// Tested by table_test.cpp.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capo {

/// Appends a number of parts of 10^-decimals without the zeros at its end: 1250 and 2 as "12.5".
void append_decimal(std::int64_t parts, int decimals, std::string& text);

/// At most six digits that matter, without trailing zeros; whole numbers in full.
[[nodiscard]] std::string figure(double value);

/// 0.1055 as "10.55 %".
[[nodiscard]] std::string percent(double rate);

/// Rows of cells, each column as wide as its widest. The first column begins at the left. The next
/// ones end at the right as numbers do; from the column `numbers` on, cells are words and begin at
/// the left again.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows,
                                std::size_t numbers = 100);

}  // namespace capo
