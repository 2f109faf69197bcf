#include "run/reference/other_ways.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace capo::run::reference {

namespace {

using Values = std::vector<double>;

// Beyond these a result is not that of a few roundings, and looking at more would take long.
constexpr std::size_t kMostParts = 16;
constexpr std::size_t kMostEdges = 512;                        // of a part
constexpr std::size_t kMostTurns = 8;                          // of a part
constexpr std::int64_t kMostProducts = std::int64_t{1} << 30;  // of two numbers, a second or two

template <typename T>
std::vector<T> part(const std::vector<T>& of, std::int64_t at, std::int64_t parts) {
  const std::int64_t size = std::ssize(of) / parts;
  return {of.begin() + at * size, of.begin() + (at + 1) * size};
}

std::int64_t group_of(const LayerSide& side, std::int64_t row) {
  std::int64_t group = 0;
  for (std::int64_t end = 0; group < std::ssize(side.sizes); ++group) {
    end += side.sizes[group];
    if (row < end) return group;
  }
  return 0;
}

// The number of parts that do not depend on each other: rows, or sequences of an attention.
std::int64_t parts_of(const LayerForm& form) {
  return form.tokens / rows_of_one_result(form);
}

// One part as a layer of one group.
struct PartLayer {
  PartLayer(const LayerRun& run, std::int64_t at)
      : form(run.form), input(part(run.input, at, parts_of(run.form))) {
    const std::int64_t parts = parts_of(run.form);
    const std::int64_t groups = run.form.groups;
    const std::int64_t group = group_of(run.side, at);
    const LayerWeights& all = run.weights;
    form.tokens = rows_of_one_result(run.form);
    side.choices = part(run.side.choices, at, parts);
    if (run.grad_output != nullptr) grad_output = part(*run.grad_output, at, parts);
    if (!run.side.choices.empty()) {  // a token and all the groups that it may choose
      take(all);
      return;
    }
    form.groups = 1;
    take({.norm_weight = all.norm_weight,
          .norm_bias = all.norm_bias,
          .first = part(all.first, group, groups),
          .first_bias = part(all.first_bias, group, groups),
          .second = part(all.second, group, groups),
          .second_bias = part(all.second_bias, group, groups)});
    if (!run.side.sizes.empty()) side.sizes = {1};
    side.probabilities = part(run.side.probabilities, at, parts);
    side.scales = part(run.side.scales, at, parts);
  }

  // Weights are coded once, and not in each try.
  void take(LayerWeights of_groups) {
    if (!grad_output.empty() && form.coding != Coding::None) {
      for_gradient = coded_weights(form, of_groups, Direction::InputGradient);
    }
    weights = coded_weights(form, std::move(of_groups), Direction::Forward);
    form.weights_are_coded = true;
  }

  [[nodiscard]] Values made(Edges& edges) const {
    LayerForward saved = forward(form, weights, side, input, Rounding::AsStored, &edges);
    if (grad_output.empty()) return std::move(saved.output);
    return backward(form, for_gradient ? *for_gradient : weights, side, input, saved, grad_output,
                    Rounding::AsStored, &edges, Wanted::InputGradient)
        .grad_input;
  }

  // So many numbers are multiplied to make it once.
  [[nodiscard]] std::int64_t products() const {
    const std::int64_t once =
        form.tokens * ((std::ssize(weights.first) + std::ssize(weights.second)) / form.groups *
                           rows_of_token(form, Place::First) +
                       2 * form.tokens * form.heads * form.head_dim);
    return grad_output.empty() ? once : 2 * once;
  }

  LayerForm form;
  LayerWeights weights;
  std::optional<LayerWeights> for_gradient;  // where they are other numbers
  LayerSide side;
  Values input;
  Values grad_output;
};

double off_by(std::span<const double> should, std::span<const float> is) {
  double off = 0;
  for (std::size_t i = 0; i < should.size(); ++i) {
    if (!std::isfinite(should[i]) && !std::isfinite(is[i])) continue;
    const double by = static_cast<double>(is[i]) - should[i];
    off += by * by;
  }
  return off;
}

bool contains(const std::vector<Edge>& edges, const Edge& edge) {
  return std::find(edges.begin(), edges.end(), edge) != edges.end();
}

// The roundings of a part that bring it nearest to the engine's, and how far off it is then.
struct Settled {
  std::vector<Edge> other_way;
  double off = 0;
};

// The best of one turn: every edge near is tried the other way, behind those that are already.
// `left` is how many products may still be made.
Settled turned(const PartLayer& layer, std::span<const float> is, Settled best,
               std::int64_t& left) {
  left -= 2 * layer.products();
  Edges here{.other_way = best.other_way, .look = true};
  const Values now = layer.made(here);
  if (here.near.size() > kMostEdges) return best;
  const std::vector<Edge> before = best.other_way;
  for (const Edge& edge : here.near) {
    if (contains(before, edge)) continue;
    left -= layer.products();
    if (left < 0) return best;
    Edges tried{.other_way = before};
    tried.other_way.push_back(edge);
    const double off = off_by(layer.made(tried), is);
    if (off < best.off) best = {.other_way = tried.other_way, .off = off};
  }
  return best;
}

Settled settled(const PartLayer& layer, std::span<const float> is, Settled best,
                std::int64_t& left) {
  for (std::size_t turn = 0; turn < kMostTurns && best.off > 0 && left > 0; ++turn) {
    Settled next = turned(layer, is, best, left);
    if (!(next.off < best.off)) break;
    best = std::move(next);
  }
  return best;
}

struct PartError {
  std::int64_t part = 0;
  double off = 0;
};

// Parts by how far they are off, the worst first; nullopt if a value is finite on one side alone,
// since no rounding brings that within any bound.
std::optional<std::vector<PartError>> parts_off(const Made& made, std::int64_t parts) {
  const std::size_t size = made.is.size() / static_cast<std::size_t>(parts);
  std::vector<PartError> all;
  for (std::int64_t at = 0; at < parts; ++at) {
    const std::size_t from = static_cast<std::size_t>(at) * size;
    const double off = off_by(made.should.subspan(from, size), made.is.subspan(from, size));
    if (!std::isfinite(off)) return std::nullopt;
    if (off > 0) all.push_back({.part = at, .off = off});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const PartError& a, const PartError& b) { return a.off > b.off; });
  return all;
}

double sum_of_errors(std::span<const PartError> errors) {
  return std::accumulate(errors.begin(), errors.end(), 0.0,
                         [](double sum, const PartError& one) { return sum + one.off; });
}

double squares(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, double value) {
    return std::isfinite(value) ? sum + value * value : sum;
  });
}

}  // namespace

std::vector<Edge> other_ways(const LayerRun& run, const std::vector<Edge>& known,
                             const Made& made) {
  const double allowed = made.bound * made.bound * squares(made.sizes);
  const std::int64_t rows = rows_of_one_result(run.form);
  const std::int64_t parts = parts_of(run.form);
  const auto all = parts_off(made, parts);
  if (!all) return {};
  const std::span<const PartError> errors(*all);
  const std::size_t tried = std::min(errors.size(), kMostParts);
  double off = sum_of_errors(errors);
  double stays = sum_of_errors(errors.subspan(tried));  // whatever comes of those that are tried
  const std::size_t size = made.is.size() / static_cast<std::size_t>(parts);
  std::int64_t left = kMostProducts;
  std::vector<Edge> found;
  for (std::size_t i = 0; i < tried && off > allowed; ++i) {
    if (stays > allowed) return {};
    const auto [at, off_before] = errors[i];
    Settled start{.off = off_before};
    for (const Edge& edge : known) {
      const std::int64_t of_part = rows * rows_of_token(run.form, edge.place);
      if (edge.row / of_part == at)
        start.other_way.push_back({edge.place, edge.row % of_part, edge.column});
    }
    const std::size_t before = start.other_way.size();
    const Settled end =
        settled(PartLayer(run, at), made.is.subspan(static_cast<std::size_t>(at) * size, size),
                std::move(start), left);
    off -= off_before - end.off;
    stays += end.off;
    for (std::size_t e = before; e < end.other_way.size(); ++e) {
      const Edge& edge = end.other_way[e];
      const std::int64_t of_part = rows * rows_of_token(run.form, edge.place);
      found.push_back({edge.place, at * of_part + edge.row, edge.column});
    }
  }
  if (off > allowed) return {};
  return found;
}

}  // namespace capo::run::reference
