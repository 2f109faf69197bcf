#include "testing/oracle/local_graphs.h"

#include <cstddef>
#include <optional>
#include <set>

namespace capo::oracle {
namespace {

long bytes_of(const LocalChunks& chunks, const LocalTensor& of) {
  const LocalLayer& layer =
      chunks[static_cast<std::size_t>(of.chunk)][static_cast<std::size_t>(of.layer)];
  switch (of.kind) {
    case LocalTensor::Input:
    case LocalTensor::GradInput:
      return layer.input;
    case LocalTensor::Kept:
      return layer.kept;
    default:
      return layer.output;
  }
}

// The graphs of one chunk and microbatch.
class Chunk {
 public:
  Chunk(const LocalChunks& chunks, const LocalWork& work)
      : chunks_(chunks),
        work_(work),
        layers(static_cast<int>(chunks[static_cast<std::size_t>(work.chunk)].size())) {}

  [[nodiscard]] LocalTensor named(int layer, LocalTensor::Kind kind) const {
    return {work_.chunk, layer, work_.microbatch, kind};
  }
  [[nodiscard]] long bytes(int layer, LocalTensor::Kind kind) const {
    return bytes_of(chunks_, named(layer, kind));
  }
  /// A forward and a backward read a neighbour's tensor if it is as large.
  [[nodiscard]] LocalTensor input(int layer) const {
    const bool shared =
        layer > 0 && bytes(layer, LocalTensor::Input) == bytes(layer - 1, LocalTensor::Output);
    return shared ? named(layer - 1, LocalTensor::Output) : named(layer, LocalTensor::Input);
  }
  [[nodiscard]] LocalTensor grad_output(int layer) const {
    const bool shared = layer + 1 < layers && bytes(layer, LocalTensor::GradOutput) ==
                                                  bytes(layer + 1, LocalTensor::GradInput);
    return shared ? named(layer + 1, LocalTensor::GradInput)
                  : named(layer, LocalTensor::GradOutput);
  }

 private:
  const LocalChunks& chunks_;
  LocalWork work_;

 public:
  int layers;
};

// One graph: what it makes, which of it is copied at once, and what it lets go of.
struct Graph {
  std::vector<LocalTensor> makes;
  std::optional<LocalTensor> copied;
  std::vector<LocalTensor> reads;
  std::vector<LocalTensor> lets_go;
};

Graph forward_of(const Chunk& chunk, int layer) {
  Graph graph;
  if (chunk.input(layer) == chunk.named(layer, LocalTensor::Input))
    graph.makes.push_back(chunk.input(layer));
  graph.makes.push_back(chunk.named(layer, LocalTensor::Kept));
  const LocalTensor output = chunk.named(layer, LocalTensor::Output);
  if (layer + 1 == chunk.layers) {
    graph.copied = output;
  } else {
    graph.makes.push_back(output);
  }
  return graph;
}

Graph backward_of(const Chunk& chunk, int layer) {
  Graph graph;
  if (chunk.grad_output(layer) == chunk.named(layer, LocalTensor::GradOutput))
    graph.makes.push_back(chunk.grad_output(layer));
  const LocalTensor grad_input = chunk.named(layer, LocalTensor::GradInput);
  if (layer == 0) {
    graph.copied = grad_input;
  } else {
    graph.makes.push_back(grad_input);
  }
  graph.lets_go = {chunk.input(layer), chunk.named(layer, LocalTensor::Kept),
                   chunk.grad_output(layer)};
  if (layer + 1 < chunk.layers) {
    graph.lets_go.push_back(chunk.named(layer, LocalTensor::Output));
    graph.lets_go.push_back(chunk.named(layer + 1, LocalTensor::GradInput));
  }
  graph.reads = graph.lets_go;
  return graph;
}

template <typename Visit>
void each_graph(const LocalChunks& chunks, const LocalWork& work, Visit visit) {
  const Chunk chunk(chunks, work);
  for (int k = 0; k < chunk.layers; ++k) {
    if (work.forward) {
      visit(forward_of(chunk, k));
    } else {
      visit(backward_of(chunk, chunk.layers - 1 - k));
    }
  }
}

// Memory byte by byte.
class Heap {
 public:
  long take(long bytes) {
    long best = -1;
    long best_size = 0;
    long free = 0;
    for (long at = 0; at <= size(); ++at) {
      if (at < size() && !used_[static_cast<std::size_t>(at)]) {
        ++free;
        continue;
      }
      if (free >= bytes && (best < 0 || free < best_size)) {
        best = at - free;
        best_size = free;
      }
      if (at < size()) free = 0;
    }
    if (best < 0) best = size() - free;  // `free` is what the end has
    if (best + bytes > size()) used_.resize(static_cast<std::size_t>(best + bytes));
    mark(best, bytes, true);
    return best;
  }
  void mark(long from, long bytes, bool used) {
    for (long at = from; at < from + bytes; ++at) used_[static_cast<std::size_t>(at)] = used;
  }
  [[nodiscard]] long size() const { return static_cast<long>(used_.size()); }

 private:
  std::vector<bool> used_;
};

}  // namespace

LocalMemory capture_locally(const LocalChunks& chunks, const std::vector<LocalWork>& order) {
  LocalMemory memory;
  Heap heap;
  std::map<LocalTensor, int> references;  // those of backwards to come
  for (const LocalWork& work : order) {
    if (!work.forward) continue;
    LocalWork back = work;
    back.forward = false;
    each_graph(chunks, back, [&](const Graph& graph) {
      for (const LocalTensor& tensor : graph.lets_go) ++references[tensor];
    });
  }
  for (const LocalWork& work : order) {
    each_graph(chunks, work, [&](const Graph& graph) {
      for (const LocalTensor& tensor : graph.makes) {
        const long bytes = bytes_of(chunks, tensor);
        if (bytes > 0) memory.offset[tensor] = heap.take(bytes);
      }
      if (graph.copied && bytes_of(chunks, *graph.copied) > 0) {
        const long bytes = bytes_of(chunks, *graph.copied);
        memory.offset[*graph.copied] = heap.take(bytes);
        heap.mark(memory.offset[*graph.copied], bytes, false);
      }
      for (const LocalTensor& tensor : graph.lets_go) {
        const long bytes = bytes_of(chunks, tensor);
        if (--references[tensor] == 0 && bytes > 0)
          heap.mark(memory.offset.at(tensor), bytes, false);
      }
    });
  }
  memory.bytes = heap.size();
  return memory;
}

std::vector<LocalMisread> replay_locally(const LocalChunks& chunks, const LocalMemory& memory,
                                         const std::vector<LocalWork>& order) {
  std::vector<std::optional<LocalTensor>> cells(static_cast<std::size_t>(memory.bytes));
  std::set<LocalMisread> misreads;
  const auto each_cell = [&](const LocalTensor& tensor, auto visit) {
    const long bytes = bytes_of(chunks, tensor);
    for (long k = 0; k < bytes; ++k)
      visit(cells[static_cast<std::size_t>(memory.offset.at(tensor) + k)]);
  };
  for (std::size_t at = 0; at < order.size(); ++at) {
    each_graph(chunks, order[at], [&](const Graph& graph) {
      for (const LocalTensor& tensor : graph.makes)
        each_cell(tensor, [&](auto& cell) { cell = tensor; });
      if (graph.copied) each_cell(*graph.copied, [](auto& cell) { cell.reset(); });
      for (const LocalTensor& tensor : graph.reads) {
        each_cell(tensor, [&](const auto& cell) {
          if (cell != tensor) misreads.insert({tensor, static_cast<int>(at)});
        });
      }
    });
  }
  return {misreads.begin(), misreads.end()};
}

}  // namespace capo::oracle
