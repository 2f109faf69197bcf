#include "core/frameworks/te/predict.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace capo::te {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The chunk (from 0) whose count the entry changes, or kNone: an entry such as -1.25 changes none.
std::size_t counted_chunk(const TeEntry& entry, std::size_t chunks) {
  if (!(entry.value <= -1)) return kNone;
  const double up = std::ceil(entry.value);
  const bool counted = up == entry.value || up - entry.value == 0.5;
  if (!counted || -up > static_cast<double>(chunks)) return kNone;
  return static_cast<std::size_t>(-up) - 1;
}

bool is_weight(const TeEntry& entry) {
  return std::ceil(entry.value) != entry.value;
}

// WeightCheck is TE's check that a chunk's backwards get their weight gradients (graph.py:769), in
// linear time.
//
// TE: from a backward on that is not yet cleared, scan the whole order to the right; count further
// backwards of the chunk (this one included) and its weight gradients; where the counts meet, clear
// all backwards counted; if they never meet, raise. Every scan walks entries of one chunk only, and
// the next scan begins behind the last one's end, so walking each chunk's own entries once gives
// the same answers. The check compares counts and never which backward a weight gradient belongs
// to.
class WeightCheck {
 public:
  /// The order outlives the check.
  WeightCheck(const std::vector<TeEntry>& order, std::int64_t chunks);

  /// Whether the check passes for the backward of chunk c (from 0) at position i. Positions of one
  /// chunk are asked in ascending order.
  [[nodiscard]] bool passes(std::size_t i, std::size_t c);

 private:
  struct Chunk {
    std::size_t next = 0;           // into positions_: the first entry not before the last question
    std::size_t end = 0;            // into positions_: behind the chunk's last entry
    std::size_t cleared_until = 0;  // backwards before this position are cleared
  };

  const std::vector<TeEntry>& order_;
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> positions_;  // backwards and weight gradients, chunk by chunk
};

WeightCheck::WeightCheck(const std::vector<TeEntry>& order, std::int64_t chunks)
    : order_(order), chunks_(as_index(std::max<std::int64_t>(chunks, 0))) {
  for (const TeEntry& entry : order_) {
    if (const std::size_t c = counted_chunk(entry, chunks_.size()); c != kNone) ++chunks_[c].end;
  }
  std::size_t total = 0;
  for (Chunk& chunk : chunks_) {
    chunk.next = total;
    total += chunk.end;
    chunk.end = chunk.next;  // grows back while the positions are filled in
  }
  positions_.resize(total);
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    const std::size_t c = counted_chunk(order_[i], chunks_.size());
    if (c != kNone) positions_[chunks_[c].end++] = i;
  }
}

bool WeightCheck::passes(std::size_t i, std::size_t c) {
  Chunk& chunk = chunks_[c];
  if (i < chunk.cleared_until) return true;
  while (chunk.next < chunk.end && positions_[chunk.next] < i) ++chunk.next;
  std::int64_t open = 0;
  for (std::size_t at = chunk.next; at < chunk.end; ++at) {
    open += is_weight(order_[positions_[at]]) ? -1 : 1;
    if (open != 0) continue;
    chunk.cleared_until = positions_[at] + 1;
    return true;
  }
  return false;
}

// This is Python's // on integers.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

constexpr std::int32_t kNoChunk = -1;

class Simulation {
 public:
  Simulation(const TeList& order, const Layers& layers, const std::vector<bool>& need_wgrad,
             const Options& options)
      : order_(order.entries), layers_(layers), need_wgrad_(need_wgrad), options_(options) {}

  std::optional<Prediction> run() {
    if (parse() && dimensions()) {
      if (too_large_) return std::nullopt;
      (!options_.reuse || reuse()) && list() && warm_up() && capture();
    }
    return std::move(prediction_);
  }

 private:
  bool raise(Kind kind, Step step, std::optional<std::size_t> entry, std::string reason) {
    prediction_ = {.kind = kind, .step = step, .entry = entry, .reason = std::move(reason)};
    return false;
  }

  static bool fractional(const TeEntry& entry) { return std::ceil(entry.value) != entry.value; }

  // Splits off the fractional entries and finds the number of chunks.

  bool parse() {
    bool any = false;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const TeEntry& entry = order_[i];
      if (std::isnan(entry.value)) {
        return raise(Kind::PyValueError, Step::Parse, i, "ceil() of NaN");
      }
      if (std::isinf(entry.value)) {
        return raise(Kind::PyOverflowError, Step::Parse, i, "ceil() of an infinite number");
      }
      if (fractional(entry)) {
        delay_ = true;
        continue;
      }
      ++whole_entries_;
      // max() keeps the first of equal elements, and thereby its type.
      if (!any || entry.value > largest_.value) largest_ = entry;
      any = true;
    }
    if (!any) return raise(Kind::PyValueError, Step::Parse, {}, "max() of no whole-numbered entry");
    return true;
  }

  // Works out chunks, microbatches and layers, as TE does before it looks at the order.

  bool dimensions() {
    const auto length = static_cast<std::int64_t>(whole_entries_);
    // A number of chunks beyond the list makes zero microbatches, however large it is.
    const double limit = static_cast<double>(length) + 1;
    chunks_ = static_cast<std::int64_t>(std::clamp(largest_.value, -limit, limit));
    if (chunks_ == 0) {
      return raise(Kind::PyZeroDivisionError, Step::Dimensions, {},
                   "the largest entry is 0, and TE divides by it");
    }
    microbatches_ = floor_div(floor_div(length, chunks_), 2);
    if (chunks_ * microbatches_ * 2 != length) {
      return raise(
          Kind::ValueError, Step::Dimensions, {},
          fmt::format("{:.0f} chunks times {} microbatches times 2 is not the {} entries without "
                      "weight gradients",
                      largest_.value, microbatches_, length));
    }
    return delayed_layers() && layers_per_chunk() && sizes();
  }

  bool delayed_layers() {
    if (!delay_) return true;
    switch (layers_.form) {
      case Layers::Form::Unstated:
        return true;
      case Layers::Form::Null:
        return raise(Kind::ValueError, Step::Dimensions, {},
                     "_num_layers_per_chunk must be given where an entry is a weight gradient");
      case Layers::Form::Count:
        return raise(
            Kind::PyTypeError, Step::Dimensions, {},
            "_num_layers_per_chunk is an int, and TE iterates over it where an entry is a weight "
            "gradient");
      case Layers::Form::List:
        break;
    }
    if (std::all_of(layers_.values.begin(), layers_.values.end(), [](auto n) { return n == 1; }))
      return true;
    return raise(Kind::ValueError, Step::Dimensions, {},
                 "every chunk must have one layer where an entry is a weight gradient");
  }

  bool layers_per_chunk() {
    const bool float_count = largest_.type != NumberType::Integer;
    if (layers_.form == Layers::Form::List) {
      if (static_cast<std::int64_t>(layers_.values.size()) != chunks_) {
        return raise(Kind::ValueError, Step::Dimensions, {},
                     fmt::format("_num_layers_per_chunk lists {} chunks, the largest entry says {}",
                                 layers_.values.size(), chunks_));
      }
      layer_counts_ = layers_.values;
    } else if (chunks_ < 0) {
      // `[n] * -1` is an empty list: no layers, and no callables to go with a stated count.
      if (layers_.form != Layers::Form::Count) {
        return raise(Kind::ValueError, Step::Dimensions, {}, "the order has no forward");
      }
    } else if (float_count) {
      return raise(Kind::PyTypeError, Step::Dimensions, {},
                   "the largest entry is a float, and TE multiplies a list by it");
    } else {
      const std::int64_t each = layers_.form == Layers::Form::Count ? layers_.values.front() : 1;
      layer_counts_.assign(as_index(chunks_), each);
    }
    if (float_count) {
      return raise(Kind::PyTypeError, Step::Dimensions, {},
                   "the largest entry is a float, and TE makes a range() of it");
    }
    return true;
  }

  bool sizes() {
    prefix_.assign(1, 0);
    unsigned __int128 total = 0;
    for (std::int64_t& count : layer_counts_) {
      // range() of a negative count is empty, but a sum of counts is not; no caller has such
      // modules.
      count = std::max<std::int64_t>(count, 0);
      total += static_cast<unsigned __int128>(count);
      const auto limited = std::min<unsigned __int128>(total, options_.max_graphs + 1);
      prefix_.push_back(static_cast<std::int64_t>(limited));
    }
    const auto graphs =
        total * static_cast<unsigned __int128>(std::max<std::int64_t>(microbatches_, 0));
    too_large_ = graphs > options_.max_graphs;
    graphs_ = too_large_ ? 0 : static_cast<std::int64_t>(graphs);
    return true;
  }

  // The walks below share these.

  [[nodiscard]] std::int64_t layers_of(std::int64_t chunk) const {
    return layer_counts_[as_index(chunk)];
  }
  [[nodiscard]] std::int64_t first_graph(std::int64_t chunk, std::int64_t microbatch) const {
    return prefix_[static_cast<std::size_t>(chunk)] * microbatches_ + microbatch * layers_of(chunk);
  }
  // Whether a list with one element per chunk has this one; -1 is Python's last.
  [[nodiscard]] bool has_chunk(double chunk) const {
    return chunk < static_cast<double>(chunks_) && (chunk >= 0 || (chunk == -1 && chunks_ > 0));
  }
  [[nodiscard]] std::size_t position_of(double chunk) const {
    return static_cast<std::size_t>(chunk < 0 ? static_cast<double>(chunks_) + chunk : chunk);
  }

  // Hands static inputs from finished backwards to later forwards.

  bool reuse() {
    std::vector<std::int64_t> forwards(as_index(std::max<std::int64_t>(chunks_, 0)));
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const double value = order_[i].value;
      const double chunk = std::abs(std::ceil(value)) - 1;
      if (value > 0) {
        // Only a fractional entry can be beyond the largest whole one.
        if (!has_chunk(chunk)) {
          return raise(Kind::PyIndexError, Step::Reuse, i,
                       "a forward of a chunk beyond the largest whole entry");
        }
        const std::int64_t c = static_cast<std::int64_t>(chunk);
        const std::int64_t begin = first_graph(c, forwards[as_index(c)]++);
        if (layers_of(c) > 0 && begin + layers_of(c) > graphs_) {
          return raise(Kind::PyIndexError, Step::Reuse, i,
                       "a forward beyond the last sample argument");
        }
      } else if (!fractional(order_[i])) {
        const bool before = chunk >= 0 && has_chunk(chunk) && forwards[position_of(chunk)] > 0;
        if (!before) {
          return raise(Kind::PyKeyError, Step::Reuse, i,
                       "a backward of a chunk with no forward before it");
        }
      }
    }
    return true;
  }

  // Finds the graph that each forward belongs to.

  bool list() {
    std::vector<std::int64_t> forwards(as_index(std::max<std::int64_t>(chunks_, 0)));
    std::vector<bool> hit(as_index(graphs_));
    std::int64_t count = 0;
    bool twice = false;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const TeEntry& entry = order_[i];
      if (entry.value <= 0) continue;
      if (entry.type != NumberType::Integer) {
        return raise(Kind::PyTypeError, Step::List, i, "a forward that is a float indexes a list");
      }
      const auto c = static_cast<std::int64_t>(entry.value) - 1;
      const std::int64_t begin = first_graph(c, forwards[as_index(c)]++);
      for (std::int64_t g = begin; g < begin + layers_of(c); ++g) {
        ++count;
        if (g >= graphs_) continue;
        twice = twice || hit[as_index(g)];
        hit[as_index(g)] = true;
      }
    }
    if (count != graphs_) {
      return raise(Kind::ValueError, Step::List, {},
                   fmt::format("the forwards run {} layers, but there are {} sample arguments",
                               count, graphs_));
    }
    // Beyond the last graph each index is hit by one chunk only, the last one; no duplicate hides
    // there.
    if (twice) {
      return raise(
          Kind::RuntimeErrorTe, Step::List, {},
          "two forwards belong to the same graph: a chunk's surplus runs into the next chunk's");
    }
    return true;
  }

  // Runs every forward and backward once, eagerly.

  bool warm_up() {
    owner_.assign(as_index(graphs_), kNoChunk);
    backward_done_.assign(as_index(graphs_), false);
    std::vector<std::int64_t> forwards(as_index(std::max<std::int64_t>(chunks_, 0)));
    std::vector<std::int64_t> backwards(forwards.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const TeEntry& entry = order_[i];
      if (entry.value > 0) {
        const auto c = static_cast<std::int64_t>(entry.value) - 1;
        const std::int64_t begin = first_graph(c, forwards[as_index(c)]++);
        for (std::int64_t g = begin; g < begin + layers_of(c); ++g) {
          if (g >= graphs_) {
            return raise(Kind::PyIndexError, Step::WarmUp, i, "a forward beyond the last graph");
          }
          owner_[as_index(g)] = static_cast<std::int32_t>(c);
        }
      } else if (!fractional(entry)) {
        if (!warm_up_backward(i, backwards)) return false;
      }
    }
    return true;
  }

  bool warm_up_backward(std::size_t i, std::vector<std::int64_t>& backwards) {
    const TeEntry& entry = order_[i];
    const double chunk = -entry.value - 1;
    if (entry.type != NumberType::Integer) {
      return raise(Kind::PyTypeError, Step::WarmUp, i, "a backward that is a float indexes a list");
    }
    if (!has_chunk(chunk)) {
      return raise(Kind::PyIndexError, Step::WarmUp, i, "a backward of an unknown chunk");
    }
    const std::size_t c = position_of(chunk);
    const std::int64_t layers = layer_counts_[c];
    if (chunk < 0) {
      // Index -1 is the last chunk for its layers, and the total for the prefix: no callable is
      // there.
      if (layers > 0)
        return raise(Kind::PyIndexError, Step::WarmUp, i, "0 is read as a backward of index -1");
      ++backwards[c];
      return true;
    }
    const std::int64_t begin = first_graph(static_cast<std::int64_t>(c), backwards[c]++);
    for (std::int64_t g = begin + layers - 1; g >= begin; --g) {
      if (g >= graphs_ || owner_[as_index(g)] == kNoChunk) {
        return raise(Kind::PyKeyError, Step::WarmUp, i, "a backward whose forward has not run");
      }
      if (backward_done_[as_index(g)]) {
        return raise(options_.version->second_backward, Step::WarmUp, i,
                     std::string(options_.version->second_text));
      }
      backward_done_[as_index(g)] = true;
    }
    return true;
  }

  // Captures backwards and weight gradients in the order of the list.

  [[nodiscard]] bool delays(std::int64_t graph) const {
    const std::int32_t module = owner_[as_index(graph)];
    return as_index(module) < need_wgrad_.size() && need_wgrad_[as_index(module)];
  }

  bool capture() {
    WeightCheck weights(order_, chunks_);
    weight_captured_.assign(delay_ ? as_index(graphs_) : 0, false);
    const auto chunks = as_index(std::max<std::int64_t>(chunks_, 0));
    queued_.assign(chunks, 0);
    std::vector<std::int64_t> backwards(chunks);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const TeEntry& entry = order_[i];
      if (entry.value > 0) continue;
      const double chunk = -std::ceil(entry.value) - 1;
      if (!has_chunk(chunk)) {
        return raise(Kind::PyIndexError, Step::Capture, i, "a weight gradient of an unknown chunk");
      }
      const std::size_t c = position_of(chunk);
      if (fractional(entry)) {
        if (!capture_weight(i, chunk, backwards[c])) return false;
        continue;
      }
      if (chunk >= 0 && !capture_backward(i, c, backwards[c], weights)) return false;
      ++backwards[c];
    }
    return true;
  }

  bool capture_backward(std::size_t i, std::size_t c, std::int64_t backward, WeightCheck& weights) {
    const std::int64_t begin = first_graph(static_cast<std::int64_t>(c), backward);
    for (std::int64_t g = begin + layer_counts_[c] - 1; g >= begin; --g) {
      if (delays(g) && !weights.passes(i, c)) {
        return raise(
            Kind::RuntimeErrorTe, Step::Capture, i,
            fmt::format("from here on chunk {} has more backwards than weight gradients", c + 1));
      }
      ++queued_[as_index(owner_[as_index(g)])];
    }
    return true;
  }

  bool capture_weight(std::size_t i, double chunk, std::int64_t backwards) {
    // TE has no counter of weight gradients: it takes the newest backward of the chunk, or the
    // graph before the chunk's first.
    const std::int64_t base =
        chunk < 0 ? graphs_ : prefix_[static_cast<std::size_t>(chunk)] * microbatches_;
    const std::int64_t graph = base + backwards - 1;
    const double value = order_[i].value;
    if (std::ceil(value) - value != 0.5) {
      return raise(Kind::ValueError, Step::Capture, i, "a fraction other than one half");
    }
    if (graph < 0 || graph >= graphs_ || !backward_done_[as_index(graph)]) {
      return raise(
          Kind::PyKeyError, Step::Capture, i,
          fmt::format("the weight gradient is bound to graph {}, which has no backward", graph));
    }
    if (!delays(graph)) {
      return raise(Kind::RuntimeErrorTe, Step::Capture, i,
                   "a weight gradient where no module delays its own");
    }
    const auto at = as_index(graph);
    if (weight_captured_[at]) {
      return raise(
          Kind::TorchRuntimeError, Step::Capture, i,
          fmt::format("the weight gradient is bound to the newest backward of its chunk, graph {}, "
                      "whose weight gradient is captured already",
                      graph));
    }
    weight_captured_[at] = true;
    std::int64_t& queue = queued_[as_index(owner_[at])];
    if (queue > 0) {
      --queue;
    } else if (options_.empty_store == EmptyStore::Raises) {
      return raise(Kind::StoreRuntimeError, Step::Capture, i,
                   "nothing is queued for a weight gradient of this module");
    }
    return true;
  }

  const std::vector<TeEntry>& order_;
  const Layers& layers_;
  const std::vector<bool>& need_wgrad_;
  const Options& options_;
  Prediction prediction_;

  bool delay_ = false;
  std::size_t whole_entries_ = 0;
  TeEntry largest_;
  std::int64_t chunks_ = 0;        // num_model_chunks
  std::int64_t microbatches_ = 0;  // num_microbatches
  std::vector<std::int64_t> layer_counts_;
  std::vector<std::int64_t> prefix_;  // _prefix_num_layers: one more element than chunks
  std::int64_t graphs_ = 0;
  bool too_large_ = false;

  std::vector<std::int32_t> owner_;  // by graph, the chunk whose module ran forward there
  std::vector<bool> backward_done_;
  std::vector<bool> weight_captured_;
  std::vector<std::int64_t> queued_;  // by module, the entries in its WeightGradStore
};

}  // namespace

std::optional<Prediction> predict(const TeList& order, const Layers& layers,
                                  const std::vector<bool>& need_wgrad, const Options& options) {
  return Simulation(order, layers, need_wgrad, options).run();
}

}  // namespace capo::te
