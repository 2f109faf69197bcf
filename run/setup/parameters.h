// The parameters of a step: what they are, where they and their gradients lie, and weak handles to
// them.
//
// A backward finds its parameter by a handle that does not keep it alive, never by the tensor that
// was saved, since that may come back as another one. If the parameter is gone, that is an error
// with its name.
//
// Each has memory of its own outside any plan: the values, .grad in its own type, main_grad in
// fp32, the tensor that backward hands to autograd, and a dummy. Groups lie one after another if
// the weight is a single one, otherwise each by itself; kernels find them through tables on the
// device.
//
// Tested by parameters_test.cpp.

#pragma once

#include "run/engine/engine.h"
#include "run/modules/layer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capo::run {

/// Tells the parameters of a layer apart.
enum class Role : std::uint8_t {
  AttentionNormWeight,  ///< of a transformer layer, whose attention has these six
  AttentionNormBias,
  Qkv,
  QkvBias,
  Projection,
  ProjectionBias,
  NormWeight,
  NormBias,
  Router,
  First,
  FirstBias,
  Second,
  SecondBias
};
inline constexpr std::array kAllRoles{Role::AttentionNormWeight,
                                      Role::AttentionNormBias,
                                      Role::Qkv,
                                      Role::QkvBias,
                                      Role::Projection,
                                      Role::ProjectionBias,
                                      Role::NormWeight,
                                      Role::NormBias,
                                      Role::Router,
                                      Role::First,
                                      Role::FirstBias,
                                      Role::Second,
                                      Role::SecondBias};
inline constexpr std::size_t kRoles = kAllRoles.size();
/// The roles of a layer without halves, or of one half.
inline constexpr std::array kHalfRoles{Role::NormWeight, Role::NormBias,  Role::Router,
                                       Role::First,      Role::FirstBias, Role::Second,
                                       Role::SecondBias};
/// The role in its transformer layer of a parameter that the first half has by this one, which is
/// no router's.
[[nodiscard]] Role role_in_first_half(Role role);

[[nodiscard]] constexpr bool is_of_norm(Role role) {
  return role == Role::AttentionNormWeight || role == Role::AttentionNormBias ||
         role == Role::NormWeight || role == Role::NormBias;
}
/// Whether it is added to a product's output.
[[nodiscard]] constexpr bool is_bias(Role role) {
  return role == Role::QkvBias || role == Role::ProjectionBias || role == Role::FirstBias ||
         role == Role::SecondBias;
}
/// Whether a product reads it as its second operand.
[[nodiscard]] constexpr bool is_of_product(Role role) {
  return !is_of_norm(role) && !is_bias(role);
}

/// The name, shape and type of a parameter.
struct ParameterForm {
  std::string name;  ///< "rank 0, chunk 1, layer 0: weight"
  Role role = Role::First;
  std::int64_t groups = 1;
  std::int64_t elements = 0;  ///< of one group
  std::int64_t columns = 1;   ///< of its last dimension
  DataType type = DataType::Bf16;
  bool single = true;  ///< its groups lie one after another
  bool fused = false;  ///< its gradient goes to main_grad
};

/// The parameters that a layer has, by role, without names.
[[nodiscard]] std::vector<ParameterForm> parameter_forms(const LayerShape& shape, bool single);
/// "norm weight", and of the kind: "fc1 weight", "qkv weight". Empty if it has no such parameter.
[[nodiscard]] std::string_view name_of(Role role, ModuleKind kind);

/// A tensor of a parameter's shape: a part for each group, and a table of them on the device.
struct GroupedTensor {
  DataType type = DataType::Bf16;
  std::int64_t elements = 0;  ///< of a part
  std::vector<std::byte*> parts;
  void* const* table = nullptr;

  [[nodiscard]] std::int64_t part_bytes() const { return elements * bytes_of(type); }
};

/// Parts are null if the engine has no more memory; it keeps the error.
[[nodiscard]] GroupedTensor make_tensor(Engine& engine, const ParameterForm& form, DataType type);
/// The numbers of all parts, one after another, as floats.
[[nodiscard]] std::vector<float> values_of(Engine& engine, const GroupedTensor& tensor);
/// The numbers at these places, counted through all parts. Only they are read.
[[nodiscard]] std::vector<float> values_at(Engine& engine, const GroupedTensor& tensor,
                                           std::span<const std::int64_t> at);
/// Draws the numbers of all parts, one after another, on the engine's first stream.
void draw_into(Engine& engine, const GroupedTensor& tensor, const Drawing& numbers);

/// The tensors that a step leaves of a parameter.
struct GradientMemory {
  GroupedTensor grad;
  GroupedTensor main_grad;
  GroupedTensor returned;
  GroupedTensor dummy;
  std::vector<GroupedTensor> own;  ///< by microbatch; empty unless each has a place of its own
};

struct ParameterHandle {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

/// Knows which parameters are alive.
class ParameterRegistry {
 public:
  ParameterHandle add(std::string name);
  [[nodiscard]] ParameterHandle handle(std::uint32_t index) const {
    return {.index = index, .generation = entries_[index].generation};
  }
  /// Frees the parameter: handles to it find nothing from now on.
  void expire(std::uint32_t index);
  [[nodiscard]] bool alive(ParameterHandle handle) const;
  [[nodiscard]] const std::string& name(std::uint32_t index) const { return entries_[index].name; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string name;
    std::uint32_t generation = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace capo::run
