// Groups that rows choose: the choice, its sorting, the sum of what the groups made, and the
// gradient of the logits.
//
// A row's greatest logit is taken off before anything is exponentiated, so that no sum overflows.

#include "core/base/index.h"
#include "run/host/parts.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace capo::run::host {

namespace {

// The logits of a row as floats, and the softmax over them.
struct Shares {
  std::vector<float> logits;
  std::vector<float> of;

  template <typename T>
  void take(const T* row, std::int64_t groups) {
    logits.assign(as_index(groups), 0.0F);
    of.assign(as_index(groups), 0.0F);
    std::transform(row, row + groups, logits.begin(), [](T value) { return to_float(value); });
    float greatest = logits.front();
    for (const float logit : logits) greatest = std::max(greatest, logit);
    float sum = 0;
    for (std::size_t group = 0; group < of.size(); ++group) {
      of[group] = std::exp(logits[group] - greatest);
      sum += of[group];
    }
    for (float& share : of) share /= sum;
  }
};

// The first of the greatest logits among the groups that are left; the first group that is left
// where none compares.
std::size_t next_choice(const std::vector<float>& logits, const std::vector<bool>& taken) {
  std::size_t best = logits.size();
  for (std::size_t group = 0; group < logits.size(); ++group) {
    if (taken[group]) continue;
    if (best == logits.size() || logits[group] > logits[best]) best = group;
  }
  return best;
}

template <typename T>
void compute(const Route& call) {
  const auto& [rows, groups, top_k] = call.shape;
  Shares shares;
  std::vector<bool> taken;
  for (std::int64_t row = 0; row < rows; ++row) {
    shares.take(static_cast<const T*>(call.logits) + row * groups, groups);
    taken.assign(as_index(groups), false);
    for (std::int64_t choice = row * top_k; choice < (row + 1) * top_k; ++choice) {
      const std::size_t group = next_choice(shares.logits, taken);
      taken[group] = true;
      call.groups[choice] = static_cast<std::int64_t>(group);
      call.probabilities[choice] = shares.of[group];
    }
  }
}

template <typename T>
void compute(const Combine& call) {
  const std::int64_t top_k = call.shape.top_k;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    T* y = static_cast<T*>(call.y) + row * call.columns;
    for (std::int64_t i = 0; i < call.columns; ++i) {
      const float sum = sum_of(top_k, [&](std::int64_t k) {
        const std::int64_t place = call.places[row * top_k + k];
        return to_float(static_cast<const T*>(call.x)[place * call.columns + i]);
      });
      put(y[i], sum, call.write);
    }
  }
}

template <typename T>
void compute(const RouteGradient& call) {
  const auto& [rows, groups, top_k] = call.shape;
  Shares shares;
  std::vector<float> incoming;
  for (std::int64_t row = 0; row < rows; ++row) {
    shares.take(static_cast<const T*>(call.logits) + row * groups, groups);
    incoming.assign(as_index(groups), 0.0F);
    float inner = 0;
    for (std::int64_t choice = row * top_k; choice < (row + 1) * top_k; ++choice) {
      const std::size_t group = as_index(call.groups[choice]);
      incoming[group] = call.dprobabilities[call.places[choice]];
      inner += shares.of[group] * incoming[group];
    }
    T* dlogits = static_cast<T*>(call.dlogits) + row * groups;
    for (std::size_t group = 0; group < incoming.size(); ++group) {
      dlogits[group] = round_to<T>(shares.of[group] * (incoming[group] - inner));
    }
  }
}

}  // namespace

void compute(const Route& call) {
  CAPO_ASSERT(call.shape.top_k <= call.shape.groups, "a row chooses each group once at most");
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const SortRoutes& call) {
  const std::int64_t choices = call.shape.choices();
  std::fill_n(call.sizes, call.shape.groups, 0);
  for (std::int64_t choice = 0; choice < choices; ++choice) ++call.sizes[call.groups[choice]];
  std::vector<std::int64_t> next(as_index(call.shape.groups), 0);
  for (std::size_t group = 1; group < next.size(); ++group) {
    next[group] = next[group - 1] + call.sizes[group - 1];
  }
  for (std::int64_t choice = 0; choice < choices; ++choice) {
    const std::int64_t place = next[as_index(call.groups[choice])]++;
    call.places[choice] = place;
    call.sources[place] = choice / call.shape.top_k;
    call.sorted_probabilities[place] = call.probabilities[choice];
  }
}

void compute(const Combine& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

void compute(const RouteGradient& call) {
  with_element(call.type, [&](auto element) { compute<decltype(element)>(call); });
}

}  // namespace capo::run::host
