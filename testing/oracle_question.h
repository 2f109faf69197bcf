// The product's values as the oracle takes them. The oracle includes nothing of the product, so
// that no mistake can hide in both; this is the one place where the two meet.
//
// Layers that are not stated are told to TE as a list of ones, for as many chunks as the largest
// entry says; an order without such chunks gets an empty list. Tested by oracle_question_test.cpp.

#pragma once

#include "core/order/layers.h"
#include "core/order/te_list.h"
#include "testing/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace capo::testing {

[[nodiscard]] inline std::vector<oracle::Number> oracle_order(const TeList& list) {
  std::vector<oracle::Number> order;
  for (const TeEntry& entry : list.entries) {
    order.push_back({.value = entry.value, .floating = entry.type == NumberType::Float});
  }
  return order;
}

[[nodiscard]] inline oracle::Layers oracle_layers(const Layers& layers, const TeList& list) {
  switch (layers.form) {
    case Layers::Form::Null:
      return {.form = oracle::Layers::None};
    case Layers::Form::Count:
      return {.form = oracle::Layers::Int, .values = {layers.values.front()}};
    case Layers::Form::List:
      return {.form = oracle::Layers::List, .values = {layers.values.begin(), layers.values.end()}};
    case Layers::Form::Unstated:
      break;
  }
  double largest = 0;
  for (const TeEntry& entry : list.entries) {
    if (std::floor(entry.value) == entry.value) largest = std::max(largest, entry.value);
  }
  // Beyond the length of the list it does not matter how many: TE's own dimensions fail first.
  const auto chunks =
      static_cast<std::size_t>(std::min(largest, static_cast<double>(list.entries.size()) + 1));
  return {.form = oracle::Layers::List, .values = std::vector<long long>(chunks, 1)};
}

}  // namespace capo::testing
