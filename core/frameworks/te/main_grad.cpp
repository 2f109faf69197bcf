#include "core/frameworks/te/main_grad.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace capo::gradients {

namespace {

using Sizes = std::span<const std::int64_t>;

std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// nullopt if the product does not fit; a zero anywhere is no element, however large the rest.
std::optional<std::int64_t> elements(Sizes shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::optional<std::int64_t> count = 1;
  for (const std::int64_t size : shape) {
    count = product(*count, size);
    if (!count) return std::nullopt;
  }
  return count;
}

// A run of dimensions, from the outermost to the innermost, that are one dimension: `size` elements
// at the distance `stride`.
struct Run {
  std::int64_t size;
  std::int64_t stride;
};

// Runs come innermost first; a dimension of one element belongs to any run.
std::vector<Run> runs_of(Sizes shape, Sizes strides) {
  std::vector<Run> runs;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    // The product of sizes fits, as that of all does; if the distance does not fit, no stride has
    // it.
    const auto goes_on =
        runs.empty() ? std::nullopt : product(runs.back().size, runs.back().stride);
    if (goes_on == strides[i]) {
      runs.back().size *= shape[i];
    } else {
      runs.push_back({shape[i], strides[i]});
    }
  }
  return runs;
}

std::vector<std::int64_t> contiguous(Sizes shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    // Without elements sizes may be anything, and strides mean nothing.
    strides[i - 1] = product(strides[i], std::max<std::int64_t>(shape[i], 1)).value_or(0);
  }
  return strides;
}

bool is_negative(std::int64_t value) {
  return value < 0;
}

bool is_contiguous(Sizes shape, Sizes strides) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// "(4, 64, 32)", "(8,)" as Python writes it.
std::string tuple(Sizes sizes) {
  return fmt::format("({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
}

std::array<std::int64_t, 3> shape_of(const GroupedWeight& weight) {
  return {weight.groups, weight.out, weight.in};
}

}  // namespace

std::optional<std::vector<std::int64_t>> view_strides(Sizes shape, Sizes strides, Sizes target) {
  if (shape.size() != strides.size()) return std::nullopt;
  for (const Sizes list : {shape, strides, target}) {
    if (std::any_of(list.begin(), list.end(), is_negative)) return std::nullopt;
  }
  const auto count = elements(shape);
  if (!count || count != elements(target)) return std::nullopt;
  if (*count == 0) {
    if (std::equal(shape.begin(), shape.end(), target.begin(), target.end())) {
      return std::vector<std::int64_t>(strides.begin(), strides.end());
    }
    return contiguous(target);
  }

  // Dimensions of the target are taken from the innermost run, until it is used up, then the next.
  const std::vector<Run> runs = runs_of(shape, strides);
  std::vector<std::int64_t> result(target.size(), 1);
  std::size_t run = 0;
  std::int64_t taken = 1;
  for (std::size_t i = target.size(); i-- > 0;) {
    if (target[i] == 1) {
      result[i] = i + 1 < target.size() ? result[i + 1] : 1;  // never used
      continue;
    }
    if (taken == runs[run].size) {  // there is another, since there are as many elements
      ++run;
      taken = 1;
    }
    if (runs[run].size % (taken * target[i]) != 0) return std::nullopt;
    const auto stride = product(taken, runs[run].stride);
    if (!stride) return std::nullopt;
    result[i] = *stride;
    taken *= target[i];
  }
  return result;
}

std::optional<std::string> main_grad_refusal(const MainGrad& main_grad,
                                             const GroupedWeight& weight) {
  const auto refuse = [&](std::string_view reason) {
    return fmt::format(
        "main_grad of shape {} with strides {} cannot be viewed as (groups {}, out {}, in {}): {}",
        tuple(main_grad.shape), tuple(main_grad.strides), weight.groups, weight.out, weight.in,
        reason);
  };
  const Sizes shape = main_grad.shape;
  const Sizes strides = main_grad.strides;
  if (shape.size() != strides.size()) return refuse("every dimension has one stride");
  if (std::any_of(shape.begin(), shape.end(), is_negative)) return refuse("a size is negative");
  if (std::any_of(strides.begin(), strides.end(), is_negative))
    return refuse("a stride is negative");

  const std::array<std::int64_t, 3> target = shape_of(weight);
  const auto has = elements(shape);
  const auto wants = elements(target);
  if (!has || !wants) return refuse("its elements are too many to count");
  if (has != wants) return refuse(fmt::format("it has {} elements and not {}", *has, *wants));

  const auto viewed = view_strides(shape, strides, target);
  if (!viewed) return refuse("its strides allow that only as a copy, which main_grad never sees");
  if (*has != 0 && !is_contiguous(target, *viewed)) {
    return refuse(
        fmt::format("as that it has strides {} and not {}, so its elements do not lie one "
                    "behind another",
                    tuple(*viewed), tuple(contiguous(target))));
  }
  return std::nullopt;
}

TeMainGrad te_with_main_grad(ModuleKind kind, const MainGrad& main_grad,
                             const GroupedWeight& weight) {
  if (!is_grouped(kind) || !main_grad_refusal(main_grad, weight)) return TeMainGrad::Writes;

  // TE takes a right shape as it is; any other must be viewable.
  const std::array<std::int64_t, 3> target = shape_of(weight);
  const Sizes shape = main_grad.shape;
  auto viewed = view_strides(shape, main_grad.strides, target);
  if (!std::equal(shape.begin(), shape.end(), target.begin(), target.end()) && !viewed) {
    return TeMainGrad::RefusesNamingIt;
  }
  if (kind == ModuleKind::GroupedMlp) return TeMainGrad::WritesCopySilently;
  if (!viewed) return TeMainGrad::RefusesNamingIt;  // no tensor: more elements than there can be
  // A product may write equal distances other than 1; nobody has looked into that.
  const std::array<std::int64_t, 1> flat{elements(target).value_or(-1)};
  return view_strides(target, *viewed, flat) ? TeMainGrad::Writes : TeMainGrad::FailsInView;
}

}  // namespace capo::gradients
