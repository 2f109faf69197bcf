#include <capo/core/plan/te_plan.h>

#include <capo/core/plan/accesses.h>

#include <deque>
#include <optional>
#include <unordered_map>

namespace capo {

namespace {

// PyTorch's allocator as assumed: a stack of freed blocks for each size.
class Pool {
 public:
  std::int64_t take(std::int64_t bytes) {
    std::vector<std::int64_t>& freed = freed_[bytes];
    if (freed.empty()) {
      top_ += bytes;
      return top_ - bytes;
    }
    const std::int64_t offset = freed.back();
    freed.pop_back();
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) { freed_[bytes].push_back(offset); }
  [[nodiscard]] std::int64_t top() const { return top_; }

 private:
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> freed_;
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
    const std::int64_t bytes = facts(work, layer).bytes[static_cast<std::size_t>(kind)];
    if (bytes == 0) return;
    address_[id(work, layer, kind)] = address_in(Region::Pool, pool_.take(bytes));
  }
  void give_back(const Work& work, std::int32_t layer, BufferKind kind) {
    const std::int64_t at = address_[id(work, layer, kind)];
    if (at == kNowhere) return;
    pool_.give_back(offset_of(at), facts(work, layer).bytes[static_cast<std::size_t>(kind)]);
  }

  void forward(const Work& work, std::int32_t layer) {
    const LayerFacts& of = facts(work, layer);
    std::deque<std::int64_t>& consumed = consumed_[of.input_key];
    std::int64_t& input = address_[id(work, layer, BufferKind::StaticInput)];
    if (consumed.empty()) {
      input = address_in(Region::StaticInputs, memory.static_inputs);
      memory.static_inputs += of.bytes[static_cast<std::size_t>(BufferKind::StaticInput)];
      ++memory.input_slots;
    } else {
      input = consumed.front();
      consumed.pop_front();
    }
    take(work, layer, BufferKind::Activations);
    take(work, layer, BufferKind::Output);
  }

  void backward(const Work& work) {
    std::optional<std::int32_t> above;  // the layer before this one, whose grad input it read
    for_each_layer(table_, rank_, work, [&](std::int32_t layer) {
      const LayerFacts& of = facts(work, layer);
      const auto [output, first] = grad_outputs_.try_emplace(
          of.output_key, address_in(Region::GradOutputs, memory.grad_outputs));
      if (first) memory.grad_outputs += of.bytes[static_cast<std::size_t>(BufferKind::GradOutput)];
      address_[id(work, layer, BufferKind::GradOutput)] = output->second;
      if (work.delayed) take(work, layer, BufferKind::Operands);
      take(work, layer, BufferKind::GradInput);
      if (!work.delayed || of.aliases.input) give_back(work, layer, BufferKind::Activations);
      give_back(work, layer, BufferKind::Output);
      if (above) give_back(work, *above, BufferKind::GradInput);
      above = layer;
    });
    // The static inputs, in the order of the layers.
    const std::int32_t first = work.layer == kAllLayers ? 0 : work.layer;
    const std::int32_t last =
        work.layer == kAllLayers ? table_.layers(rank_, work.chunk) - 1 : work.layer;
    for (std::int32_t layer = first; layer <= last; ++layer) {
      consumed_[facts(work, layer).input_key].push_back(
          address_[id(work, layer, BufferKind::StaticInput)]);
    }
    if (last < first) return;  // a chunk without layers captures nothing
    if (handed_on_) give_back(*handed_on_, first_layer_, BufferKind::GradInput);
    handed_on_ = work;
    first_layer_ = first;
  }

  void weight(const Work& work, std::int32_t layer) {
    take(work, layer, BufferKind::Scratch);
    give_back(work, layer, BufferKind::Scratch);
    if (!facts(work, layer).aliases.input) give_back(work, layer, BufferKind::Activations);
    give_back(work, layer, BufferKind::Operands);
  }

  const BufferTable& table_;
  std::int32_t rank_;
  std::vector<std::int64_t>& address_;
  std::unordered_map<std::uint32_t, std::deque<std::int64_t>> consumed_;  // by input key
  std::unordered_map<std::uint32_t, std::int64_t> grad_outputs_;          // by output key
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

}  // namespace capo
