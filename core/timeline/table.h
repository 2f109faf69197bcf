// Figures as reports show them: numbers, shares, tables of both, and what less of one costs of
// another, as a picture.
//
//   rank  busy  bubble
//   0      6.5       3
//
// Tested by table_test.cpp and trade_off_test.cpp.

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

/// Two figures of several things, both of which had better be small.
struct TradeOff {
  struct Point {
    double x = 0;
    double y = 0;
    std::string name;
  };
  /// The best that was found for each x, and what is known to be out of reach.
  struct Line {
    std::string name;
    std::vector<Point> found;   ///< in any order; names are shown as tooltips
    std::vector<Point> bounds;  ///< up to x nothing is below y
  };
  std::string title;
  std::string across;   ///< the words of the axis of x
  std::string upwards;  ///< of y
  std::vector<Line> lines;
  std::vector<Point> others;  ///< their names stand beside them
};

/// The pictures one below the other as one SVG, which needs no other file and follows the reader's
/// light or dark. Same figures, same bytes.
///
///   1100 |__                       a line goes right from what was found, and down to what takes
///        |  |___ o zb-h1           less time with more memory
///    900 |......|_______           below the dotted line nothing can be
///         2    4       6
[[nodiscard]] std::string trade_off_svg(const std::vector<TradeOff>& pictures);

}  // namespace capo
