#include "core/text/model_parts.h"

#include "core/base/nearest.h"
#include "core/model/model.h"
#include "core/text/json_fields.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace capo {

namespace {

using Type = JsonValue::Type;
using Maybe = std::optional<Refusal>;

constexpr std::array<std::string_view, 2> kMainGradKeys{"shape", "strides"};
constexpr std::array kMlps{MlpKind::Dense, MlpKind::Experts};
constexpr std::array kSplits{Splits::Host, Splits::Device, Splits::Input};
constexpr std::int64_t kMostElements = (std::int64_t{1} << 53) - 1;  // of a tensor

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

// Its elements, and the distance from the first to the last of them, must be small enough that
// products of them fit.
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

Read<MainGrad> read_main_grad(const JsonValue& value, std::string_view what) {
  if (auto refusal = refuse_other_object(value, what, kMainGradKeys, kModelSchema)) {
    return std::move(*refusal);
  }
  MainGrad read;
  if (auto refusal = read_dimensions(value, "shape", 1, kLargestExtent, read.shape)) {
    return std::move(*refusal);
  }
  if (auto refusal = read_dimensions(value, "strides", 0, kMostElements, read.strides)) {
    return std::move(*refusal);
  }
  if (read.shape.size() != read.strides.size()) {
    return malformed(value.find("strides")->span(),
                     fmt::format("`main_grad` has strides for {} dimensions, but its shape has {}",
                                 read.strides.size(), read.shape.size()),
                     "write one stride, in elements, for each size");
  }
  if (too_large(read)) {
    return malformed(value.span(),
                     fmt::format("`main_grad` is larger than {} elements", kMostElements));
  }
  return read;
}

constexpr std::array<JsonMember<ModuleShape>, 9> kShape{{
    {"tokens", put<&ModuleShape::tokens, read_extent<1>>},
    {"hidden", put<&ModuleShape::hidden, read_extent<1>>},
    {"ffn", put<&ModuleShape::ffn, read_extent<1>>},
    {"groups", put<&ModuleShape::groups, read_extent<1>>},
    {"top_k", put<&ModuleShape::top_k, read_extent<1>>},
    {"heads", put<&ModuleShape::heads, read_extent<1>>},
    {"kv_heads", put<&ModuleShape::kv_heads, read_extent<1>>},
    {"head_dim", put<&ModuleShape::head_dim, read_extent<1>>},
    {"sequence", put<&ModuleShape::sequence, read_extent<1>>},
}};
constexpr std::array<JsonMember<ModuleBytes>, 6> kBytes{{
    {"input", put<&ModuleBytes::input, read_bytes>},
    {"output", put<&ModuleBytes::output, read_bytes>},
    {"activations", put<&ModuleBytes::activations, read_bytes>},
    {"operands", put<&ModuleBytes::operands, read_bytes>},
    {"weight", put<&ModuleBytes::weight, read_bytes>},
    {"quantized_weight", put<&ModuleBytes::quantized_weight, read_bytes>},
}};
// More than 1 is what takes longer together than one after the other.
Read<double> read_share(const JsonValue& value, std::string_view what) {
  return read_real(value, what, 0, 1e12);
}
// A task of a device that does next to nothing takes some time.
Read<double> read_rest(const JsonValue& value, std::string_view what) {
  auto rest = read_real(value, what, 0, 1);
  if (rest && *rest == 1) return malformed(value.span(), fmt::format("{} must be below 1", what));
  return rest;
}
constexpr std::array<JsonMember<ModuleCost>, 13> kCost{{
    {"forward", put<&ModuleCost::forward, read_microseconds>},
    {"backward", put<&ModuleCost::backward, read_microseconds>},
    {"weight", put<&ModuleCost::weight, read_microseconds>},
    {"dispatch", put<&ModuleCost::dispatch, read_microseconds>},
    {"combine", put<&ModuleCost::combine, read_microseconds>},
    {"reduce", put<&ModuleCost::reduce, read_microseconds>},
    {"autograd", put<&ModuleCost::autograd, read_microseconds>},
    {"whole", put<&ModuleCost::whole, read_microseconds>},
    {"fuse", put<&ModuleCost::fuse, read_share>},
    {"beside", put<&ModuleCost::beside, read_share>},
    {"rest", put<&ModuleCost::rest, read_rest>},
    {"quantize_forward", put<&ModuleCost::quantize_forward, read_microseconds>},
    {"quantize_backward", put<&ModuleCost::quantize_backward, read_microseconds>},
}};

// Reads an object of the table's members into a section of the module.
template <auto kSection, const auto& kTable>
Maybe section(const JsonValue& value, std::string_view what, Module& module) {
  if (auto refusal = refuse_other_object(value, what, keys_of(kTable), kModelSchema)) {
    return refusal;
  }
  const std::string prefix = std::string(what.substr(1, what.size() - 2)) + ".";
  return read_members(value, prefix, kTable, module.*kSection);
}

Maybe read_flags(const JsonValue& value, std::string_view what, Module& module) {
  if (auto refusal = refuse_other_object(value, what, keys_of(kModuleFlags), kModelSchema)) {
    return refusal;
  }
  for (const ModuleFlag& flag : kModuleFlags) {
    const auto member = value.find(flag.key);
    if (!member) continue;
    const auto on = read_boolean(*member, fmt::format("`flags.{}`", flag.key));
    if (!on) return on.error();
    module.flags.*flag.slot = *on;
  }
  return std::nullopt;
}

constexpr std::array<JsonMember<Module>, 10> kModuleMembers{{
    {"kind", put<&Module::kind, read_choice<kModuleKinds>>},
    {"mlp", put<&Module::mlp, read_choice<kMlps>>},
    {"recipe", put<&Module::recipe, read_choice<kRecipes>>},
    {"dtype", read_type<Module>},
    {"weight_cache", put<&Module::weight_cache, read_choice<kWeightCaches>>},
    {"splits", put<&Module::splits, read_choice<kSplits>>},
    {"main_grad", put<&Module::main_grad, read_main_grad>},
    {"calls", put<&Module::calls, read_extent<1>>},
    {"output_position", put<&Module::output_position, read_extent<0>>},
    {"grad_buckets", put<&Module::grad_buckets, read_extent<0>>},
}};
constexpr std::array<JsonMember<Module>, 4> kSections{{
    {"shape", section<&Module::shape, kShape>},
    {"flags", read_flags},
    {"bytes", section<&Module::bytes, kBytes>},
    {"cost", section<&Module::cost, kCost>},
}};
// The keys stand as docs/model-json.md lists them: the first of two that are equally near to an
// unknown one is suggested.
constexpr std::array<std::string_view, kModuleMembers.size() + kSections.size()> kModuleKeys{
    "kind",  "mlp",  "dtype",  "recipe",    "weight_cache", "shape",           "flags",
    "bytes", "cost", "splits", "main_grad", "calls",        "output_position", "grad_buckets"};

// A size of a shape that another one has to be a multiple of, both under their names.
struct Divisor {
  std::string_view of;
  std::optional<std::int64_t> ModuleShape::*multiple;
  std::string_view by;
  std::optional<std::int64_t> ModuleShape::*divisor;
};
constexpr std::array kDivisors{
    Divisor{"heads", &ModuleShape::heads, "kv_heads", &ModuleShape::kv_heads},
    Divisor{"tokens", &ModuleShape::tokens, "sequence", &ModuleShape::sequence},
};

Maybe refuse_parts(const JsonValue& shape, const ModuleShape& read) {
  for (const Divisor& each : kDivisors) {
    const std::optional<std::int64_t> multiple = read.*each.multiple;
    const std::optional<std::int64_t> divisor = read.*each.divisor;
    if (!multiple || !divisor || *multiple % *divisor == 0) continue;
    return malformed(shape.find(each.by)->span(),
                     fmt::format("`shape.{}` is {}, and `shape.{}`, {}, is no multiple of it",
                                 each.by, *divisor, each.of, *multiple));
  }
  return std::nullopt;
}

// A time that is a part of another one, both under their names.
struct PartOfTime {
  std::string_view part;
  std::optional<double> ModuleCost::*takes;
  std::string_view of;
  std::optional<double> ModuleCost::*whole;
  bool needed = true;  ///< the part is refused without the whole
};
constexpr std::array kPartsOfTimes{
    PartOfTime{"quantize_forward", &ModuleCost::quantize_forward, "forward", &ModuleCost::forward},
    PartOfTime{"quantize_backward", &ModuleCost::quantize_backward, "backward",
               &ModuleCost::backward},
    PartOfTime{"quantize_backward", &ModuleCost::quantize_backward, "whole", &ModuleCost::whole,
               false},
};

Maybe refuse_larger_parts(const JsonValue& cost, const ModuleCost& read) {
  for (const PartOfTime& each : kPartsOfTimes) {
    const std::optional<double> takes = read.*each.takes;
    const std::optional<double> whole = read.*each.whole;
    if (!takes || (!whole && !each.needed) || (whole && *takes <= *whole)) continue;
    return malformed(cost.find(each.part)->span(),
                     fmt::format("`cost.{}` is a part of `cost.{}`, ", each.part, each.of) +
                         (whole ? fmt::format("and {:g} is more than {:g}", *takes, *whole)
                                : "which is not said"));
  }
  return std::nullopt;
}

Maybe read_module(const JsonValue& value, Module& module) {
  if (auto refusal = refuse_other_object(value, "a module", kModuleKeys, kModelSchema)) {
    return refusal;
  }
  if (auto refusal = read_members(value, "", kModuleMembers, module)) return refusal;
  if (auto refusal = read_members(value, "", kSections, module)) return refusal;
  if (const auto cost = value.find("cost")) {
    if (auto refusal = refuse_larger_parts(*cost, module.cost)) return refusal;
  }
  const auto shape = value.find("shape");
  return shape ? refuse_parts(*shape, module.shape) : std::nullopt;
}

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
  // So many arrays lie around a name.
  static constexpr int kLayers = 1;
  static constexpr int kChunks = 2;
  static constexpr int kRanks = 3;
  static constexpr const char* kHelp =
      "a name is every layer, `[...]` the layers of every chunk, `[[...]]` the chunks of every "
      "rank, `[[[...]]]` the ranks";

  // The depth of the first value that is no array: nullopt if there is none, and kRanks if it lies
  // deeper, so that the surplus array is read as a name and refused.
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

bool is_fp8(const JsonValue& type) {
  return type.type() == Type::String && type.string() == "fp8";
}

Maybe refuse_fp8_beside(const JsonValue& type, const std::optional<Recipe>& recipe) {
  if (recipe != Recipe::None) return std::nullopt;
  return malformed(type.span(),
                   "`dtype` fp8 says that operands are quantized, and `recipe` none not",
                   "write the type of tensors between modules, `\"dtype\": \"bf16\"`");
}

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
