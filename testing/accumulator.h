// A second opinion on gradients for tests: it follows one weight through one step and says what its
// cell of the contract leads to. tests/run/setup/deposits_test.cpp compares the memory of a
// run with it; the product does not use it.
//
//   B0 W0 B1 W1       te, delay:  W1 assigns .grad, so that the reader holds {1}
//                     sound:      W1 adds, {0, 1}
//   B0 reduce W0      te, delay+fuse+attr: the flag says that main_grad is complete, and it is
//   empty
//
// It is an abstract interpreter: a gradient is the microbatches in it, how often each is, and
// whether stale or foreign values got in. The reader is Megatron's: it adds .grad to main_grad
// unless the flag is set (or zero_out_wgrad asks for it all the same) and clears .grad; then it
// reads main_grad (Megatron-LM d98e8a64dd, core/distributed/distributed_data_parallel.py:560-585).
//
// A step of a weight that is overwritten begins with the last step's main_grad, which is not
// zeroed; every other step begins with zeros. In TransformerEngine a W takes the oldest entry of
// the queue, whichever microbatch is meant; in the sound contract its own.
//
// If a module has two weights and frozen_weight is set, a layernorm-mlp is followed by the one that
// is trained, since TransformerEngine's W mixes up the two; every other kind by the frozen one. It
// does not follow values, layouts (main_grad.h) or collectives, nor a hook that adds .grad in
// place. Tested by accumulator_test.cpp.

#pragma once

#include "core/frameworks/te/contract.h"
#include "core/model/model.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace capo::gradients {

struct Event {
  enum class Kind : std::uint8_t {
    Backward,        ///< a microbatch's B runs
    WeightGradient,  ///< its W runs; nothing happens if it is not delayed
    Collect,         ///< the reader adds .grad to main_grad, as a hook does
    Reduce,          ///< the reader adds .grad and reads main_grad, which is the outcome
    Expire,          ///< the parameter object is gone
  };
  Kind kind;
  std::int32_t microbatch = 0;  ///< counts from 0 in the order of the forwards; used by B and W
};

[[nodiscard]] inline Event backward(std::int32_t microbatch) {
  return {Event::Kind::Backward, microbatch};
}
[[nodiscard]] inline Event weight_gradient(std::int32_t microbatch) {
  return {Event::Kind::WeightGradient, microbatch};
}
inline constexpr Event kCollect{Event::Kind::Collect};
inline constexpr Event kReduce{Event::Kind::Reduce};
inline constexpr Event kExpire{Event::Kind::Expire};

enum class Execution : std::uint8_t {
  Eager,
  Replayed,  ///< CUDA graphs replay it: no Python of W runs, and the flags of a call have no effect
};

enum class Weight : std::uint8_t {
  Whole,
  OfSeveralParameters,  ///< each forward concatenates them
};

struct Setting {
  ModuleKind kind = ModuleKind::Linear;  ///< contract() has a cell for this kind
  ModuleFlags flags;
  Contract whose = Contract::Sound;
  Execution execution = Execution::Eager;
  Weight weight = Weight::Whole;
  std::string parameter = "weight";  ///< its name, for messages
};

/// The contents of a gradient.
struct Holding {
  /// Each microbatch comes so many times, at least once.
  std::map<std::int32_t, std::int32_t> times;
  bool stale = false;    ///< the last step's gradient got in
  bool garbage = false;  ///< a dummy got in, or memory that was never written

  friend bool operator==(const Holding&, const Holding&) = default;
};

struct Outcome {
  Holding held;               ///< the reader sees this at the first Reduce, else at the end
  bool read_early = false;    ///< a weight gradient was still queued when it was read
  bool flag_ahead = false;    ///< the flag said then that main_grad was complete
  bool written_late = false;  ///< the gradient was written after it was read
  bool mixed_up = false;      ///< a W took the entry of another weight or microbatch
  std::optional<std::string> refused;  ///< says why the step broke off; later events did not happen

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// Follows the weight. Precondition: contract() has a cell for the setting.
[[nodiscard]] Outcome accumulate(const Setting& setting, std::span<const Event> events);
/// Follows the bias; without flags.bias the outcome is empty.
[[nodiscard]] Outcome accumulate_bias(const Setting& setting, std::span<const Event> events);

}  // namespace capo::gradients
