// The gradient contract says what a backward owes a weight: the value that autograd gets, the place
// where the gradient ends, the action that writes it, and the action that sets the flag
// grad_added_to_main_grad. It has cells for six kinds of module in six modes.
//
//   Delay  delay_wgrad              the weight gradient is an action of its own, W
//   Fuse   fuse_wgrad_accumulation  its product writes main_grad, and autograd needs nothing
//   Attr   grad_added_to_main_grad  the parameter has the flag, so autograd must not get None
//
// The sound contract does not ask for the kind of module; a module of any kind keeps these:
// - Every microbatch's contribution is added exactly once, without Fuse to .grad and with it to
//   main_grad; with Delay that is at W, and W *adds*.
// - Under overwrite_main_grad or is_first_microbatch the first contribution of a step that is
//   *written* overwrites, whichever microbatch it is of, and all others add.
// - The flag says that nothing is owed: it is set when the data is there, so with Delay at W and
//   not at B, and a B that queues a W clears it.
// - With Attr, autograd gets a dummy, a tensor of its own. While the flag is not set a reader adds
//   the dummy, so with Delay it is of zeros; else of whatever was there, unless zero_out_wgrad.
// - A weight that is frozen gets nothing, and queues nothing.
// - The parameter is found by a weak handle to the parameter object, since the tensor that was
//   saved may come back as another one. Where the parameter is gone, that is an error with its
//   name. So is a second backward of one microbatch.
//
// TransformerEngine's cells are facts about a version, defects included; the profile `te` goes by
// them. A transformer-layer has no cell: it is made of modules that have one. TE's basic-linear-op
// has no Delay, and takes its cells from the column of grouped-linear-op; an attention is two
// linears to it. main_grad's layout is main_grad.h's concern.
//
// Tested cell by cell by contract_test.cpp; accumulator_test.cpp adds up what the cells lead to.

#pragma once

#include "core/frameworks/te/version.h"
#include "core/model/model.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capo::gradients {

enum class Contract : std::uint8_t { Sound, Te };

enum class GradientMode : std::uint8_t { Vanilla, Delay, Fuse, FuseAttr, DelayFuse, DelayFuseAttr };

inline constexpr std::array kGradientModes{GradientMode::Vanilla,   GradientMode::Delay,
                                           GradientMode::Fuse,      GradientMode::FuseAttr,
                                           GradientMode::DelayFuse, GradientMode::DelayFuseAttr};

/// The kinds of the table's columns.
inline constexpr std::array kColumns{ModuleKind::Linear,          ModuleKind::LayerNormLinear,
                                     ModuleKind::LayerNormMlp,    ModuleKind::GroupedLinear,
                                     ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp};

/// The value that backward hands to autograd for the weight.
enum class Returned : std::uint8_t {
  Gradient,
  Nothing,
  Dummy,          ///< without meaning, a tensor of its own
  SharedDummy,    ///< without meaning, one for all of its shape and type
  Zeros,          ///< a dummy that may be added
  Uninitialised,  ///< the buffer that W will write
  LiveView,       ///< of main_grad, which already holds the gradient
};

/// The place where the gradient ends.
enum class Destination : std::uint8_t {
  Nowhere,                 ///< there is no gradient
  AddsToGrad,              ///< it is added to .grad
  AssignsGrad,             ///< it replaces .grad
  AssignsGradIfNone,       ///< it becomes .grad if that is None; else it is lost
  AssignsTemporary,        ///< it becomes .grad of a tensor that nobody keeps
  AddsToMainGrad,          ///< it is added to main_grad
  OverwritesMainGrad,      ///< every microbatch overwrites main_grad
  FirstForwardOverwrites,  ///< the microbatch whose forward was first overwrites main_grad
  FirstWriteOverwrites,    ///< the first write of a step overwrites main_grad
};

[[nodiscard]] constexpr bool is_main_grad(Destination destination) {
  return destination >= Destination::AddsToMainGrad;
}

/// The action that writes it.
enum class Written : std::uint8_t { Never, WithB, WithW };
/// The action that sets grad_added_to_main_grad.
enum class Flagged : std::uint8_t { Never, AtB, AtW };

struct Cell {
  Returned returned;
  Destination destination;
  Written written;
  Flagged flagged;

  friend bool operator==(const Cell&, const Cell&) = default;
};

/// A defect of a cell.
struct Defect {
  char mark;  ///< 'a', 'b', ...
  std::string_view text;
  std::string_view source;  ///< file:line of TransformerEngine, under transformer_engine/pytorch
};

/// A defect of TransformerEngine under some flag or circumstance, in any cell.
struct ConditionalDefect {
  std::string_view under;
  std::string_view text;
  std::string_view source;
};

/// Attr without Fuse changes nothing.
[[nodiscard]] GradientMode gradient_mode_of(const ModuleFlags& flags);

/// The cell without further flags; nullopt for a transformer-layer, and for a basic-linear-op with
/// Delay. `version` matters to Contract::Te only.
[[nodiscard]] std::optional<Cell> contract(ModuleKind kind, GradientMode mode, Contract whose,
                                           const te::Version& version = te::kNewest);

/// The cell, changed by overwrite_main_grad, zero_out_wgrad, is_first_microbatch and frozen_weight.
/// In a module with two weights frozen_weight is about the first.
[[nodiscard]] std::optional<Cell> contract_under(ModuleKind kind, const ModuleFlags& flags,
                                                 Contract whose,
                                                 const te::Version& version = te::kNewest);

/// The cell of the bias, which never goes to main_grad by itself.
[[nodiscard]] std::optional<Cell> bias_contract(ModuleKind kind, const ModuleFlags& flags,
                                                Contract whose);

/// Defects of a cell, in the order of their marks; a cell of the sound contract has none.
[[nodiscard]] std::vector<Defect> defects_of(const Cell& cell);
[[nodiscard]] std::span<const ConditionalDefect> conditional_defects();

/// Which products a backward computes, at B or at W.
struct Products {
  bool input;          ///< the input's gradient
  bool weight;         ///< that of weights that are trained
  bool frozen_weight;  ///< that of a weight that is frozen, for nobody

  friend bool operator==(const Products&, const Products&) = default;
};

/// Sound is what somebody needs and no more: with input_requires_grad false, weight gradients only,
/// with frozen_weight the input's only. A norm in front needs the product for its own weights. Of
/// a kind with two weights one of them is frozen. None for a transformer-layer.
[[nodiscard]] std::optional<Products> products(ModuleKind kind, const ModuleFlags& flags,
                                               Contract whose);

/// Whether backward hands anyone a gradient. Where it does not, PyTorch 2.11 cannot capture it
/// (cudaErrorStreamCaptureIsolation). A transformer-layer does, by its norms.
[[nodiscard]] bool hands_a_gradient(ModuleKind kind, const ModuleFlags& flags, Contract whose);

/// Whether TransformerEngine raises if a W finds nothing queued; else it returns in silence.
[[nodiscard]] bool te_raises_on_empty_queue(ModuleKind kind);
/// Whether the product that makes a delayed weight gradient makes the bias's too. B makes
/// that of a module whose B reads a quantized gradient.
[[nodiscard]] bool te_makes_bias_gradient_with_weight(const Module& module);
/// Whether it is one of TE's operations, which unlike modules do not look at is_first_microbatch.
[[nodiscard]] bool is_operation(ModuleKind kind);

/// "delay+fuse+attr".
[[nodiscard]] std::string_view name_of(GradientMode mode);
/// "the gradient", "nothing", "a shared dummy".
[[nodiscard]] std::string_view name_of(Returned returned);
/// "adds to .grad".
[[nodiscard]] std::string_view name_of(Destination destination);
/// "B", "W", "-".
[[nodiscard]] std::string_view name_of(Written written);
[[nodiscard]] std::string_view name_of(Flagged flagged);

/// The page of `capo explain contract`: both tables of the contract, a row a cell, the defects of
/// TransformerEngine's, and the facts that no cell holds. docs/gradients.md holds the same text,
/// which tests/cli/explain_contract_test.cpp compares.
[[nodiscard]] std::string contract_page(const te::Version& version = te::kNewest);

}  // namespace capo::gradients
