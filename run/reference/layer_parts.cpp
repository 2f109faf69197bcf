#include "run/reference/layer_parts.h"

#include <algorithm>
#include <cmath>

namespace capo::run::reference {

namespace {

struct Statistics {
  double mean = 0;
  double inverse_deviation = 0;  // 1 / sqrt(variance + epsilon)
};

Statistics statistics_of(const Values& x, std::int64_t row, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t c = 0; c < columns; ++c) sum += x[row * columns + c];
  const double mean = sum / static_cast<double>(columns);
  double squares = 0;
  for (std::int64_t c = 0; c < columns; ++c) {
    const double off = x[row * columns + c] - mean;
    squares += off * off;
  }
  const double variance = squares / static_cast<double>(columns);
  return {.mean = mean,
          .inverse_deviation = 1 / std::sqrt(variance + static_cast<double>(kEpsilon))};
}

double sigmoid(double value) {
  return 1 / (1 + std::exp(-value));
}

}  // namespace

Values with_bias(const Product& p, Values y, const Values& bias, const Values& scales) {
  for (std::int64_t row = 0; row < std::ssize(p.group); ++row) {
    for (std::int64_t o = 0; o < p.out; ++o) {
      y[row * p.out + o] += scales[row] * bias[p.group[row] * p.out + o];
    }
  }
  return y;
}

Values bias_gradient(const Product& p, const Values& dy, const Values& scales) {
  Values dbias(p.groups * p.out);
  for (std::int64_t row = 0; row < std::ssize(p.group); ++row) {
    for (std::int64_t o = 0; o < p.out; ++o) {
      dbias[p.group[row] * p.out + o] += scales[row] * dy[row * p.out + o];
    }
  }
  return dbias;
}

Values scale_gradient(const Product& p, const Values& dy, const Values& bias) {
  Values dscales(p.rows);
  for (std::int64_t row = 0; row < std::ssize(p.group); ++row) {
    for (std::int64_t o = 0; o < p.out; ++o) {
      dscales[row] += dy[row * p.out + o] * bias[p.group[row] * p.out + o];
    }
  }
  return dscales;
}

Values norm_of(const Values& x, const Values& weight, const Values& bias) {
  const std::int64_t columns = std::ssize(weight);
  Values y(x.size());
  for (std::int64_t row = 0; row * columns < std::ssize(x); ++row) {
    const Statistics of = statistics_of(x, row, columns);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double xhat = (x[row * columns + c] - of.mean) * of.inverse_deviation;
      y[row * columns + c] = xhat * weight[c] + bias[c];
    }
  }
  return y;
}

// Mean and variance depend on x too, hence what is taken off dxhat: its mean over the columns, and
// xhat times the mean of dxhat * xhat.
Values absolute(Values values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

NormGradients norm_gradients(const Values& x, const Values& weight, const Values& dy) {
  const std::int64_t columns = std::ssize(weight);
  NormGradients gradients{.input = Values(x.size()),
                          .weight = Values(columns),
                          .bias = Values(columns),
                          .magnitudes = Values(x.size()),
                          .weight_magnitudes = Values(columns),
                          .bias_magnitudes = Values(columns)};
  for (std::int64_t row = 0; row * columns < std::ssize(x); ++row) {
    const Statistics of = statistics_of(x, row, columns);
    Values xhat(columns);
    Values dxhat(columns);
    double mean_of_dxhat = 0;
    double mean_of_both = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double dy_here = dy[row * columns + c];
      xhat[c] = (x[row * columns + c] - of.mean) * of.inverse_deviation;
      dxhat[c] = dy_here * weight[c];
      mean_of_dxhat += dxhat[c] / static_cast<double>(columns);
      mean_of_both += dxhat[c] * xhat[c] / static_cast<double>(columns);
      gradients.weight[c] += dy_here * xhat[c];
      gradients.bias[c] += dy_here;
      gradients.weight_magnitudes[c] += std::abs(dy_here * xhat[c]);
      gradients.bias_magnitudes[c] += std::abs(dy_here);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      gradients.input[row * columns + c] =
          of.inverse_deviation * (dxhat[c] - mean_of_dxhat - xhat[c] * mean_of_both);
      gradients.magnitudes[row * columns + c] =
          of.inverse_deviation *
          (std::abs(dxhat[c]) + std::abs(mean_of_dxhat) + std::abs(xhat[c] * mean_of_both));
    }
  }
  return gradients;
}

Values swiglu_of(const Product& second, const Values& middle, const Values& probabilities) {
  const std::int64_t columns = second.in;
  Values y(second.rows * columns);
  for (std::int64_t row = 0; row < std::ssize(second.group); ++row) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double gate = middle[row * 2 * columns + c];
      const double linear = middle[row * 2 * columns + columns + c];
      y[row * columns + c] = gate * sigmoid(gate) * linear * probabilities[row];
    }
  }
  return y;
}

SwigluGradients swiglu_gradients(const Product& second, const Values& middle,
                                 const Values& probabilities, const Values& dy) {
  const std::int64_t columns = second.in;
  SwigluGradients gradients{.middle = Values(second.rows * 2 * columns),
                            .probabilities = Values(second.rows),
                            .magnitudes = Values(second.rows)};
  for (std::int64_t row = 0; row < std::ssize(second.group); ++row) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double gate = middle[row * 2 * columns + c];
      const double linear = middle[row * 2 * columns + columns + c];
      const double s = sigmoid(gate);
      const double dy_here = dy[row * columns + c];
      gradients.middle[row * 2 * columns + c] =
          dy_here * probabilities[row] * linear * s * (1 + gate * (1 - s));
      gradients.middle[row * 2 * columns + columns + c] = dy_here * probabilities[row] * gate * s;
      gradients.probabilities[row] += dy_here * gate * s * linear;
      gradients.magnitudes[row] += std::abs(dy_here * gate * s * linear);
    }
  }
  return gradients;
}

namespace {

// Places of a row and a head in tensors of attention.
class HeadPlaces {
 public:
  explicit HeadPlaces(const Heads& of) : of_(of) {}

  [[nodiscard]] std::int64_t query(std::int64_t row, std::int64_t head) const {
    return (row * (of_.heads + 2 * of_.kv_heads) + head) * of_.head_dim;
  }
  [[nodiscard]] std::int64_t key(std::int64_t row, std::int64_t head) const {
    return query(row, of_.heads + head * of_.kv_heads / of_.heads);
  }
  [[nodiscard]] std::int64_t value(std::int64_t row, std::int64_t head) const {
    return key(row, head) + of_.kv_heads * of_.head_dim;
  }
  [[nodiscard]] std::int64_t result(std::int64_t row, std::int64_t head) const {
    return (row * of_.heads + head) * of_.head_dim;
  }
  [[nodiscard]] std::int64_t first_read(std::int64_t row) const {
    return of_.sequence == 0 ? 0 : row - row % of_.sequence;
  }

 private:
  const Heads& of_;
};

double sum_of_products(const Values& a, std::int64_t at, const Values& b, std::int64_t other,
                       std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[at + i] * b[other + i];
  return sum;
}

// With which probabilities a row reads those of its sequence, from the first up to itself.
Values read_with(const Heads& of, const Values& qkv, std::int64_t row, std::int64_t head) {
  const HeadPlaces places(of);
  Values weights;
  for (std::int64_t other = places.first_read(row); other <= row; ++other) {
    weights.push_back(
        sum_of_products(qkv, places.query(row, head), qkv, places.key(other, head), of.head_dim) /
        std::sqrt(static_cast<double>(of.head_dim)));
  }
  const double greatest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) {
    weight = std::exp(weight - greatest);
    sum += weight;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

Values attention_of(const Heads& of, const Values& qkv) {
  const HeadPlaces places(of);
  Values y(of.rows * of.heads * of.head_dim);
  for (std::int64_t row = 0; row < of.rows; ++row) {
    for (std::int64_t head = 0; head < of.heads; ++head) {
      std::int64_t other = places.first_read(row);
      for (const double weight : read_with(of, qkv, row, head)) {
        for (std::int64_t i = 0; i < of.head_dim; ++i) {
          y[places.result(row, head) + i] += weight * qkv[places.value(other, head) + i];
        }
        ++other;
      }
    }
  }
  return y;
}

Values attention_magnitudes(const Heads& of, const Values& qkv) {
  const HeadPlaces places(of);
  const Values sizes = absolute(qkv);
  const double root = std::sqrt(static_cast<double>(of.head_dim));
  Values magnitudes(of.rows * of.heads * of.head_dim);
  for (std::int64_t row = 0; row < of.rows; ++row) {
    for (std::int64_t head = 0; head < of.heads; ++head) {
      std::int64_t other = places.first_read(row);
      for (const double weight : read_with(of, qkv, row, head)) {
        const double score = sum_of_products(sizes, places.query(row, head), sizes,
                                             places.key(other, head), of.head_dim);
        for (std::int64_t i = 0; i < of.head_dim; ++i) {
          magnitudes[places.result(row, head) + i] +=
              weight * (1 + score / root) * sizes[places.value(other, head) + i];
        }
        ++other;
      }
    }
  }
  return magnitudes;
}

AttentionGradients attention_gradients(const Heads& of, const Values& qkv, const Values& y,
                                       const Values& dy) {
  const HeadPlaces places(of);
  AttentionGradients gradients{.qkv = Values(qkv.size()), .magnitudes = Values(qkv.size())};
  const auto add = [&](std::int64_t to, double term, double magnitude) {
    gradients.qkv[to] += term;
    gradients.magnitudes[to] += std::abs(magnitude);
  };
  const double root = std::sqrt(static_cast<double>(of.head_dim));
  const Values sizes = absolute(qkv);
  const Values dy_sizes = absolute(dy);
  const Values y_sizes = absolute(y);
  for (std::int64_t row = 0; row < of.rows; ++row) {
    for (std::int64_t head = 0; head < of.heads; ++head) {
      const std::int64_t query = places.query(row, head);
      const std::int64_t result = places.result(row, head);
      const double inner = sum_of_products(dy, result, y, result, of.head_dim);
      const double inner_size = sum_of_products(dy_sizes, result, y_sizes, result, of.head_dim);
      std::int64_t other = places.first_read(row);
      for (const double weight : read_with(of, qkv, row, head)) {
        const std::int64_t key = places.key(other, head);
        const std::int64_t value = places.value(other, head);
        const double incoming = sum_of_products(dy, result, qkv, value, of.head_dim);
        const double slope = weight * (incoming - inner) / root;
        // A probability is off by as much of itself as its score is off.
        const double unsure =
            weight * (1 + sum_of_products(sizes, query, sizes, key, of.head_dim) / root);
        const double incoming_size = sum_of_products(dy_sizes, result, sizes, value, of.head_dim);
        const double size = unsure * (incoming_size + inner_size) / root;
        for (std::int64_t i = 0; i < of.head_dim; ++i) {
          add(query + i, slope * qkv[key + i], size * qkv[key + i]);
          add(key + i, slope * qkv[query + i], size * qkv[query + i]);
          add(value + i, weight * dy[result + i], unsure * dy[result + i]);
        }
        ++other;
      }
    }
  }
  return gradients;
}

namespace {

// The softmax over the logits of all groups of one row.
Values shares_of_row(const Router& of, const Values& logits, std::int64_t row) {
  const auto begin = logits.begin() + row * of.groups;
  const double greatest = *std::max_element(begin, begin + of.groups);
  Values shares(begin, begin + of.groups);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - greatest);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

std::vector<std::int64_t> greatest_of(const Router& of, const Values& logits) {
  std::vector<std::int64_t> choices;
  for (std::int64_t row = 0; row < std::ssize(logits) / of.groups; ++row) {
    std::vector<std::int64_t> order;
    for (std::int64_t group = 0; group < of.groups; ++group) order.push_back(group);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return logits[row * of.groups + a] > logits[row * of.groups + b];
    });
    choices.insert(choices.end(), order.begin(), order.begin() + of.top_k);
  }
  return choices;
}

std::int64_t refused_choices(const Router& of, const Values& least, const Values& most,
                             const std::vector<std::int64_t>& choices) {
  std::int64_t refused = 0;
  for (std::int64_t row = 0; row < std::ssize(least) / of.groups; ++row) {
    std::vector<bool> passed(of.groups, false);
    bool wrong = false;
    for (std::int64_t k = 0; k < of.top_k && !wrong; ++k) {
      const std::int64_t group = choices[row * of.top_k + k];
      wrong = group < 0 || group >= of.groups || passed[group];
      if (wrong) break;
      passed[group] = true;
      for (std::int64_t other = 0; other < of.groups; ++other) {
        const double at_least = least[row * of.groups + other];
        const double at_most = most[row * of.groups + group];
        const bool before = at_least > at_most || (at_least == at_most && other < group);
        wrong = wrong || (before && !passed[other]);
      }
    }
    if (wrong) ++refused;
  }
  return refused;
}

Values probabilities_of(const Router& of, const Values& logits,
                        const std::vector<std::int64_t>& choices) {
  Values probabilities;
  for (std::int64_t row = 0; row < std::ssize(logits) / of.groups; ++row) {
    const Values shares = shares_of_row(of, logits, row);
    for (std::int64_t k = 0; k < of.top_k; ++k) {
      probabilities.push_back(shares[choices[row * of.top_k + k]]);
    }
  }
  return probabilities;
}

// The derivative of share p by logit q is p * (1 - p) if they are of one group, else -p * q's
// share.
RouterGradients router_gradients(const Router& of, const Values& logits,
                                 const std::vector<std::int64_t>& choices, const Values& dy) {
  RouterGradients gradients{.logits = Values(logits.size()), .magnitudes = Values(logits.size())};
  for (std::int64_t row = 0; row < std::ssize(logits) / of.groups; ++row) {
    const Values shares = shares_of_row(of, logits, row);
    for (std::int64_t k = 0; k < of.top_k; ++k) {
      const std::int64_t choice = row * of.top_k + k;
      for (std::int64_t group = 0; group < of.groups; ++group) {
        const double same = choices[choice] == group ? 1 : 0;
        const double term = dy[choice] * shares[choices[choice]] * (same - shares[group]);
        gradients.logits[row * of.groups + group] += term;
        gradients.magnitudes[row * of.groups + group] +=
            std::abs(dy[choice] * shares[choices[choice]]) * (same + shares[group]);
      }
    }
  }
  return gradients;
}

Values repeated(const Values& rows, std::int64_t columns, std::int64_t times) {
  Values all;
  for (std::int64_t row = 0; row < std::ssize(rows) / columns; ++row) {
    for (std::int64_t i = 0; i < times; ++i) {
      all.insert(all.end(), rows.begin() + row * columns, rows.begin() + (row + 1) * columns);
    }
  }
  return all;
}

Values summed_up(const Values& rows, std::int64_t columns, std::int64_t times) {
  Values sums(rows.size() / times);
  for (std::int64_t at = 0; at < std::ssize(rows); ++at) {
    sums[at / columns / times * columns + at % columns] += rows[at];
  }
  return sums;
}

}  // namespace capo::run::reference
