// Products of groups of rows in float64, and their gradients.
//
// Every element is one sum, whose terms come in the order in which they lie: by column of what is
// summed over, or, of a weight's gradient, by row. Neither blocks nor threads change that order, so
// that they change no bit. Rows of a group are taken some at a time, since a weight that has been
// read for one is near for the next. Tested by layer_products_test.cpp.

#include "core/base/in_parallel.h"
#include "run/reference/layer_parts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace capo::run::reference {

namespace {

// So many sums go on together: each waits for its own last addition alone. Of six g++ 12 makes
// three vectors; eight it shuffles about, in twice the time.
constexpr std::int64_t kRowsAtOnce = 6;

// A piece of a weight's gradient is that of so many columns of the output.
constexpr std::int64_t kColumnsOfStrip = 8;

using RowNumbers = std::vector<std::int64_t>;

struct SharedRows {
  std::int64_t group = 0;
  std::span<const std::int64_t> rows;
};

// `rows` outlive the blocks.
std::vector<SharedRows> blocks_of(const RowNumbers& rows, std::int64_t group, std::size_t most) {
  std::vector<SharedRows> blocks;
  const std::span<const std::int64_t> all(rows);
  for (std::size_t first = 0; first < all.size(); first += most) {
    const std::size_t count = std::min(most, all.size() - first);
    blocks.push_back({.group = group, .rows = all.subspan(first, count)});
  }
  return blocks;
}

std::vector<SharedRows> blocks_of(const std::vector<RowNumbers>& rows) {
  std::vector<SharedRows> blocks;
  for (std::int64_t group = 0; group < std::ssize(rows); ++group) {
    const std::vector<SharedRows> more = blocks_of(rows[group], group, kRowsAtOnce);
    blocks.insert(blocks.end(), more.begin(), more.end());
  }
  return blocks;
}

unsigned threads_for(const Product& p) {
  return threads_worth(p.group.size() * static_cast<std::size_t>(p.in * p.out));
}

// The rows of a block side by side, column by column; zeros stand for those that it has not.
Values side_by_side(const Values& x, const SharedRows& block, std::int64_t columns) {
  Values turned(columns * kRowsAtOnce);
  for (std::int64_t r = 0; r < std::ssize(block.rows); ++r) {
    const double* const row = x.data() + block.rows[r] * columns;
    for (std::int64_t c = 0; c < columns; ++c) turned[c * kRowsAtOnce + r] = row[c];
  }
  return turned;
}

std::array<double, kRowsAtOnce> sums_of_products(const Values& turned, const double* weights,
                                                 std::int64_t count) {
  std::array<double, kRowsAtOnce> sums{};
  const double* terms = turned.data();
  for (std::int64_t i = 0; i < count; ++i, terms += kRowsAtOnce) {
    for (std::size_t r = 0; r < kRowsAtOnce; ++r) sums[r] += terms[r] * weights[i];
  }
  return sums;
}

// A term of the sums of a row: the values of another row, times a number.
struct ScaledRow {
  const double* values = nullptr;
  double by = 0;
};

constexpr std::int64_t kTermsAtOnce = 4;

// Adds so many terms at most, one after the other. The sums are read and written once for four.
void add_scaled(std::span<const ScaledRow> terms, std::int64_t count, double* sums) {
  if (terms.size() == kTermsAtOnce) {
    const ScaledRow a = terms[0];
    const ScaledRow b = terms[1];
    const ScaledRow c = terms[2];
    const ScaledRow d = terms[3];
    for (std::int64_t i = 0; i < count; ++i) {
      sums[i] = sums[i] + a.by * a.values[i] + b.by * b.values[i] + c.by * c.values[i] +
                d.by * d.values[i];
    }
    return;
  }
  for (const ScaledRow& term : terms) {
    for (std::int64_t i = 0; i < count; ++i) sums[i] += term.by * term.values[i];
  }
}

}  // namespace

std::vector<RowNumbers> rows_of_groups(const Product& p) {
  std::vector<RowNumbers> rows(p.groups);
  for (std::int64_t row = 0; row < std::ssize(p.group); ++row) rows[p.group[row]].push_back(row);
  return rows;
}

Values output_of(const Product& p, const Values& x, const Values& w) {
  Values y(p.rows * p.out);
  const std::vector<RowNumbers> rows = rows_of_groups(p);
  const std::vector<SharedRows> blocks = blocks_of(rows);
  in_parallel(blocks.size(), threads_for(p), [&](std::size_t at) {
    const SharedRows& block = blocks[at];
    const Values turned = side_by_side(x, block, p.in);
    for (std::int64_t o = 0; o < p.out; ++o) {
      const double* const weights = w.data() + (block.group * p.out + o) * p.in;
      const std::array<double, kRowsAtOnce> sums = sums_of_products(turned, weights, p.in);
      for (std::size_t r = 0; r < block.rows.size(); ++r) y[block.rows[r] * p.out + o] = sums[r];
    }
  });
  return y;
}

Values input_gradient(const Product& p, const Values& dy, const Values& w) {
  Values dx(p.rows * p.in);
  const std::vector<RowNumbers> rows = rows_of_groups(p);
  const std::vector<SharedRows> blocks = blocks_of(rows);
  in_parallel(blocks.size(), threads_for(p), [&](std::size_t at) {
    const SharedRows& block = blocks[at];
    for (std::int64_t first = 0; first < p.out; first += kTermsAtOnce) {
      const std::int64_t count = std::min(kTermsAtOnce, p.out - first);
      for (const std::int64_t row : block.rows) {
        std::array<ScaledRow, kTermsAtOnce> terms;
        for (std::int64_t k = 0; k < count; ++k) {
          terms[k] = {.values = w.data() + (block.group * p.out + first + k) * p.in,
                      .by = dy[row * p.out + first + k]};
        }
        add_scaled(std::span(terms).first(count), p.in, dx.data() + row * p.in);
      }
    }
  });
  return dx;
}

Values weight_gradient(const Product& p, const Values& dy, const Values& x) {
  Values dw(p.groups * p.out * p.in);
  const std::vector<RowNumbers> rows = rows_of_groups(p);
  const std::int64_t strips = (p.out + kColumnsOfStrip - 1) / kColumnsOfStrip;
  in_parallel(static_cast<std::size_t>(p.groups * strips), threads_for(p), [&](std::size_t at) {
    const auto piece = static_cast<std::int64_t>(at);
    const std::int64_t group = piece / strips;
    const std::int64_t first = piece % strips * kColumnsOfStrip;
    const std::int64_t end = std::min(first + kColumnsOfStrip, p.out);
    for (const SharedRows& block : blocks_of(rows[group], group, kTermsAtOnce)) {
      for (std::int64_t o = first; o < end; ++o) {
        std::array<ScaledRow, kTermsAtOnce> terms;
        for (std::size_t k = 0; k < block.rows.size(); ++k) {
          terms[k] = {.values = x.data() + block.rows[k] * p.in,
                      .by = dy[block.rows[k] * p.out + o]};
        }
        add_scaled(std::span(terms).first(block.rows.size()), p.in,
                   dw.data() + (group * p.out + o) * p.in);
      }
    }
  });
  return dw;
}

}  // namespace capo::run::reference
