// Declarations about a plan: who makes it, which operands alias buffers, and how much memory there
// is.
//
//   {"plan": "te", "alias": ["input"], "budget": 85899345920}
//
// A plan gives every buffer of a step its memory. A slot that is taken over hurts somebody if an
// operand of a weight gradient is the shared buffer itself; declared modules say which are, or
// `alias` does for all modules. If neither does, a hazard is possible and no more. The options do
// not make a plan: core/frameworks/assign.h does. Tested by plan_options_test.cpp.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

enum class PlanKind : std::uint8_t {
  Te,          ///< TE's own reuse
  Safe,        ///< capo's: two uses share memory only if one is over before the other begins
  Given,       ///< made by others, and read from a file (CheckOptions::given)
  McoreLocal,  ///< Megatron's: graphs captured in the order in which the first step ran them
};

/// Whether a framework makes the plan as it captures its modules, so that PyTorch's allocator has a
/// say in it.
[[nodiscard]] constexpr bool is_a_frameworks(PlanKind kind) {
  return kind == PlanKind::Te || kind == PlanKind::McoreLocal;
}

/// The extent of one CUDA graph.
enum class Granularity : std::uint8_t {
  PerAction,  ///< it holds one F, B or W of one rank, as TE captures them
  PerStep,    ///< it holds the whole step of a rank
};

/// An operand of a weight gradient is the graph's static buffer (true) or a copy (false).
struct Aliases {
  bool input = false;
  bool grad_output = false;

  friend bool operator==(const Aliases&, const Aliases&) = default;
};

struct PlanOptions {
  static constexpr std::uint64_t kDefaultMaxBuffers = std::uint64_t{1} << 26;
  static constexpr std::uint64_t kDefaultMaxUnaskedBuffers = 300'000;

  std::optional<PlanKind> kind;
  Granularity granularity = Granularity::PerAction;
  std::optional<Aliases> aliases;      ///< they hold for every layer, whatever its module
  std::optional<std::int64_t> budget;  ///< bytes that one rank may take
  /// A hazard that depends on which block PyTorch's allocator hands out is an error, since an order
  /// is accepted only if no permitted execution breaks a rule; else it is a warning.
  bool possible_is_error = true;
  /// If every chunk of the orders is one layer, so many of them make each chunk of the model, which
  /// hands its input gradient on to another rank. Empty: chunks of the orders are the model's. A
  /// rank that says so itself (RankOrder::model_chunks) is not overruled, and Megatron's calls go
  /// by what the schedule says alone: declare_model_chunks() puts this there.
  std::vector<std::int32_t> model_chunks;
  /// A plan that is declared or that a replay asks for may have so many buffers, below 2^32; there
  /// is no verdict on a larger one.
  std::uint64_t max_buffers = kDefaultMaxBuffers;
  /// Under TE's plan, its passes before capture keep all outputs to their end, as they did up to
  /// 2.19; else a backward lets go of those that it reads.
  bool warm_up_keeps_outputs = false;
  /// If no plan is declared, TE's plan is examined only up to this many buffers.
  std::uint64_t max_unasked_buffers = kDefaultMaxUnaskedBuffers;
  /// Each graph also reloads what the graph that was captured behind it reads, as with Megatron's
  /// moe_paged_stash, so that a replay has to follow the capture entry by entry.
  bool paged_stash = false;
  /// If sizes are bytes, every buffer takes a multiple of so many, as engines need it.
  std::int64_t alignment = 1;

  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

/// "te", "safe", "given", "mcore-local".
[[nodiscard]] std::string_view name_of(PlanKind kind);
/// The plan of that name; nullopt for "given", which a file is and nobody asks for by name.
[[nodiscard]] std::optional<PlanKind> plan_named(std::string_view word);

}  // namespace capo
