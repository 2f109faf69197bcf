#include "core/frameworks/te/reuse.h"

#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace capo {

namespace {

// A queue of freed offsets; those that were taken stay until they are the larger half.
class Freed {
 public:
  [[nodiscard]] bool empty() const { return next_ == offsets_.size(); }
  void push(std::int64_t offset) { offsets_.push_back(offset); }
  std::int64_t take() {
    const std::int64_t offset = offsets_[next_++];
    if (next_ * 2 > offsets_.size()) {
      offsets_.erase(offsets_.begin(), offsets_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
    return offset;
  }

 private:
  std::vector<std::int64_t> offsets_;
  std::size_t next_ = 0;
};

// Which of the freed blocks of a size PyTorch's allocator takes, nobody can say from an order: it
// takes the lowest address, and that hangs on all that was allocated before. So the worst is
// assumed: a grad input that was let go while somebody might still read it is taken first, then the
// block freed last.
class Pool {
 public:
  std::int64_t take(std::int64_t bytes) {
    Blocks& freed = freed_of(bytes);
    std::vector<std::int64_t>& from = freed.handed_on.empty() ? freed.dead : freed.handed_on;
    if (from.empty()) {
      top_ += bytes;
      return top_ - bytes;
    }
    const std::int64_t offset = from.back();
    from.pop_back();
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) {
    freed_of(bytes).dead.push_back(offset);
  }
  /// Gives back a grad input that may still be read.
  void hand_on(std::int64_t offset, std::int64_t bytes) {
    freed_of(bytes).handed_on.push_back(offset);
  }
  [[nodiscard]] std::int64_t top() const { return top_; }

 private:
  struct Blocks {
    std::vector<std::int64_t> handed_on;
    std::vector<std::int64_t> dead;
  };
  using OfSize = std::pair<std::int64_t, Blocks>;

  Blocks& freed_of(std::int64_t bytes) {
    auto found =
        std::lower_bound(freed_.begin(), freed_.end(), bytes,
                         [](const OfSize& of, std::int64_t size) { return of.first < size; });
    if (found == freed_.end() || found->first != bytes) found = freed_.insert(found, {bytes, {}});
    return found->second;
  }

  std::vector<OfSize> freed_;  // sorted
  std::int64_t top_ = 0;
};

class Capture {
 public:
  Capture(const BufferTable& table, std::int32_t rank, std::vector<std::int64_t>& address)
      : table_(table), rank_(rank), address_(address) {}

  void run(const Work& work) {
    switch (work.kind) {
      case Kind::Forward:
        for_each_layer(table_, rank_, work, [&](std::int32_t layer) { forward(work, layer); });
        break;
      case Kind::BackwardWeight:
        for_each_layer(table_, rank_, work, [&](std::int32_t layer) { weight(work, layer); });
        break;
      default:
        backward(work);
        break;
    }
    if (memory.static_inputs + memory.grad_outputs + pool_.top() > peak_) {
      memory.pool = pool_.top();
      peak_ = memory.peak();
      memory.peak_entry = work.entry;
    }
  }

  RankMemory memory;

 private:
  [[nodiscard]] BufferId id(const Work& work, std::int32_t layer, BufferKind kind) const {
    return table_.id(rank_, work.chunk, layer, work.microbatch, kind);
  }
  [[nodiscard]] const LayerFacts& facts(const Work& work, std::int32_t layer) const {
    return table_.facts(rank_, work.chunk, layer);
  }

  void take(const Work& work, std::int32_t layer, BufferKind kind) {
    const std::int64_t bytes = facts(work, layer).bytes[as_index(kind)];
    if (bytes == 0) return;
    address_[id(work, layer, kind)] = address_in(Region::Pool, pool_.take(bytes));
  }
  void give_back(const Work& work, std::int32_t layer, BufferKind kind) {
    const std::int64_t at = address_[id(work, layer, kind)];
    if (at == kNowhere) return;
    pool_.give_back(offset_of(at), facts(work, layer).bytes[as_index(kind)]);
  }

  void hand_on(const Work& backward) {
    const BufferId buffer = id(backward, first_layer_, BufferKind::GradInput);
    if (address_[buffer] == kNowhere) return;
    pool_.hand_on(offset_of(address_[buffer]), table_.bytes(buffer));
  }

  void forward(const Work& work, std::int32_t layer) {
    const LayerFacts& of = facts(work, layer);
    Freed& consumed = at_key(consumed_, of.input_key);
    std::int64_t& input = address_[id(work, layer, BufferKind::StaticInput)];
    if (consumed.empty()) {
      input = address_in(Region::StaticInputs, memory.static_inputs);
      memory.static_inputs += of.bytes[as_index(BufferKind::StaticInput)];
      ++memory.input_slots;
    } else {
      input = consumed.take();
    }
    take(work, layer, BufferKind::Activations);
    if (of.keeps_quantized_weight) take(work, layer, BufferKind::QuantizedWeight);
    take(work, layer, BufferKind::Output);
  }

  void backward(const Work& work) {
    std::optional<std::int32_t> above;  // the layer before this one, whose grad input it read
    for_each_layer(table_, rank_, work, [&](std::int32_t layer) {
      const LayerFacts& of = facts(work, layer);
      std::optional<std::int64_t>& output = at_key(grad_outputs_, of.output_key);
      if (!output) {
        output = address_in(Region::GradOutputs, memory.grad_outputs);
        memory.grad_outputs += of.bytes[as_index(BufferKind::GradOutput)];
      }
      address_[id(work, layer, BufferKind::GradOutput)] = *output;
      if (work.delayed) take(work, layer, BufferKind::Operands);
      take(work, layer, BufferKind::GradInput);
      if (!work.delayed || !of.weight_reads_kept()) {
        give_back(work, layer, BufferKind::Activations);
      }
      if (of.keeps_quantized_weight) give_back(work, layer, BufferKind::QuantizedWeight);
      give_back(work, layer, BufferKind::Output);
      if (above) give_back(work, *above, BufferKind::GradInput);
      above = layer;
    });
    // TE frees the static inputs in the order of the layers.
    const std::int32_t first = work.layer == kAllLayers ? 0 : work.layer;
    const std::int32_t last =
        work.layer == kAllLayers ? table_.layers(rank_, work.chunk) - 1 : work.layer;
    for (std::int32_t layer = first; layer <= last; ++layer) {
      at_key(consumed_, facts(work, layer).input_key)
          .push(address_[id(work, layer, BufferKind::StaticInput)]);
    }
    if (last < first) return;  // a chunk without layers captures nothing
    if (handed_on_) hand_on(*handed_on_);
    handed_on_ = work;
    first_layer_ = first;
  }

  void weight(const Work& work, std::int32_t layer) {
    take(work, layer, BufferKind::Scratch);
    give_back(work, layer, BufferKind::Scratch);
    if (facts(work, layer).weight_reads_kept()) give_back(work, layer, BufferKind::Activations);
    give_back(work, layer, BufferKind::Operands);
  }

  const BufferTable& table_;
  std::int32_t rank_;
  std::vector<std::int64_t>& address_;
  // Keys are numbered from 0.
  template <typename Value>
  static Value& at_key(std::vector<Value>& values, std::uint32_t key) {
    if (key >= values.size()) values.resize(std::size_t{key} + 1);
    return values[key];
  }

  std::vector<Freed> consumed_;                            // by input key
  std::vector<std::optional<std::int64_t>> grad_outputs_;  // by output key
  Pool pool_;
  std::optional<Work> handed_on_;  // the backward whose first grad input is still held
  std::int32_t first_layer_ = 0;
  std::int64_t peak_ = -1;
};

}  // namespace

RankMemory plan_as_te(const BufferTable& table, std::int32_t rank, std::span<const Work> work,
                      std::vector<std::int64_t>& address) {
  Capture capture(table, rank, address);
  for (const Work& next : work) capture.run(next);
  return capture.memory;
}

// A forward hurts if it takes over the input of a graph whose weight gradient is still to come, a
// backward if it comes while the weight gradient of another is still to come.
bool te_could_hurt(const RankOrder& rank) {
  const std::vector<Delay> delay = resolved_delay(rank);
  struct Chunk {
    std::int32_t backwards = 0;
    std::int32_t weights = 0;
    bool waits = false;  // its last backward has run, and the weight gradient of that has not
  };
  struct Freed {
    std::size_t chunk;
    std::int32_t microbatch;
  };
  std::vector<Chunk> chunks(delay.size());
  std::deque<Freed> freed;
  std::size_t waiting = 0;  // how many chunks wait
  bool hurts = false;
  for (const Entry& entry : rank.order) {
    const auto at = entry.chunk.index();
    if (at >= delay.size()) return false;  // TE cannot capture such an order
    Chunk& chunk = chunks[at];
    if (entry.kind == Kind::Forward && !freed.empty()) {
      const Freed slot = freed.front();
      freed.pop_front();
      hurts = hurts ||
              (delay[slot.chunk] == Delay::Always && chunks[slot.chunk].weights <= slot.microbatch);
    } else if (entry.kind == Kind::Backward) {
      if (chunk.waits) return false;
      hurts = hurts || waiting > 0;
      freed.push_back({at, chunk.backwards++});
      chunk.waits = delay[at] == Delay::Always;
      waiting += chunk.waits ? 1 : 0;
    } else if (entry.kind == Kind::BackwardWeight) {
      ++chunk.weights;
      waiting -= chunk.waits ? 1 : 0;
      chunk.waits = false;
    }
  }
  return hurts;
}

}  // namespace capo
