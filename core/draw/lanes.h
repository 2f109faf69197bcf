// Lanes give the nodes and lines of a drawing their places, in points from the lower left corner of
// the page.
//
// Columns follow from what waits for what; rows are the streams of the ranks, in their order. Rows
// that are longer than the page go on in a next line, all ranks together, like the staves of a
// score. Tested by lanes_test.cpp.

#pragma once

#include "core/draw/drawing.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capo {

/// A rectangle by its middle.
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// The ground of a rank in one of the lines.
struct RankBand {
  std::int32_t rank = 0;
  std::size_t line = 0;
  Box box;
};

class Lanes {
 public:
  Lanes(const Drawing& drawing, std::size_t columns);

  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  [[nodiscard]] const Box& box(std::size_t node) const { return boxes_[node]; }
  [[nodiscard]] std::size_t line_of(std::size_t node) const { return column_of_[node] / columns_; }
  [[nodiscard]] const std::vector<RankBand>& bands() const { return bands_; }
  /// The middle of the title.
  [[nodiscard]] Box title() const;
  /// The curve of a line as Graphviz reads it: "e,72,85 40,85 50,85 60,85 64,85".
  [[nodiscard]] std::string path(const DrawnLine& line) const;
  /// A place for the words of a line, as near to it as nodes and the places given before allow.
  [[nodiscard]] Box place_words(const DrawnLine& line);

 private:
  struct Curve {
    double from_x = 0;
    double from_y = 0;
    double out_x = 0;  // the two points that bend it
    double out_y = 0;
    double in_x = 0;
    double in_y = 0;
    double to_x = 0;
    double to_y = 0;
  };

  void find_columns();
  void find_rows();
  void choose_columns(std::size_t wanted);
  void place_nodes();
  void place_bands();
  [[nodiscard]] bool is_fold(const DrawnLine& line) const;
  [[nodiscard]] std::string folded_path(const DrawnLine& line) const;
  [[nodiscard]] Curve curve_of(const DrawnLine& line) const;
  [[nodiscard]] double page_height(std::size_t columns) const;
  [[nodiscard]] bool is_free(const Box& words) const;

  const Drawing& drawing_;
  std::size_t columns_ = 1;  // of a line
  std::size_t last_column_ = 0;
  std::vector<std::size_t> column_of_;  // by node
  std::vector<std::size_t> row_of_;     // by node
  std::vector<std::int32_t> rank_of_;   // by row
  std::vector<double> depth_of_;        // by row: of its middle below the top of its line
  double line_height_ = 0;
  double pitch_ = 0;  // of columns
  double width_ = 0;
  double height_ = 0;
  std::vector<Box> boxes_;
  std::vector<RankBand> bands_;
  std::vector<Box> words_;  // places that were given
};

}  // namespace capo
