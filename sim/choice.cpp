#include "sim/choice.h"

#include "core/base/index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace capo {

namespace {

double figure_of(const Choosable& order, SortBy by) {
  switch (by) {
    case SortBy::Span:
      return order.span;
    case SortBy::Bubble:
      return order.bubble;
    case SortBy::Peak:
      return order.peak;
    case SortBy::Given:
    case SortBy::Makespan:
      break;
  }
  return order.makespan;
}

}  // namespace

std::string_view name_of(SortBy by) {
  constexpr std::array<std::string_view, 5> kNames{"given", "makespan", "span", "bubble", "peak"};
  return kNames[as_index(by)];
}

std::vector<std::size_t> sorted(std::span<const Choosable> orders, SortBy by) {
  std::vector<std::size_t> places(orders.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (by == SortBy::Given) return places;
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    if (orders[a].fits != orders[b].fits) return orders[a].fits;
    return figure_of(orders[a], by) < figure_of(orders[b], by);
  });
  return places;
}

std::vector<bool> best(std::span<const Choosable> orders, SortBy by) {
  std::vector<bool> marked(orders.size(), false);
  if (orders.size() < 2) return marked;
  double least = std::numeric_limits<double>::infinity();
  for (const Choosable& order : orders) {
    if (order.fits) least = std::min(least, figure_of(order, by));
  }
  constexpr double kRounding = 1e-9;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    marked[i] = orders[i].fits && figure_of(orders[i], by) <= least + kRounding * least;
  }
  return marked;
}

}  // namespace capo
