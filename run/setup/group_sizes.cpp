#include "run/setup/group_sizes.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace capo::run {

namespace {

constexpr std::array<std::pair<SizeKind, std::string_view>, 3> kNames{
    {{SizeKind::Balanced, "balanced"}, {SizeKind::Zipf, "zipf"}, {SizeKind::Random, "random"}}};

std::vector<std::int64_t> balanced(std::int64_t groups, std::int64_t rows) {
  std::vector<std::int64_t> sizes(as_index(groups), rows / groups);
  for (std::int64_t group = 0; group < rows % groups; ++group) {
    ++sizes[as_index(group)];
  }
  return sizes;
}

std::vector<std::size_t> shuffled(std::size_t count, const Draw& draw) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw.below(i, i)]);
  return order;
}

std::vector<std::int64_t> zipf(std::int64_t groups, std::int64_t rows, const Draw& draw) {
  const auto count = as_index(groups);
  std::vector<std::int64_t> sizes(count, 0);
  const std::vector<std::size_t> order = shuffled(count, draw);
  const std::size_t served = count - count / 8;
  double all = 0;
  for (std::size_t k = 0; k < served; ++k) all += 1.0 / static_cast<double>(k + 1);
  std::int64_t left = rows;
  for (std::size_t k = 0; k < served; ++k) {
    const double share = static_cast<double>(rows) / static_cast<double>(k + 1) / all;
    sizes[order[k]] = std::min(left, static_cast<std::int64_t>(share));
    left -= sizes[order[k]];
  }
  sizes[order[0]] += left;
  return sizes;
}

std::vector<std::int64_t> random(std::int64_t groups, std::int64_t rows, const Draw& draw) {
  std::vector<std::int64_t> sizes(as_index(groups), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    ++sizes[draw.below(static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(groups))];
  }
  return sizes;
}

}  // namespace

std::string_view name_of(SizeKind kind) {
  return kNames[as_index(kind)].second;
}

std::optional<SizeKind> size_kind_named(std::string_view word) {
  for (const auto& [kind, name] : kNames) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

std::vector<std::int64_t> group_sizes(SizeKind kind, std::int64_t groups, std::int64_t rows,
                                      const Draw& draw) {
  switch (kind) {
    case SizeKind::Balanced:
      return balanced(groups, rows);
    case SizeKind::Zipf:
      return zipf(groups, rows, draw);
    case SizeKind::Random:
      return random(groups, rows, draw);
  }
  CAPO_UNREACHABLE();
}

}  // namespace capo::run
