#include "run/modules/coded.h"

#include "run/modules/coded_bytes.h"

namespace capo::run {

namespace {

// The depth of the rows of a layer, whatever the sizes of its groups are.
std::int64_t most_depth(const LayerShape& shape) {
  const std::int64_t blocks = shape.grouped ? shape.tokens / kGroupDepth + shape.groups
                                            : whole_blocks(shape.tokens, kGroupDepth);
  return blocks * kGroupDepth;
}

Codes take(Sections& sections, const LayerShape& shape, std::int64_t count, std::int64_t depth) {
  auto* codes = sections.numbers<std::uint8_t>(count * depth);
  return {.codes = codes, .scales = sections.take(bytes_of_scales(*shape.scaling, count, depth))};
}

// Codes from a vector on, or from a depth on, of which all of one tensor lie together.
Codes from(const Codes& codes, std::int64_t code, std::int64_t scale_byte) {
  if (codes.codes == nullptr) return {};
  return {.codes = codes.codes + code,
          .scales = static_cast<std::byte*>(codes.scales) + scale_byte};
}

Codes of_part(const Codes& along_columns, const LayerShape& shape, std::int64_t columns,
              const RowPart& part) {
  return from(along_columns, part.from * columns,
              bytes_of_scales(*shape.scaling, part.from, columns));
}

// A part whose depths begin at so many.
Codes of_depth(const Codes& along_rows, const LayerShape& shape, std::int64_t columns,
               std::int64_t depth) {
  return from(along_rows, depth * columns, bytes_of_scales(*shape.scaling, columns, depth));
}

Codes of_group(const Codes& w, const LayerShape& shape, std::int64_t count, std::int64_t depth,
               std::int64_t group) {
  const std::int64_t width = block_width(*shape.scaling);
  return from(w, group * count * depth,
              group * bytes_of_scales(*shape.scaling, count, depth, width));
}

const void* row_of(const void* rows, const LayerShape& shape, std::int64_t columns,
                   const RowPart& part) {
  return static_cast<const std::byte*>(rows) + part.from * columns * bytes_of(shape.type);
}

CodedWeight take_weight(Sections& sections, const LayerShape& shape, std::int64_t out,
                        std::int64_t in) {
  const auto take_codes = [&](std::int64_t count, std::int64_t depth) {
    const std::int64_t scales =
        bytes_of_scales(*shape.scaling, count, depth, block_width(*shape.scaling));
    auto* codes = sections.numbers<std::uint8_t>(shape.groups * count * depth);
    return Codes{.codes = codes, .scales = sections.take(shape.groups * scales)};
  };
  const Codes along_in = take_codes(out, in);
  return {.along_in = along_in, .along_out = take_codes(in, out)};
}

CodedWeights take_weights(Sections& sections, const LayerShape& shape) {
  CodedWeights weights{.first = take_weight(sections, shape, first_columns(shape), shape.hidden)};
  const std::int64_t in = second_columns(shape);
  if (in > 0) weights.second = take_weight(sections, shape, shape.hidden, in);
  return weights;
}

// Calls visit(part, the depth that it begins at).
template <typename Visit>
void for_each_depth(const RowLaunches& rows, Visit visit) {
  std::int64_t depth = 0;
  for (const RowPart& part : rows.parts()) {
    visit(part, depth);
    depth += depth_of(part.rows);
  }
}

}  // namespace

std::int64_t quantized_weight_bytes(const LayerShape& shape) {
  if (has_two_halves(shape.kind)) {
    return quantized_weight_bytes(attention_half(shape)) +
           quantized_weight_bytes(second_half(shape));
  }
  Sections sections(nullptr);
  static_cast<void>(take_weights(sections, shape));
  return sections.taken();
}

CodedWeights weights_of(const LayerShape& shape, const LayerPlaces& places,
                        const LayerParameters& parameters) {
  if (places.quantized_weight == nullptr)
    return {.first = parameters.first_codes, .second = parameters.second_codes};
  Sections sections(places.quantized_weight);
  return take_weights(sections, shape);
}

void quantize_weights(const LayerShape& shape, const LayerPlaces& places,
                      const LayerParameters& parameters, const Sink& launch) {
  if (places.quantized_weight == nullptr) return;
  const CodedWeights weights = weights_of(shape, places, parameters);
  const auto quantize = [&](const CodedWeight& into, void* const* w, std::int64_t out,
                            std::int64_t in) {
    launch(QuantizeWeights{.scaling = *shape.scaling,
                           .type = shape.type,
                           .groups = shape.groups,
                           .in = in,
                           .out = out,
                           .w = w,
                           .along_in = into.along_in,
                           .along_out = into.along_out});
  };
  quantize(weights.first, parameters.first, first_columns(shape), shape.hidden);
  const std::int64_t in = second_columns(shape);
  if (in > 0) quantize(weights.second, parameters.second, shape.hidden, in);
}

Codes take_along_columns(Sections& sections, const LayerShape& shape, std::int64_t columns) {
  return take(sections, shape, shape.tokens, columns);
}

Codes take_along_rows(Sections& sections, const LayerShape& shape, std::int64_t columns) {
  return take(sections, shape, columns, most_depth(shape));
}

// A transformer layer is given the gradient of its second half, and experts that of their rows.
std::int64_t coded_gradient_bytes(const LayerShape& shape) {
  if (has_two_halves(shape.kind)) return coded_gradient_bytes(second_half(shape));
  if (has_router(shape)) return coded_gradient_bytes(experts_of(shape));
  Sections sections(nullptr);
  static_cast<void>(take_along_rows(sections, shape, output_columns(shape)));
  return sections.taken();
}

Codes coded_gradient(const LayerShape& shape, std::byte* at) {
  Sections sections(at);
  return take_along_rows(sections, shape, output_columns(shape));
}

CodedRows incoming_rows(const LayerSide& side, const std::byte* x) {
  if (side.sources == nullptr) return {.x = x};
  return {.x = x,
          .made = {.by = RowsMade::By::Gather, .sources = side.sources, .from_rows = side.tokens}};
}

void CodedLaunches::quantize(const CodedRows& of, std::int64_t columns, const Codes& along_columns,
                             const Codes& along_rows) const {
  const std::int64_t width = of.made.by == RowsMade::By::SwiGlu ? 2 * columns : columns;
  for_each_depth(rows_, [&](const RowPart& part, std::int64_t depth) {
    RowsMade made = of.made;
    if (made.probabilities != nullptr) made.probabilities += part.from;
    if (made.dy != nullptr) made.dy = row_of(made.dy, shape_, columns / 2, part);
    const bool is_named = made.sources != nullptr;
    if (is_named) made.sources += part.from;
    launch_(QuantizeRows{.scaling = *shape_.scaling,
                         .type = shape_.type,
                         .rows = part.rows,
                         .columns = columns,
                         .x = is_named ? of.x : row_of(of.x, shape_, width, part),
                         .made = made,
                         .along_columns = of_part(along_columns, shape_, columns, part),
                         .along_rows = of_depth(along_rows, shape_, columns, depth)});
  });
}

ScaledProduct CodedLaunches::product(const CodedSize& size, GroupedProduct::Kind kind,
                                     const RowPart& part) const {
  return {.kind = kind,
          .scaling = *shape_.scaling,
          .type = shape_.type,
          .rows = part.rows,
          .in = size.in,
          .out = size.out};
}

void CodedLaunches::forward(const CodedSize& size, const Codes& x, const CodedWeight& w,
                            std::byte* y, const Epilogue& epilogue) const {
  for (const RowPart& part : rows_.parts()) {
    ScaledProduct call = product(size, GroupedProduct::Kind::Forward, part);
    // The product that the epilogue belongs to, which finds its part of everything.
    const GroupedProduct whole =
        rows_.of_part({.in = size.in, .out = size.out, .x = y, .y = y, .epilogue = epilogue}, part);
    call.x = of_part(x, shape_, size.in, part);
    call.w = of_group(w.along_in, shape_, size.out, size.in, part.group);
    call.result = whole.y;
    launch_(call);
    for_each_of_epilogue(whole, [&](const auto& then) { launch_(then); });
  }
}

void CodedLaunches::input_gradient(const CodedSize& size, const Codes& dy, const CodedWeight& w,
                                   std::byte* dx) const {
  for (const RowPart& part : rows_.parts()) {
    ScaledProduct call = product(size, GroupedProduct::Kind::InputGradient, part);
    call.y = of_part(dy, shape_, size.out, part);
    call.w = of_group(w.along_out, shape_, size.in, size.out, part.group);
    call.result = dx + part.from * size.in * bytes_of(shape_.type);
    launch_(call);
  }
}

void CodedLaunches::weight_gradient(const CodedSize& size, const Codes& dy, const Codes& x,
                                    const Target& target) const {
  if (!target.wanted) return;
  for_each_depth(rows_, [&](const RowPart& part, std::int64_t depth) {
    ScaledProduct call = product(size, GroupedProduct::Kind::WeightGradient, part);
    call.type = target.type;
    call.write = target.write;
    call.y = of_depth(dy, shape_, size.out, depth);
    call.x = of_depth(x, shape_, size.in, depth);
    call.gradients = target.table + part.group;
    launch_(call);
  });
}

void CodedLaunches::weight_gradients(const LeftToW& left, const Codes& dy,
                                     const LayerTargets& targets) const {
  weight_gradient(second_size(shape_), dy, left.active, targets.second);
  weight_gradient(first_size(shape_), left.gradient, left.x, targets.first);
}

void launch_weight_gradients(const LayerShape& shape, std::span<const WeightOperands> passes,
                             LeftToW (*left_in)(const LayerShape& shape, std::byte* activations),
                             const Sink& launch) {
  for (const WeightOperands& pass : passes) {
    CodedLaunches(shape, pass.side, launch)
        .weight_gradients(left_in(shape, pass.places.activations),
                          coded_gradient(shape, pass.incoming), pass.targets);
  }
}

}  // namespace capo::run
