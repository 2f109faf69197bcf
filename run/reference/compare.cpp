#include "run/reference/compare.h"

#include "core/base/assert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <utility>

namespace capo::run {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Numbers of a type in ascending order, one apart where they are neighbours.
std::int64_t place_of(float value, DataType type) {
  if (type == DataType::Fp16) {
    // Exact: what is stored as fp16 is a whole multiple of its spacing.
    if (std::isinf(value)) return value > 0 ? 0x7c00 : -0x7c00;
    int exponent = 0;
    const float fraction = std::frexp(std::abs(value), &exponent);
    const int scale = std::max(exponent - 11, -24);
    const auto steps = static_cast<std::int64_t>(std::ldexp(fraction, exponent - scale));
    const std::int64_t place =
        value == 0 ? 0 : steps + static_cast<std::int64_t>(scale + 24) * 1024;
    return std::signbit(value) ? -place : place;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7fffffffU);
  const std::int64_t place = type == DataType::Bf16 ? magnitude >> 16 : magnitude;
  return std::signbit(value) ? -place : place;
}

std::int64_t distance(float a, float b, DataType type) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<std::int64_t>::max();
  return std::abs(place_of(a, type) - place_of(b, type));
}

// The squares of all errors, and of what they are relative to.
std::pair<double, double> squares(std::span<const double> should, std::span<const float> is,
                                  std::span<const double> magnitudes) {
  double off = 0;
  double norm = 0;
  for (std::size_t i = 0; i < should.size(); ++i) {
    const double by = static_cast<double>(is[i]) - should[i];
    off += by * by;
    norm += magnitudes[i] * magnitudes[i];
  }
  return {off, norm};
}

// Leaves out what has left the range of its type: in both, an element is compared with nothing.
std::pair<double, double> squares_in_range(std::span<const double> should,
                                           std::span<const float> is,
                                           std::span<const double> magnitudes) {
  double off = 0;
  double norm = 0;
  for (std::size_t i = 0; i < should.size(); ++i) {
    if (!std::isfinite(should[i]) && !std::isfinite(is[i])) continue;
    const double by = static_cast<double>(is[i]) - should[i];
    off += by * by;
    if (std::isfinite(magnitudes[i])) norm += magnitudes[i] * magnitudes[i];
  }
  return {off, norm};
}

}  // namespace

std::optional<Difference> difference(std::span<const float> should, std::span<const float> is,
                                     DataType type) {
  CAPO_ASSERT(should.size() == is.size(), "only tensors of one form are compared");
  std::optional<Difference> found;
  double off = 0;
  double norm = 0;
  for (std::size_t i = 0; i < should.size(); ++i) {
    const bool equal =
        std::bit_cast<std::uint32_t>(should[i]) == std::bit_cast<std::uint32_t>(is[i]);
    // A NaN or an infinity that both hold does not tell how far they are apart.
    if (equal && !std::isfinite(should[i])) continue;
    norm += static_cast<double>(should[i]) * static_cast<double>(should[i]);
    if (equal) continue;
    if (!found) {
      found = Difference{.first = static_cast<std::int64_t>(i), .should = should[i], .is = is[i]};
    }
    ++found->differing;
    found->ulps = std::max(found->ulps, distance(should[i], is[i], type));
    const double by = static_cast<double>(is[i]) - static_cast<double>(should[i]);
    off += by * by;
  }
  if (found) {
    const double error = norm > 0 ? std::sqrt(off / norm) : kInfinite;
    found->relative_error = std::isfinite(error) ? error : kInfinite;
  }
  return found;
}

double relative_error(std::span<const double> should, std::span<const float> is) {
  return relative_error(should, is, should);
}

double relative_error(std::span<const double> should, std::span<const float> is,
                      std::span<const double> magnitudes) {
  CAPO_ASSERT(should.size() == is.size() && should.size() == magnitudes.size(),
              "only tensors of one form are compared");
  auto [off, norm] = squares(should, is, magnitudes);
  if (!std::isfinite(off) || !std::isfinite(norm)) {
    std::tie(off, norm) = squares_in_range(should, is, magnitudes);
  }
  if (off == 0) return 0;
  const double error = norm > 0 ? std::sqrt(off / norm) : kInfinite;
  return std::isfinite(error) ? error : kInfinite;
}

double worst_element(std::span<const double> should, std::span<const float> is,
                     std::span<const double> magnitudes, std::int64_t columns) {
  CAPO_ASSERT(should.size() == is.size() && should.size() == magnitudes.size(),
              "only tensors of one form are compared");
  double worst = 0;
  for (std::size_t first = 0; first < should.size(); first += static_cast<std::size_t>(columns)) {
    const std::size_t end = std::min(should.size(), first + static_cast<std::size_t>(columns));
    double squares = 0;
    for (std::size_t i = first; i < end; ++i) {
      if (std::isfinite(magnitudes[i])) squares += magnitudes[i] * magnitudes[i];
    }
    const double of_row = std::sqrt(squares / static_cast<double>(end - first));
    for (std::size_t i = first; i < end; ++i) {
      if (!std::isfinite(should[i]) && !std::isfinite(is[i])) continue;
      const double off = std::abs(static_cast<double>(is[i]) - should[i]);
      if (off == 0) continue;
      const double error = off / std::max(std::abs(magnitudes[i]), of_row);
      worst = std::max(worst, std::isfinite(error) ? error : kInfinite);
    }
  }
  return worst;
}

double error_bound(DataType type) {
  return type == DataType::Fp32 ? 1e-5 : 5e-3;
}

double smallest_normal(DataType type) {
  return type == DataType::Fp16 ? 0x1p-14 : 0x1p-126;
}

std::vector<double> sizes_in(std::span<const double> values, DataType type) {
  const double least = smallest_normal(type);
  std::vector<double> sizes(values.begin(), values.end());
  for (double& size : sizes) size = std::max(std::abs(size), least);
  return sizes;
}

}  // namespace capo::run
