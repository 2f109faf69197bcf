// Soundness and executability, by writing down where each chunk's entries stand and comparing.
//
// This reader keeps no state: it collects all positions first, and every rule is then one
// comparison of two of them. The k-th entry of a kind of a chunk is microbatch k.
//
// Tested by tests/testing/oracle/oracle_test.cpp.

#include "testing/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace capo::oracle {
namespace {

/// The positions in the order of one chunk's entries, by kind.
struct Chunk {
  std::vector<std::size_t> forwards;
  std::vector<std::size_t> dgrads;
  std::vector<std::size_t> wgrads;
};

bool is_whole(double value) {
  return std::floor(value) == value;
}

/// Forward 1, 2, ...; dgrad -1, -2, ...; wgrad -1.5, -2.5, ...
bool is_entry(Number c) {
  if (!std::isfinite(c.value)) return false;
  if (is_whole(c.value)) return !c.floating && c.value != 0;
  return c.value <= -1.5 && is_whole(2 * c.value);
}

/// The chunk id, from 1, of an entry that is_entry().
double chunk_id(Number c) {
  return is_whole(c.value) ? std::fabs(c.value) : -std::ceil(c.value);
}

/// Chunks 1..N at indices 0..N-1, or nothing where an entry is not one, or a chunk has none.
std::optional<std::vector<Chunk>> chunks_of(const std::vector<Number>& order,
                                            const std::optional<std::vector<bool>>& need_wgrad,
                                            const Layers& layers) {
  double largest = 0;
  for (const Number c : order) {
    if (!is_entry(c)) return std::nullopt;
    largest = std::max(largest, chunk_id(c));
  }
  if (need_wgrad) largest = std::max(largest, static_cast<double>(need_wgrad->size()));
  if (layers.form == Layers::List) {
    largest = std::max(largest, static_cast<double>(layers.values.size()));
    if (static_cast<double>(layers.values.size()) < largest) return std::nullopt;
  }
  // More chunks than entries: some chunk has none (and the id may be too large for a table).
  if (largest > static_cast<double>(order.size())) return std::nullopt;

  std::vector<Chunk> chunks(static_cast<std::size_t>(largest));
  for (std::size_t i = 0; i < order.size(); ++i) {
    Chunk& chunk = chunks[static_cast<std::size_t>(chunk_id(order[i])) - 1];
    if (order[i].value > 0) {
      chunk.forwards.push_back(i);
    } else if (is_whole(order[i].value)) {
      chunk.dgrads.push_back(i);
    } else {
      chunk.wgrads.push_back(i);
    }
  }
  return chunks;
}

/// Microbatch by microbatch, the first comes before the second. Both have the same length.
bool each_before(const std::vector<std::size_t>& first, const std::vector<std::size_t>& second) {
  for (std::size_t k = 0; k < first.size(); ++k) {
    if (first[k] > second[k]) return false;
  }
  return true;
}

}  // namespace

bool sound(const std::vector<Number>& order, const std::optional<std::vector<bool>>& need_wgrad,
           const Layers& layers) {
  const auto chunks = chunks_of(order, need_wgrad, layers);
  if (!chunks || chunks->empty()) return false;

  const std::size_t microbatches = chunks->front().forwards.size();
  if (microbatches == 0) return false;
  for (std::size_t c = 0; c < chunks->size(); ++c) {
    const Chunk& chunk = (*chunks)[c];
    const bool declared = need_wgrad && c < need_wgrad->size();
    const bool delays = declared ? (*need_wgrad)[c] : !chunk.wgrads.empty();
    if (chunk.forwards.size() != microbatches) return false;
    if (chunk.dgrads.size() != microbatches) return false;
    if (chunk.wgrads.size() != (delays ? microbatches : 0)) return false;
    if (!each_before(chunk.forwards, chunk.dgrads)) return false;
    if (delays && !each_before(chunk.dgrads, chunk.wgrads)) return false;
  }
  return true;
}

bool executable(const std::vector<Number>& order,
                const std::optional<std::vector<bool>>& need_wgrad, const Layers& layers) {
  if (!sound(order, need_wgrad, layers)) return false;
  const auto chunks = chunks_of(order, need_wgrad, layers);
  for (std::size_t c = 0; c + 1 < chunks->size(); ++c) {
    const Chunk& here = (*chunks)[c];
    const Chunk& next = (*chunks)[c + 1];
    if (!each_before(here.forwards, next.forwards)) return false;
    if (!each_before(next.dgrads, here.dgrads)) return false;
  }
  return true;
}

}  // namespace capo::oracle
