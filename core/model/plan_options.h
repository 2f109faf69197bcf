// What is declared of a plan: whose, what aliases what, and how much memory it may take.
//
// A plan gives every buffer of a step its memory. Whether a slot that is taken over hurts anybody
// depends on which operands of a weight gradient are the shared buffers themselves; declared
// modules say so, or `alias` does for all of them. Undeclared, a hazard is possible and no more.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

enum class PlanKind : std::uint8_t {
  Te,    ///< TransformerEngine's own reuse
  Safe,  ///< capo's: memory is shared only where the one use is over before the other begins
};

/// What one CUDA graph holds.
enum class Granularity : std::uint8_t {
  PerAction,  ///< one F, B or W of one rank, as TE captures them
  PerStep,    ///< the whole step of a rank
};

/// Which operands of a weight gradient are the graph's static buffers, not copies.
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
  std::optional<Aliases> aliases;      ///< of every layer, whatever its module
  std::optional<std::int64_t> budget;  ///< bytes of one rank
  /// Where every chunk of the orders is one layer: how many of them make each chunk of the model.
  /// A chunk of the model hands its input gradient on to another rank.
  std::vector<std::int32_t> model_chunks;
  /// Of a plan that is declared (beyond it no verdict) or that a replay asks for; below 2^32.
  std::uint64_t max_buffers = kDefaultMaxBuffers;
  /// Of TransformerEngine's, where nobody asks: beyond it nobody looks what it could hurt.
  std::uint64_t max_unasked_buffers = kDefaultMaxUnaskedBuffers;
  /// Every buffer takes a multiple of so many bytes, where sizes are bytes: engines need it.
  std::int64_t alignment = 1;

  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

/// "te", "safe".
[[nodiscard]] std::string_view name_of(PlanKind kind);
[[nodiscard]] std::optional<PlanKind> plan_named(std::string_view word);

}  // namespace capo
