#include "testing/oracle/memory.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace capo::oracle {
namespace {

using Graph = std::tuple<int, int, int>;  // chunk, layer, microbatch

/// Which microbatch each entry is: how many of its kind and chunk came before it.
std::vector<int> microbatches_of(const std::vector<Capture::Entry>& order) {
  std::vector<int> microbatches;
  for (std::size_t at = 0; at < order.size(); ++at) {
    microbatches.push_back(static_cast<int>(
        std::count_if(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(at),
                      [&](const Capture::Entry& entry) {
                        return entry.kind == order[at].kind && entry.chunk == order[at].chunk;
                      })));
  }
  return microbatches;
}

struct Cells {
  std::map<Graph, int> input_of;   ///< the cell of each graph's input
  std::map<int, int> gradient_of;  ///< the cell of each key's gradient
  int inputs = 0;
  std::map<Graph, int> output_of;  ///< in a chain, outputs and gradients handed back are the pool's
  std::map<Graph, int> handed_back_of;
};

/// Gives out the cell that came back last, or a new one if none is free.
class Pool {
 public:
  int take() {
    if (free_.empty()) return made_++;
    const int cell = free_.back();
    free_.pop_back();
    return cell;
  }
  void give_back(int cell) { free_.push_back(cell); }

 private:
  std::vector<int> free_;
  int made_ = 0;
};

void give_out_pool(const Capture& capture, const std::vector<int>& microbatches, Cells& cells) {
  Pool pool;
  int handed_back_before = -1;  // the newest backward's cell so far
  for (std::size_t at = 0; at < capture.order.size(); ++at) {
    const auto [kind, chunk] = capture.order[at];
    const Graph self{chunk, 0, microbatches[at]};
    if (kind == Capture::Forward) cells.output_of[self] = pool.take();
    if (kind != Capture::Backward) continue;
    cells.handed_back_of[self] = pool.take();
    pool.give_back(cells.output_of.at(self));
    if (handed_back_before >= 0) pool.give_back(handed_back_before);
    handed_back_before = cells.handed_back_of[self];
  }
}

Cells give_out(const Capture& capture, const std::vector<int>& microbatches) {
  Cells cells;
  std::map<int, std::deque<int>> given_back;  // cells of each key, the first one in front
  std::map<int, std::deque<std::pair<int, int>>> holding;  // key and cell of each chunk's inputs
  for (std::size_t at = 0; at < capture.order.size(); ++at) {
    const auto [kind, chunk] = capture.order[at];
    const auto& layers = capture.chunks[static_cast<std::size_t>(chunk)];
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const LayerKeys& keys = layers[layer];
      if (kind == Capture::Forward) {
        std::deque<int>& free = given_back[keys.input];
        int cell = cells.inputs;
        if (free.empty()) {
          ++cells.inputs;
        } else {
          cell = free.front();
          free.pop_front();
        }
        cells.input_of[{chunk, static_cast<int>(layer), microbatches[at]}] = cell;
        holding[chunk].emplace_back(keys.input, cell);
      } else if (kind == Capture::Backward) {
        const auto [key, cell] = holding[chunk].front();
        holding[chunk].pop_front();
        given_back[key].push_back(cell);
        const int next = static_cast<int>(cells.gradient_of.size());
        cells.gradient_of.emplace(keys.output, next);
      }
    }
  }
  if (capture.chain) give_out_pool(capture, microbatches, cells);
  return cells;
}

/// Whether a backward finds in the pool what the chunk behind it has handed back; the pool's cells
/// remember as the others do.
class PoolReplay {
 public:
  explicit PoolReplay(const Cells& cells) : cells_(cells) {}

  bool forward(const Graph& self) {
    holds_[cells_.output_of.at(self)] = {Capture::Forward, self};
    return true;
  }
  bool backward(const Graph& self) {
    const auto& [chunk, layer, microbatch] = self;
    const Graph behind{chunk + 1, layer, microbatch};
    const auto read = cells_.handed_back_of.find(behind);
    const bool right = read == cells_.handed_back_of.end() ||
                       holds_[read->second] == Content{Capture::Backward, behind};
    holds_[cells_.handed_back_of.at(self)] = {Capture::Backward, self};
    return right;
  }

 private:
  using Content = std::pair<Capture::Kind, Graph>;

  const Cells& cells_;
  std::map<int, Content> holds_;
};

}  // namespace

Replay replay(const Capture& capture) {
  const std::vector<int> microbatches = microbatches_of(capture.order);
  const Cells cells = give_out(capture, microbatches);
  Replay result{.misreads = {},
                .inputs = cells.inputs,
                .gradients = static_cast<int>(cells.gradient_of.size())};
  std::map<int, Graph> input_holds;  // the owner of each cell now
  std::map<int, Graph> gradient_holds;
  PoolReplay pool(cells);
  for (std::size_t at = 0; at < capture.order.size(); ++at) {
    const auto [kind, chunk] = capture.order[at];
    const auto& layers = capture.chunks[static_cast<std::size_t>(chunk)];
    const auto position = static_cast<int>(at);
    if (capture.chain && kind != Capture::Weight) {
      const Graph self{chunk, 0, microbatches[at]};
      const bool right = kind == Capture::Forward ? pool.forward(self) : pool.backward(self);
      if (!right) {
        result.misreads.push_back({chunk, 0, microbatches[at], Misread::HandedBack, position});
      }
    }
    for (int count = 0; count < static_cast<int>(layers.size()); ++count) {
      const bool upwards = kind == Capture::Forward;
      const int layer = upwards ? count : static_cast<int>(layers.size()) - 1 - count;
      const Graph self{chunk, layer, microbatches[at]};
      const int input = cells.input_of.at(self);
      const auto key = cells.gradient_of.find(layers[static_cast<std::size_t>(layer)].output);
      if (kind == Capture::Forward) input_holds[input] = self;
      if (kind == Capture::Backward) gradient_holds[key->second] = self;
      if (kind != Capture::Weight) continue;
      if (input_holds[input] != self) {
        result.misreads.push_back({chunk, layer, microbatches[at], Misread::Input, position});
      }
      if (gradient_holds[key->second] != self) {
        result.misreads.push_back({chunk, layer, microbatches[at], Misread::Gradient, position});
      }
    }
  }
  std::sort(result.misreads.begin(), result.misreads.end());
  return result;
}

}  // namespace capo::oracle
