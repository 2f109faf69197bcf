#include "core/plan/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo {

namespace {

// Blocks by the moments in which they end, those of one moment by their numbers.
std::vector<std::uint32_t> by_end(const std::vector<Block>& blocks) {
  std::uint32_t last = 0;
  for (const Block& block : blocks) last = std::max(last, block.end);
  std::vector<std::uint32_t> next(std::size_t{last} + 2);  // where the next block of a moment goes
  for (const Block& block : blocks) ++next[block.end + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> order(blocks.size());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) order[next[blocks[i].end]++] = i;
  return order;
}

Layout as_time_goes_on(const std::vector<Block>& blocks) {
  Layout layout{.offsets = std::vector<std::int64_t>(blocks.size())};
  Arena arena;
  const std::vector<std::uint32_t> ending = by_end(blocks);
  std::size_t over = 0;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    for (; blocks[ending[over]].end <= blocks[i].begin; ++over) {
      arena.give_back(layout.offsets[ending[over]], blocks[ending[over]].bytes);
    }
    layout.offsets[i] = arena.take(blocks[i].bytes);
  }
  layout.total = arena.top();
  return layout;
}

// Time is cut into stretches, and a block that has its offset is listed in every stretch it
// touches.
class Stretches {
 public:
  // A stretch is as long as a block lives on average, so that most are in two of them.
  explicit Stretches(const std::vector<Block>& blocks) : blocks_(blocks) {
    std::uint32_t last = 0;
    std::uint64_t lives = 0;
    for (const Block& block : blocks) {
      last = std::max(last, block.end);
      lives += block.end - block.begin;
    }
    width_ = static_cast<std::uint32_t>(lives / std::max<std::size_t>(blocks.size(), 1)) + 1;
    stretches_.resize(last / width_ + 1);
  }

  void add(std::uint32_t block) {
    for (std::uint32_t at = first(block); at <= final(block); ++at) {
      stretches_[at].push_back(block);
    }
  }
  // Calls visit for blocks that are alive together with this one, for some of them more than once.
  template <typename Visit>
  void for_each_beside(std::uint32_t block, Visit visit) const {
    const Block& of = blocks_[block];
    for (std::uint32_t at = first(block); at <= final(block); ++at) {
      for (const std::uint32_t other : stretches_[at]) {
        if (blocks_[other].begin < of.end && of.begin < blocks_[other].end) visit(other);
      }
    }
  }

 private:
  [[nodiscard]] std::uint32_t first(std::uint32_t block) const {
    return blocks_[block].begin / width_;
  }
  [[nodiscard]] std::uint32_t final(std::uint32_t block) const {
    return std::max(blocks_[block].end - 1, blocks_[block].begin) / width_;
  }

  const std::vector<Block>& blocks_;
  std::uint32_t width_ = 1;
  std::vector<std::vector<std::uint32_t>> stretches_;
};

Layout large_ones_first(const std::vector<Block>& blocks) {
  Layout layout{.offsets = std::vector<std::int64_t>(blocks.size())};
  std::vector<std::uint32_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return blocks[a].bytes > blocks[b].bytes;
  });
  Stretches placed(blocks);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // from, to
  for (const std::uint32_t block : order) {
    taken.clear();
    placed.for_each_beside(block, [&](std::uint32_t other) {
      const std::int64_t from = layout.offsets[other];
      taken.emplace_back(from, from + blocks[other].bytes);
    });
    std::sort(taken.begin(), taken.end());
    std::int64_t lowest = 0;
    for (const auto& [from, to] : taken) {
      if (lowest + blocks[block].bytes <= from) break;
      lowest = std::max(lowest, to);
    }
    layout.offsets[block] = lowest;
    layout.total = std::max(layout.total, lowest + blocks[block].bytes);
    placed.add(block);
  }
  return layout;
}

}  // namespace

Layout lay_out(const std::vector<Block>& blocks, std::int64_t least) {
  Layout layout = as_time_goes_on(blocks);
  if (layout.total <= least || blocks.size() > kMostSorted) return layout;
  Layout sorted = large_ones_first(blocks);
  return sorted.total < layout.total ? sorted : layout;
}

}  // namespace capo
