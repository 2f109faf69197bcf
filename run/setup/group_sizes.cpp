#include "run/setup/values.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "run/kernels/numbers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
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

template <typename T>
std::vector<std::byte> stored_as(std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = round_to<T>(values[i]);
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
  }
  return bytes;
}

template <typename T>
std::vector<float> read_as(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
    values[i] = to_float(value);
  }
  return values;
}

// The numbers of a slice as they are stored; those behind what is drawn stay as they are.
template <typename T>
void fill(std::vector<float>& values, const Drawing& from, const Slice& some) {
  // A drawing of its own, which no write to `values` can change: its seed is mixed once.
  const Drawing numbers = from;
  std::int64_t at = some.first;
  for (float& value : values) {
    if (at >= numbers.drawn) return;
    value = to_float(round_to<T>(numbers.at(at)));
    at += some.step;
  }
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

std::vector<float> values_of(const DrawnTensor& tensor) {
  return values_of(tensor, {.count = tensor.count});
}

std::vector<float> values_of(const DrawnTensor& tensor, const Slice& some) {
  std::vector<float> values(as_index(some.count), std::numeric_limits<float>::quiet_NaN());
  if (some.count == 0) return values;
  const std::int64_t last = some.first + (some.count - 1) * some.step;
  CAPO_ASSERT(some.first >= 0 && last < tensor.count, "a slice lies within its tensor");
  const auto fill_as = tensor.type == DataType::Bf16   ? fill<Bf16>
                       : tensor.type == DataType::Fp16 ? fill<Fp16>
                                                       : fill<float>;
  fill_as(values, tensor.numbers, some);
  return values;
}

std::vector<std::byte> to_stored(std::span<const float> values, DataType type) {
  if (type == DataType::Bf16) return stored_as<Bf16>(values);
  return type == DataType::Fp16 ? stored_as<Fp16>(values) : stored_as<float>(values);
}

std::vector<float> from_stored(std::span<const std::byte> bytes, DataType type) {
  if (type == DataType::Bf16) return read_as<Bf16>(bytes);
  return type == DataType::Fp16 ? read_as<Fp16>(bytes) : read_as<float>(bytes);
}

}  // namespace capo::run
