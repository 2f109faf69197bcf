#include "testing/oracle/first_fault.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

namespace capo::oracle {
namespace {

bool is_whole(double value) {
  return std::floor(value) == value;
}

/// The rule that a number breaks whatever stands around it; empty if it breaks none.
std::string_view fault_of_number(Number number) {
  const double value = number.value;
  if (!std::isfinite(value)) return "S01";
  if (value > -1 && value <= 0) return "S04";
  if (is_whole(value)) return number.floating ? "S03" : "";
  if (value > 0) return "S05";
  return is_whole(2 * value) ? "" : "S02";
}

/// The positions of a chunk's entries, by kind.
struct Chunk {
  std::vector<int> forwards;
  std::vector<int> backwards;
  std::vector<int> weights;

  int first_of_all() const {
    return std::min({forwards.empty() ? kNever : forwards.front(),
                     backwards.empty() ? kNever : backwards.front(),
                     weights.empty() ? kNever : weights.front()});
  }
  bool empty() const { return first_of_all() == kNever; }

  static constexpr int kNever = 1 << 30;
};

int number_of(const std::vector<int>& positions) {
  return static_cast<int>(positions.size());
}

int at(const std::vector<int>& positions, int k) {
  return positions[static_cast<std::size_t>(k)];
}

double chunk_named(Number number) {
  return std::floor(std::fabs(number.value));
}

/// The findings about one list, of which the first is asked for.
class List {
 public:
  explicit List(const std::vector<Number>& order) : order_(order) {}

  std::optional<Fault> first() {
    look_at_numbers();
    if (faults_.empty()) {
      sort_by_chunk();
      count_microbatches();
      look_at_chunks();
    }
    if (faults_.empty()) return std::nullopt;
    return *std::min_element(faults_.begin(), faults_.end());
  }

 private:
  void found(std::string_view rule, int position) { faults_.push_back({position, rule}); }

  void look_at_numbers() {
    bool forward = false;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::string_view rule = fault_of_number(order_[i]);
      if (!rule.empty()) found(rule, static_cast<int>(i));
      forward = forward || (order_[i].value > 0 && rule.empty());
    }
    if (faults_.empty() && !forward) found("S06", order_.empty() ? Fault::kWholeList : 0);
  }

  /// A chunk whose number is larger than the list is long is unknown: its fellows cannot all occur.
  void sort_by_chunk() {
    const auto length = static_cast<double>(order_.size());
    double last = 0;
    for (const Number number : order_) {
      if (chunk_named(number) <= length) last = std::max(last, chunk_named(number));
    }
    chunks_.resize(static_cast<std::size_t>(last));
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto position = static_cast<int>(i);
      if (chunk_named(order_[i]) > length) {
        found("S12", position);
        continue;
      }
      Chunk& chunk = chunks_[static_cast<std::size_t>(chunk_named(order_[i])) - 1];
      if (order_[i].value > 0) {
        chunk.forwards.push_back(position);
      } else {
        (is_whole(order_[i].value) ? chunk.backwards : chunk.weights).push_back(position);
      }
    }
  }

  /// How many forwards most chunks have; of two numbers that equally many have, the one of which
  /// more chunks have backwards, then the one that the whole list would have on average, then the
  /// larger.
  void count_microbatches() {
    int entries = 0;
    for (const Chunk& chunk : chunks_)
      entries += number_of(chunk.forwards) + number_of(chunk.backwards);
    const int average = chunks_.empty() ? 0 : entries / number_of_chunks() / 2;
    std::tuple<int, int, bool> best{0, 0, false};
    for (int count = 1; count <= static_cast<int>(order_.size()); ++count) {
      int forwards = 0;
      int backwards = 0;
      for (const Chunk& chunk : chunks_) {
        forwards += number_of(chunk.forwards) == count ? 1 : 0;
        backwards += number_of(chunk.backwards) == count ? 1 : 0;
      }
      const std::tuple<int, int, bool> votes{forwards, backwards, count == average};
      if (forwards + backwards == 0 || votes < best) continue;
      best = votes;
      microbatches_ = count;
    }
  }

  void look_at_chunks() {
    const int exchanged = backward_under_another_number();
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const Chunk& chunk = chunks_[c];
      if (chunk.empty()) {
        found("S13", chunks_.back().first_of_all());
        continue;
      }
      look_at_forwards(chunk);
      if (exchanged == kNobody) look_at_backwards(chunk);
      if (exchanged == static_cast<int>(c)) found("S15", at(chunk.backwards, microbatches_));
      look_at_weights(chunk);
      look_at_turns(chunk.forwards, chunk.backwards, "S23");
      look_at_turns(chunk.backwards, chunk.weights, "S24");
    }
  }

  void look_at_forwards(const Chunk& chunk) {
    const int forwards = number_of(chunk.forwards);
    if (forwards == microbatches_) return;
    if (forwards > microbatches_) {
      found("S14", at(chunk.forwards, microbatches_));
    } else if (forwards > 0) {
      found("S14", chunk.forwards.back());
    } else {
      found("S14", chunk.backwards.empty() ? Fault::kWholeList : chunk.backwards.front());
    }
  }

  /// If the backwards are as many as the microbatches, the forwards are at fault and are reported.
  void look_at_backwards(const Chunk& chunk) {
    const int forwards = number_of(chunk.forwards);
    const int backwards = number_of(chunk.backwards);
    if (backwards == forwards || backwards == microbatches_) return;
    found("S15",
          backwards > forwards ? at(chunk.backwards, forwards) : at(chunk.forwards, backwards));
  }

  /// If the weight gradients are as many as the forwards, the backwards are at fault and are
  /// reported; a chunk without any computes them in its backwards.
  void look_at_weights(const Chunk& chunk) {
    const int backwards = number_of(chunk.backwards);
    const int weights = number_of(chunk.weights);
    if (weights == 0 || weights == backwards || weights == number_of(chunk.forwards)) return;
    found("S16", weights > backwards ? at(chunk.weights, backwards) : at(chunk.backwards, weights));
  }

  /// The k-th of the second comes after the k-th of the first, if there is one.
  void look_at_turns(const std::vector<int>& first, const std::vector<int>& second,
                     std::string_view rule) {
    for (int k = 0; k < number_of(second) && k < number_of(first); ++k) {
      if (at(second, k) < at(first, k)) found(rule, at(second, k));
    }
  }

  /// The chunk with one backward too many, if one other has one too few, all others are balanced
  /// and both have their forwards: then the two are one finding.
  int backward_under_another_number() const {
    int surplus = kNobody;
    int unbalanced = 0;
    int sum = 0;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const int forwards = number_of(chunks_[c].forwards);
      const int more = number_of(chunks_[c].backwards) - forwards;
      if (more == 0) continue;
      if (forwards != microbatches_ || std::abs(more) > 1) return kNobody;
      ++unbalanced;
      sum += more;
      if (more == 1) surplus = static_cast<int>(c);
    }
    return unbalanced == 2 && sum == 0 ? surplus : kNobody;
  }

  int number_of_chunks() const { return static_cast<int>(chunks_.size()); }

  static constexpr int kNobody = -1;

  const std::vector<Number>& order_;
  std::vector<Chunk> chunks_;
  int microbatches_ = 0;
  std::vector<Fault> faults_;
};

/// The buffers between chunks, by chunk and microbatch: whether each is filled.
class Handed {
 public:
  Handed(std::size_t chunks, std::size_t microbatches)
      : there_(chunks, std::vector<bool>(microbatches, false)), next_(chunks, 0) {}

  /// Which microbatch the chunk's next entry is.
  std::size_t next(std::size_t chunk) { return next_[chunk]++; }
  void put(std::size_t chunk, std::size_t microbatch) { there_[chunk][microbatch] = true; }
  bool there(std::size_t chunk, std::size_t microbatch) const { return there_[chunk][microbatch]; }

 private:
  std::vector<std::vector<bool>> there_;
  std::vector<std::size_t> next_;
};

}  // namespace

std::optional<Fault> first_fault(const std::vector<Number>& order) {
  return List(order).first();
}

std::optional<Fault> first_fault_of_chain(const std::vector<Number>& order) {
  if (auto fault = first_fault(order)) return fault;
  double last = 0;
  for (const Number number : order) last = std::max(last, chunk_named(number));
  const auto chunks = static_cast<std::size_t>(last);
  Handed outputs(chunks, order.size());
  Handed gradients(chunks, order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!is_whole(order[i].value)) continue;  // a weight gradient reads what its own chunk keeps
    const std::size_t chunk = static_cast<std::size_t>(chunk_named(order[i])) - 1;
    const bool forward = order[i].value > 0;
    Handed& handed = forward ? outputs : gradients;
    const std::size_t microbatch = handed.next(chunk);
    const bool reads = forward ? chunk > 0 : chunk + 1 < chunks;
    if (reads && !handed.there(forward ? chunk - 1 : chunk + 1, microbatch)) {
      return Fault{static_cast<int>(i), "D03"};
    }
    handed.put(chunk, microbatch);
  }
  return std::nullopt;
}

}  // namespace capo::oracle
