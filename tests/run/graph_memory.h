// Which memory the graph of one piece of work may touch: its own planned buffers, what the step
// gives its microbatch, its layers' parameters and gradients, and nothing else.

#pragma once

#include "core/plan/accesses.h"
#include "run/run.h"
#include "tests/run/operands_of.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace capo::run {

enum class Owner : std::uint8_t { Buffer, Parameter, Gradient, Input, Output };

struct Area {
  const std::byte* begin = nullptr;
  std::int64_t bytes = 0;
  Owner owner = Owner::Buffer;
  BufferKind kind = BufferKind::StaticInput;  ///< of a buffer

  [[nodiscard]] bool holds(const Operand& operand) const {
    return operand.begin >= begin && operand.begin + operand.bytes <= begin + bytes;
  }
};

class GraphMemory {
 public:
  explicit GraphMemory(const Inspection& at)
      : at_(at), table_(at.step.view().table()), cells_(table_) {}

  /// That one piece of work may touch. Made anew for each.
  [[nodiscard]] std::vector<Area> of(std::int32_t rank, const Work& work, const Origin& origin) {
    areas_.clear();
    if (origin.kind == Origin::Kind::Buffer) buffer(origin.id);
    for_each_layer(table_, rank, work, [&](std::int32_t layer) {
      const auto touched = [&](BufferId id) { buffer(id); };
      for_each_access(table_, rank, work, layer, touched, touched);
      const StepLayer& of = at_.layers.at(rank, work.chunk, layer);
      // Sizes behind the rows of the input are read with every product.
      if (of.sizes_in_input && work.kind != Kind::Forward) {
        sizes(table_.id(rank, work.chunk, layer, work.microbatch, BufferKind::StaticInput), of);
      }
      side(at_.layers.number(rank, work.chunk, layer), work.microbatch, of.shape);
      for (const std::uint32_t parameter : of.parameter) {
        if (parameter == kNoParameter) continue;
        tensors(parameter);
        own(parameter, work.microbatch);
      }
    });
    if (work.kind != Kind::BackwardWeight) {
      const Way way = work.kind == Kind::Forward ? Way::Forward : Way::Backward;
      end(cells_.of(rank, work.chunk, work.microbatch), way, origin.kind);
    }
    return std::move(areas_);
  }

  /// That any graph of the step may touch.
  [[nodiscard]] std::vector<Area> of_the_step() {
    areas_.clear();
    for (BufferId id = 0; id < table_.size(); ++id) buffer(id);
    for (std::uint32_t p = 0; p < at_.layers.parameters().size(); ++p) tensors(p);
    for (std::size_t number = 0; number < at_.layers.all().size(); ++number) {
      for (std::int32_t m = 0; m < table_.microbatches(); ++m) {
        side(number, m, at_.layers.all()[number].shape);
      }
    }
    for (std::uint32_t cell = 0; cell < cells_.count(); ++cell) {
      for (const Way way : {Way::Forward, Way::Backward}) {
        for (const auto from : {Origin::Kind::Given, Origin::Kind::Landing}) end(cell, way, from);
      }
      add(at_.outputs.collected(cell), at_.outputs.collected_bytes(cell), Owner::Output);
    }
    return std::move(areas_);
  }

 private:
  void add(const void* begin, std::int64_t bytes, Owner owner) {
    if (begin != nullptr) areas_.push_back({static_cast<const std::byte*>(begin), bytes, owner});
  }

  [[nodiscard]] const std::byte* place(BufferId id) const {
    const std::int64_t address = at_.step.view().plan().address[id];
    if (address == kNowhere) return nullptr;
    return at_.memory.extent(table_.at(id).rank, region_of(address)).begin + offset_of(address);
  }
  void buffer(BufferId id) {
    const Buffer of = table_.at(id);
    if (place(id) == nullptr) return;
    areas_.push_back({.begin = place(id), .bytes = table_.bytes(of), .kind = of.kind});
  }
  void sizes(BufferId input, const StepLayer& layer) {
    add(place(input) + sizes_offset(layer.shape), layer.shape.groups * 8, Owner::Input);
  }
  void side(std::size_t number, std::int32_t microbatch, const LayerShape& shape) {
    const LayerSide given = at_.inputs.side(number, microbatch);
    add(given.sizes, shape.groups * 8, Owner::Input);
    add(given.probabilities, shape.tokens * 4, Owner::Input);
    add(given.scales, shape.tokens * 4, Owner::Input);
    const StepOutputs::SideGradients& made = at_.outputs.side(number, microbatch);
    add(made.probabilities, made.count * 4, Owner::Output);
    add(made.scales, made.count * 4, Owner::Output);
  }
  void tensor(const GroupedTensor& of, Owner owner) {
    for (const std::byte* part : of.parts) add(part, of.part_bytes(), owner);
    // Whoever follows the table reads it; nobody writes it.
    add(of.table, static_cast<std::int64_t>(of.parts.size()) * 8, Owner::Parameter);
  }
  void tensors(std::uint32_t parameter) {
    tensor(at_.parameters[parameter], Owner::Parameter);
    const GradientMemory& of = at_.outputs.gradients(parameter);
    for (const GroupedTensor* each : {&of.grad, &of.main_grad, &of.returned, &of.dummy}) {
      tensor(*each, Owner::Gradient);
    }
  }
  // Only runs of unchecked plans have these.
  void own(std::uint32_t parameter, std::int32_t microbatch) {
    const auto& all = at_.outputs.gradients(parameter).own;
    if (!all.empty()) tensor(all[static_cast<std::size_t>(microbatch)], Owner::Gradient);
  }
  // The rows that the step gives a cell on a way through it, or that a transfer leaves there.
  void end(std::uint32_t cell, Way way, Origin::Kind from) {
    const bool given = from == Origin::Kind::Given;
    if (!given && from != Origin::Kind::Landing) return;
    const bool forward = way == Way::Forward;
    const Cells::Cell of = cells_.at(cell);
    const std::int32_t layers = table_.layers(of.rank, of.chunk);
    if (layers == 0) return;
    const LayerShape& shape = at_.layers.at(of.rank, of.chunk, forward ? 0 : layers - 1).shape;
    const std::int64_t columns = forward ? shape.hidden : output_columns(shape);
    const std::byte* begin = !given    ? at_.inputs.landing(cell, way)
                             : forward ? at_.inputs.input(cell)
                                       : at_.inputs.grad_output(cell);
    add(begin, shape.tokens * columns * bytes_of(shape.type), Owner::Input);
  }

  const Inspection& at_;
  const BufferTable& table_;
  Cells cells_;
  std::vector<Area> areas_;
};

}  // namespace capo::run
