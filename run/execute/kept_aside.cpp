// The results that are kept aside, of stepper.h: by eager execution for float64 and for replays,
// and by replays of an unchecked plan, whose late reads are seen by that.

#include "core/plan/accesses.h"
#include "run/execute/stepper.h"
#include "run/modules/module.h"

#include <set>

namespace capo::run {

Expected::Expected(Engine& engine, const StepLayers& layers, std::int32_t microbatches) {
  for (const StepLayer& layer : layers.all()) {
    auto& places = landings_.emplace_back();
    const auto between = [&] {
      return has_two_halves(layer.shape.kind)
                 ? engine.allocate(input_row_bytes(layer.shape), "expected between halves")
                 : nullptr;
    };
    for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
      places.push_back(
          {.input = engine.allocate(input_row_bytes(layer.shape), "expected inputs"),
           .grad_output = engine.allocate(output_bytes(layer.shape), "expected gradients"),
           .chosen = has_router(layer.shape)
                         ? engine.allocate(product_rows(layer.shape) * 8, "chosen groups")
                         : nullptr,
           .between = {.sum = between(), .gradient = between()}});
    }
  }
}

void Stepper::keep_expected(const OpPart& part, std::int32_t at, const LayerPlaces& places,
                            StreamId stream) {
  const std::size_t number = loaded_.layers.number(part.rank, part.work.chunk, at);
  const LayerShape& shape = loaded_.layers.at(part.rank, part.work.chunk, at).shape;
  const bool is_forward = part.work.kind == Kind::Forward;
  launch(stream, Copy{.bytes = is_forward ? input_row_bytes(shape) : output_bytes(shape),
                      .from = is_forward ? places.input : places.grad_output,
                      .to = is_forward ? expected_->input(number, part.work.microbatch)
                                       : expected_->grad_output(number, part.work.microbatch)});
}

void Stepper::keep_decided(const OpPart& part, std::int32_t at, const LayerPlaces& places,
                           StreamId stream) {
  const std::size_t number = loaded_.layers.number(part.rank, part.work.chunk, at);
  const LayerShape& shape = loaded_.layers.all()[number].shape;
  const bool is_forward = part.work.kind == Kind::Forward;
  if (is_forward && has_router(shape)) {
    launch(stream, Copy{.bytes = product_rows(shape) * 8,
                        .from = chosen_groups(shape, places),
                        .to = expected_->chosen(number, part.work.microbatch)});
  }
  if (!has_two_halves(shape.kind)) return;
  const BetweenHalves from = between_halves(shape, places);
  const BetweenHalves to = expected_->between(number, part.work.microbatch);
  launch(stream, Copy{.bytes = input_row_bytes(shape),
                      .from = is_forward ? from.sum : from.gradient,
                      .to = is_forward ? to.sum : to.gradient});
}

// Compares the buffers that the work is about to read, and does not write itself, with what was
// written.
void Stepper::look_at_reads(const OpPart& part, StreamId stream) {
  const BufferTable& table = loaded_.table();
  std::set<BufferId> written;
  const auto each = [&](auto write, auto read) {
    for_each_work(part, [&](const Work& work) {
      for_each_layer(table, part.rank, work, [&](std::int32_t layer) {
        for_each_access(table, part.rank, work, layer, write, read);
      });
    });
  };
  const auto nothing = [](BufferId) {};
  each([&](BufferId buffer) { written.insert(buffer); }, nothing);
  const auto look = [&](BufferId buffer) {
    if (!written.contains(buffer)) late_->look(buffer, memory_.at(buffer), Reader::Work, stream);
  };
  if (part.origin.kind == Origin::Kind::Buffer) look(part.origin.id);
  each(nothing, look);
}

// Keeps what the work wrote, and what it read and may have changed in place. If a later layer of
// the work has taken the place over, only eager execution knows what was there.
void Stepper::keep_what_was_touched(const OpPart& part, StreamId stream) {
  const BufferTable& table = loaded_.table();
  const auto keep_of = [&](const Work& work, std::int32_t layer) {
    const std::size_t number = loaded_.layers.number(part.rank, work.chunk, layer);
    const LayerShape& shape = loaded_.layers.all()[number].shape;
    const auto keep = [&](BufferId buffer) {
      if (memory_.intact(buffer)) return late_->keep(buffer, memory_.at(buffer), stream);
    };
    const auto write = [&](BufferId buffer) {
      if (memory_.intact(buffer)) return late_->keep(buffer, memory_.at(buffer), stream);
      const BufferKind kind = table.at(buffer).kind;
      const std::int32_t m = work.microbatch;
      if (kind == BufferKind::StaticInput) {
        late_->keep_expected(buffer, expected_->input(number, m), input_row_bytes(shape));
      } else if (kind == BufferKind::GradOutput) {
        late_->keep_expected(buffer, expected_->grad_output(number, m), output_bytes(shape));
      } else {
        late_->keep_expected(buffer, nullptr, 0);
      }
    };
    for_each_access(table, part.rank, work, layer, write, keep);
  };
  for_each_work(part, [&](const Work& work) {
    for_each_layer(table, part.rank, work, [&](std::int32_t layer) { keep_of(work, layer); });
  });
}

}  // namespace capo::run
