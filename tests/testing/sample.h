// Values of a generator for tests that look at its claims: always the same ones.

#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <vector>

namespace capo::testing {

template <typename T>
std::vector<rc::Shrinkable<T>> sample_shrinkables(const rc::Gen<T>& gen, std::size_t count) {
  rc::Random random(2376);
  std::vector<rc::Shrinkable<T>> out;
  while (out.size() < count) out.push_back(gen(random.split()));
  return out;
}

template <typename T>
std::vector<T> sample(const rc::Gen<T>& gen, std::size_t count) {
  std::vector<T> out;
  for (const rc::Shrinkable<T>& shrinkable : sample_shrinkables(gen, count)) {
    out.push_back(shrinkable.value());
  }
  return out;
}

/// The values on the way to the smallest one if everything fails a property: each time the first
/// that is offered.
template <typename T>
std::vector<T> shrink_path(rc::Shrinkable<T> from) {
  std::vector<T> path{from.value()};
  for (auto next = from.shrinks().next(); next; next = from.shrinks().next()) {
    from = *next;
    path.push_back(from.value());
  }
  return path;
}

}  // namespace capo::testing
