#include "core/text/module_reader.h"

#include "core/model/model.h"
#include "core/text/json_fields.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace capo {

namespace {

using Type = JsonValue::Type;
using Maybe = std::optional<Refusal>;

constexpr std::array<std::string_view, 11> kModuleKeys{
    "kind",   "dtype",     "shape", "flags",           "bytes",       "cost",
    "splits", "main_grad", "calls", "output_position", "grad_buckets"};
constexpr std::array<std::string_view, 2> kMainGradKeys{"shape", "strides"};
constexpr std::array kDataTypes{DataType::Bf16, DataType::Fp16, DataType::Fp32, DataType::Fp8};
constexpr std::array kSplits{Splits::Host, Splits::Device, Splits::Input};
constexpr std::int64_t kLargestSize = 0x7fffffff;
constexpr std::int64_t kMostElements = (std::int64_t{1} << 53) - 1;  // of a tensor

// A member of a section, by its key.
template <typename Section, typename Value>
struct Field {
  std::string_view key;
  Value Section::*slot;
};

constexpr std::array<Field<ModuleShape, std::optional<std::int64_t>>, 4> kShape{{
    {"tokens", &ModuleShape::tokens},
    {"hidden", &ModuleShape::hidden},
    {"ffn", &ModuleShape::ffn},
    {"groups", &ModuleShape::groups},
}};
constexpr std::array<Field<ModuleBytes, std::optional<std::int64_t>>, 5> kBytes{{
    {"input", &ModuleBytes::input},
    {"output", &ModuleBytes::output},
    {"activations", &ModuleBytes::activations},
    {"operands", &ModuleBytes::operands},
    {"weight", &ModuleBytes::weight},
}};
constexpr std::array<Field<ModuleCost, std::optional<double>>, 5> kCost{{
    {"forward", &ModuleCost::forward},
    {"backward", &ModuleCost::backward},
    {"weight", &ModuleCost::weight},
    {"dispatch", &ModuleCost::dispatch},
    {"combine", &ModuleCost::combine},
}};

// How often or where something occurs.
struct Number {
  std::string_view key;
  std::int64_t Module::*slot;
  std::int64_t least;
};

constexpr std::array<Number, 3> kNumbers{{
    {"calls", &Module::calls, 1},
    {"output_position", &Module::output_position, 0},
    {"grad_buckets", &Module::grad_buckets, 0},
}};

// --- main_grad -----------------------------------------------------------------------------------

Maybe read_dimensions(const JsonValue& main_grad, std::string_view key, std::int64_t least,
                      std::int64_t most, std::vector<std::int64_t>& numbers) {
  const auto list = main_grad.find(key);
  if (!list) return malformed(main_grad.span(), fmt::format("`main_grad` has no `{}`", key));
  const std::string what = fmt::format("`main_grad.{}`", key);
  if (list->type() != Type::Array) return wrong_type(*list, what, "an array of whole numbers");
  for (auto item = list->first(); item; item = item->next()) {
    const auto number = read_whole(*item, fmt::format("an item of {}", what), least, most);
    if (!number) return number.error();
    numbers.push_back(*number);
  }
  if (numbers.empty()) return malformed(list->span(), fmt::format("{} is empty", what));
  return std::nullopt;
}

// Its elements, and the distance from the first to the last of them, stay small enough for whoever
// multiplies.
bool too_large(const MainGrad& main_grad) {
  std::int64_t elements = 1;
  std::int64_t reach = 1;
  for (std::size_t i = 0; i < main_grad.shape.size(); ++i) {
    const std::int64_t size = main_grad.shape[i];
    const std::int64_t stride = main_grad.strides[i];
    if (elements > kMostElements / size) return true;
    elements *= size;
    if (stride > 0 && size - 1 > (kMostElements - reach) / stride) return true;
    reach += (size - 1) * stride;
  }
  return false;
}

Maybe read_main_grad(const JsonValue& module, std::optional<MainGrad>& slot) {
  const auto value = module.find("main_grad");
  if (!value) return std::nullopt;
  if (value->type() != Type::Object) return wrong_type(*value, "`main_grad`", "an object");
  if (auto refusal = refuse_unknown_keys(*value, kMainGradKeys, kModelSchema)) return refusal;
  MainGrad& read = slot.emplace();
  if (auto refusal = read_dimensions(*value, "shape", 1, kLargestSize, read.shape)) return refusal;
  if (auto refusal = read_dimensions(*value, "strides", 0, kMostElements, read.strides)) {
    return refusal;
  }
  if (read.shape.size() != read.strides.size()) {
    return malformed(value->find("strides")->span(),
                     fmt::format("`main_grad` has strides for {} dimensions, but its shape has {}",
                                 read.strides.size(), read.shape.size()),
                     "write one stride, in elements, for each size");
  }
  if (too_large(read)) {
    return malformed(value->span(),
                     fmt::format("`main_grad` is larger than {} elements", kMostElements));
  }
  return std::nullopt;
}

// --- modules -------------------------------------------------------------------------------------

template <typename Section, typename OneField, std::size_t kSize, typename ReadValue>
Maybe read_section(const JsonValue& module, std::string_view key,
                   const std::array<OneField, kSize>& fields, Section& section,
                   ReadValue read_value) {
  const auto object = module.find(key);
  if (!object) return std::nullopt;
  if (object->type() != Type::Object) {
    return wrong_type(*object, fmt::format("`{}`", key), "an object");
  }
  std::array<std::string_view, kSize> keys;
  std::transform(fields.begin(), fields.end(), keys.begin(),
                 [](const auto& field) { return field.key; });
  if (auto refusal = refuse_unknown_keys(*object, keys, kModelSchema)) return refusal;
  for (const auto& field : fields) {
    const auto value = object->find(field.key);
    if (!value) continue;
    const auto reading = read_value(*value, fmt::format("`{}.{}`", key, field.key));
    if (!reading) return reading.error();
    section.*field.slot = *reading;
  }
  return std::nullopt;
}

Maybe read_numbers(const JsonValue& value, Module& module) {
  for (const Number& number : kNumbers) {
    const auto member = value.find(number.key);
    if (!member) continue;
    const auto read =
        read_whole(*member, fmt::format("`{}`", number.key), number.least, kLargestSize);
    if (!read) return read.error();
    module.*number.slot = *read;
  }
  return std::nullopt;
}

Maybe read_module(const JsonValue& value, Module& module) {
  if (value.type() != Type::Object) return wrong_type(value, "a module", "an object");
  if (auto refusal = refuse_unknown_keys(value, kModuleKeys, kModelSchema)) return refusal;
  if (auto refusal = read_choice(value, "kind", kModuleKinds, module.kind)) return refusal;
  if (auto refusal = read_choice(value, "dtype", kDataTypes, module.dtype)) return refusal;
  if (auto refusal = read_choice(value, "splits", kSplits, module.splits)) return refusal;
  if (auto refusal = read_main_grad(value, module.main_grad)) return refusal;
  if (auto refusal = read_numbers(value, module)) return refusal;
  const auto size = [](const JsonValue& of, std::string_view what) {
    return read_whole(of, what, 1, kLargestSize);
  };
  if (auto refusal = read_section(value, "shape", kShape, module.shape, size)) return refusal;
  if (auto refusal = read_section(value, "flags", kModuleFlags, module.flags, read_boolean)) {
    return refusal;
  }
  if (auto refusal = read_section(value, "bytes", kBytes, module.bytes, read_bytes)) {
    return refusal;
  }
  return read_section(value, "cost", kCost, module.cost, read_microseconds);
}

// --- layers --------------------------------------------------------------------------------------

using Chunk = std::vector<std::int32_t>;
using Rank = std::vector<Chunk>;

class LayerReader {
 public:
  LayerReader(const std::vector<Module>& modules, const Limits& limits) : limits_(limits) {
    for (std::size_t i = 0; i < modules.size(); ++i) {
      index_of_.emplace(modules[i].name, static_cast<std::int32_t>(i));
    }
  }

  Read<std::vector<Rank>> read(const JsonValue& value) {
    const std::optional<int> depth = depth_of_names(value, 0);
    if (!depth) return malformed(value.span(), "`layers` names no module", kHelp);
    std::vector<Rank> ranks;
    if (*depth < kRanks) {
      Rank all;
      if (auto refusal = read_rank(value, *depth, all)) return std::move(*refusal);
      ranks.push_back(std::move(all));
      return ranks;
    }
    for (auto item = value.first(); item; item = item->next()) {
      if (ranks.size() >= limits_.ranks) {
        return over_limit(item->span(), fmt::format("more than {} ranks", limits_.ranks),
                          "--max-ranks");
      }
      Rank& rank = ranks.emplace_back();
      const bool no_chunk = item->type() == Type::Array && !item->first();
      if (no_chunk) continue;
      if (auto refusal = read_rank(*item, kChunks, rank)) return std::move(*refusal);
    }
    return ranks;
  }

 private:
  // How many arrays lie around a name.
  static constexpr int kLayers = 1;
  static constexpr int kChunks = 2;
  static constexpr int kRanks = 3;
  static constexpr const char* kHelp =
      "a name is every layer, `[...]` the layers of every chunk, `[[...]]` the chunks of every "
      "rank, `[[[...]]]` the ranks";

  // Of the first value that is no array; nothing where there is none, and kRanks where it lies
  // deeper, so that the array too much is found as what it should not be.
  static std::optional<int> depth_of_names(const JsonValue& value, int depth) {
    if (value.type() != Type::Array || depth == kRanks) return depth;
    for (auto item = value.first(); item; item = item->next()) {
      if (const auto found = depth_of_names(*item, depth + 1)) return found;
    }
    return std::nullopt;
  }

  Maybe read_rank(const JsonValue& value, int depth, Rank& rank) {
    if (depth < kChunks) return read_chunk(value, depth, rank.emplace_back());
    if (value.type() != Type::Array) return misplaced(value, "a rank", "an array of chunks");
    for (auto item = value.first(); item; item = item->next()) {
      if (++chunks_ > limits_.counts) {
        return over_limit(item->span(), fmt::format("more than {} chunks", limits_.counts),
                          "--max-count");
      }
      if (auto refusal = read_chunk(*item, kLayers, rank.emplace_back())) return refusal;
    }
    return std::nullopt;
  }

  Maybe read_chunk(const JsonValue& value, int depth, Chunk& chunk) {
    if (depth < kLayers) return read_layer(value, chunk);
    if (value.type() != Type::Array) return misplaced(value, "a chunk", "an array of layers");
    if (!value.first()) return malformed(value.span(), "a chunk has at least one layer");
    for (auto item = value.first(); item; item = item->next()) {
      if (auto refusal = read_layer(*item, chunk)) return refusal;
    }
    return std::nullopt;
  }

  Maybe read_layer(const JsonValue& value, Chunk& chunk) {
    if (value.type() != Type::String) return misplaced(value, "a layer", "the name of a module");
    if (++layers_ > limits_.counts) {
      return over_limit(value.span(), fmt::format("more than {} layers", limits_.counts),
                        "--max-count");
    }
    const auto found = index_of_.find(value.string());
    if (found != index_of_.end()) {
      chunk.push_back(found->second);
      return std::nullopt;
    }
    std::vector<std::string_view> names;
    for (const auto& [name, index] : index_of_) names.push_back(name);
    return malformed(value.span(), fmt::format("there is no module {}", shown(value.string())),
                     did_you_mean(value.string(), names, "`modules` names them"));
  }

  static Refusal misplaced(const JsonValue& value, std::string_view what, std::string_view wanted) {
    Refusal refusal = wrong_type(value, what, wanted);
    refusal.finding.help.text = kHelp;
    return refusal;
  }

  const Limits& limits_;
  std::map<std::string_view, std::int32_t> index_of_;  // names of the caller's modules
  std::uint64_t chunks_ = 0;
  std::uint64_t layers_ = 0;
};

}  // namespace

Read<std::vector<Module>> read_modules(const JsonValue& value, const Limits& limits) {
  if (value.type() != Type::Object) {
    return wrong_type(value, "`modules`", "an object of modules by name");
  }
  std::vector<Module> modules;
  for (auto member = value.first(); member; member = member->next()) {
    if (modules.size() >= limits.counts) {
      return over_limit(member->key_span(), fmt::format("more than {} modules", limits.counts),
                        "--max-count");
    }
    if (member->key().empty())
      return malformed(member->key_span(), "the name of a module is empty");
    Module& module = modules.emplace_back();
    module.name = member->key();
    if (auto refusal = read_module(*member, module)) return std::move(*refusal);
  }
  return modules;
}

Read<std::vector<Rank>> read_module_layers(const JsonValue& value,
                                           const std::vector<Module>& modules,
                                           const Limits& limits) {
  return LayerReader(modules, limits).read(value);
}

}  // namespace capo
