#include "run/setup/parameters.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "run/kernels/stored.h"

#include <algorithm>
#include <cstring>

namespace capo::run {

Role role_in_first_half(Role role) {
  switch (role) {
    case Role::NormWeight:
      return Role::AttentionNormWeight;
    case Role::NormBias:
      return Role::AttentionNormBias;
    case Role::First:
      return Role::Qkv;
    case Role::FirstBias:
      return Role::QkvBias;
    case Role::Second:
      return Role::Projection;
    case Role::SecondBias:
      return Role::ProjectionBias;
    default:
      CAPO_UNREACHABLE();
  }
}

std::vector<ParameterForm> parameter_forms(const LayerShape& shape, bool single) {
  std::vector<ParameterForm> forms;
  const auto add = [&](Role role, std::int64_t groups, std::int64_t rows, std::int64_t columns) {
    forms.push_back({.role = role,
                     .groups = groups,
                     .elements = rows * columns,
                     .columns = columns,
                     .type = shape.type,
                     .single = single});
  };
  if (has_norm(shape.kind) || has_two_halves(shape.kind)) {
    add(Role::NormWeight, 1, 1, shape.hidden);
    add(Role::NormBias, 1, 1, shape.hidden);
  }
  if (has_two_halves(shape.kind)) {
    const auto attention = parameter_forms(attention_half(shape), single);
    forms.insert(forms.end(), attention.begin(), attention.end());
    for (ParameterForm& form : forms) form.role = role_in_first_half(form.role);
    const auto second = parameter_forms(second_half(shape), single);
    forms.insert(forms.end(), second.begin(), second.end());
    return forms;
  }
  if (has_router(shape)) add(Role::Router, 1, shape.groups, shape.hidden);
  add(Role::First, shape.groups, first_columns(shape), shape.hidden);
  if (shape.bias) add(Role::FirstBias, shape.groups, 1, first_columns(shape));
  if (has_two_weights(shape.kind)) {
    add(Role::Second, shape.groups, shape.hidden, second_columns(shape));
    if (shape.bias) add(Role::SecondBias, shape.groups, 1, shape.hidden);
  }
  return forms;
}

namespace {

// The names of the first and the second of two weights, and of their biases.
struct WeightNames {
  std::string_view first;
  std::string_view first_bias;
  std::string_view second;
  std::string_view second_bias;
};

constexpr WeightNames kNamesOfAttention{"qkv weight", "qkv bias", "output weight", "output bias"};

WeightNames weights_of(ModuleKind kind) {
  if (is_attention(kind)) return kNamesOfAttention;
  if (has_swiglu(kind) || has_two_halves(kind))
    return {"fc1 weight", "fc1 bias", "fc2 weight", "fc2 bias"};
  return {"weight", "bias", "", ""};
}

}  // namespace

std::string_view name_of(Role role, ModuleKind kind) {
  const bool halves = has_two_halves(kind);
  switch (role) {
    case Role::AttentionNormWeight:
      return halves ? "attention norm weight" : "";
    case Role::AttentionNormBias:
      return halves ? "attention norm bias" : "";
    case Role::Qkv:
      return halves ? kNamesOfAttention.first : "";
    case Role::QkvBias:
      return halves ? kNamesOfAttention.first_bias : "";
    case Role::Projection:
      return halves ? kNamesOfAttention.second : "";
    case Role::ProjectionBias:
      return halves ? kNamesOfAttention.second_bias : "";
    case Role::NormWeight:
      return "norm weight";
    case Role::NormBias:
      return "norm bias";
    case Role::Router:
      return has_router(kind) || halves ? "router weight" : "";
    case Role::First:
      return weights_of(kind).first;
    case Role::FirstBias:
      return weights_of(kind).first_bias;
    case Role::Second:
      return weights_of(kind).second;
    case Role::SecondBias:
      return weights_of(kind).second_bias;
  }
  CAPO_UNREACHABLE();
}

GroupedTensor make_tensor(Engine& engine, const ParameterForm& form, DataType type) {
  GroupedTensor tensor{.type = type, .elements = form.elements, .parts = {}};
  const std::int64_t part = tensor.part_bytes();
  const std::int64_t stride = form.single ? part : aligned(part);
  std::byte* data = engine.allocate(stride * form.groups, form.name);
  std::vector<void*> table;
  for (std::int64_t group = 0; group < form.groups; ++group) {
    std::byte* at = data == nullptr ? nullptr : data + group * stride;
    tensor.parts.push_back(at);
    table.push_back(at);
  }
  const auto bytes = static_cast<std::int64_t>(table.size() * sizeof(void*));
  std::byte* on_device = engine.allocate(bytes, form.name);
  if (on_device != nullptr) engine.write(on_device, table.data(), bytes);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory that holds pointers
  tensor.table = reinterpret_cast<void* const*>(on_device);
  return tensor;
}

namespace {

// The numbers at some places of a part, NaN after an error of the engine.
std::vector<float> gathered(Engine& engine, const GroupedTensor& tensor, std::size_t part,
                            const std::vector<std::int64_t>& at) {
  std::vector<std::byte> bytes(at.size() * as_index(bytes_of(tensor.type)), std::byte{0xff});
  if (at.empty()) return {};
  const auto size = static_cast<std::int64_t>(bytes.size());
  const auto index_bytes = static_cast<std::int64_t>(at.size() * sizeof(std::int64_t));
  std::byte* index = engine.allocate(index_bytes, "places of a sample");
  std::byte* to = engine.allocate(size, "numbers of a sample");
  if (index != nullptr && to != nullptr) {
    engine.write(index, at.data(), index_bytes);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of whole numbers
    const auto* places = reinterpret_cast<const std::int64_t*>(index);
    engine.launch(0, Gather{.rows = static_cast<std::int64_t>(at.size()),
                            .row_bytes = bytes_of(tensor.type),
                            .index = places,
                            .from = tensor.parts[part],
                            .to = to});
    engine.read(bytes.data(), to, size);
  }
  if (index != nullptr) engine.release(index);
  if (to != nullptr) engine.release(to);
  return from_stored(bytes, tensor.type);
}

}  // namespace

std::vector<float> values_of(Engine& engine, const GroupedTensor& tensor) {
  std::vector<float> all;
  std::vector<std::byte> bytes(as_index(tensor.part_bytes()));
  for (const std::byte* part : tensor.parts) {
    engine.read(bytes.data(), part, tensor.part_bytes());
    const std::vector<float> values = from_stored(bytes, tensor.type);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<float> values_at(Engine& engine, const GroupedTensor& tensor,
                             std::span<const std::int64_t> at) {
  std::vector<std::vector<std::int64_t>> in_part(tensor.parts.size());
  for (const std::int64_t place : at) {
    in_part[as_index(place / tensor.elements)].push_back(place % tensor.elements);
  }
  std::vector<std::vector<float>> found;
  for (std::size_t part = 0; part < in_part.size(); ++part) {
    found.push_back(gathered(engine, tensor, part, in_part[part]));
  }
  std::vector<std::size_t> taken(in_part.size(), 0);
  std::vector<float> values;
  for (const std::int64_t place : at) {
    const std::size_t part = as_index(place / tensor.elements);
    values.push_back(found[part][taken[part]++]);
  }
  return values;
}

void draw_into(Engine& engine, const GroupedTensor& tensor, const Drawing& numbers) {
  std::int64_t first = 0;
  for (std::byte* part : tensor.parts) {
    engine.launch(0, DrawInto{.type = tensor.type,
                              .count = tensor.elements,
                              .first = first,
                              .numbers = numbers,
                              .to = part});
    first += tensor.elements;
  }
}

ParameterHandle ParameterRegistry::add(std::string name) {
  entries_.push_back({.name = std::move(name)});
  return {.index = static_cast<std::uint32_t>(entries_.size() - 1)};
}

void ParameterRegistry::expire(std::uint32_t index) {
  ++entries_[index].generation;
}

bool ParameterRegistry::alive(ParameterHandle handle) const {
  return entries_[handle.index].generation == handle.generation;
}

}  // namespace capo::run
