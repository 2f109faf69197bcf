// One weight through one step: what its cell of the contract leads to.
//
//   B0 W0 B1 W1       te, delay:  W1 assigns .grad, so that the reader holds {1}
//                     sound:      W1 adds, {0, 1}
//   B0 reduce W0      te, delay+fuse+attr: the flag says that main_grad is complete, and it is
//   empty
//
// An abstract interpreter: a gradient is the microbatches in it and how often each is, beside what
// else got in. The reader is Megatron's: it adds .grad to main_grad unless the flag is set (or
// zero_out_wgrad asks for it all the same) and clears .grad; then it reads main_grad
// (Megatron-LM d98e8a64dd, core/distributed/distributed_data_parallel.py:560-585).
//
// A step of a weight that somebody overwrites begins with what the last step left in main_grad, as
// nobody zeroes it; every other one with zeros. In TransformerEngine a W takes the oldest entry
// of the queue, whichever microbatch is meant; in the sound contract its own.
//
// Where a module has two weights and frozen_weight is set, a layernorm-mlp is followed by the one
// that is trained, since TransformerEngine's W mixes up the two; every other kind by the frozen
// one. Does not follow values, layouts (main_grad.h) or collectives; nor a hook that adds .grad in
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
    Backward,        ///< B of a microbatch
    WeightGradient,  ///< W of one; where nothing is delayed, nothing happens
    Collect,         ///< the reader takes .grad into main_grad, as a hook does
    Reduce,          ///< it does, and reads main_grad: what it reads is what it holds
    Expire,          ///< the parameter object is gone
  };
  Kind kind;
  std::int32_t microbatch = 0;  ///< from 0, in the order of the forwards; of B and W
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
  Replayed,  ///< from CUDA graphs: no Python of W runs, and no flag of a call is heard
};

enum class Weight : std::uint8_t {
  Whole,
  OfSeveralParameters,  ///< concatenated in each forward
};

struct Setting {
  ModuleKind kind = ModuleKind::Linear;  ///< one that contract() has a cell of
  ModuleFlags flags;
  Whose whose = Whose::Sound;
  Execution execution = Execution::Eager;
  Weight weight = Weight::Whole;
  std::string parameter = "weight";  ///< its name, for messages
};

/// A gradient as what is in it.
struct Holding {
  std::map<std::int32_t, std::int32_t> times;  ///< of each microbatch in it, at least 1
  bool stale = false;                          ///< and what the last step left
  bool garbage = false;                        ///< and a dummy, or memory never written

  friend bool operator==(const Holding&, const Holding&) = default;
};

struct Outcome {
  Holding held;                        ///< by the reader: at the first Reduce, else at the end
  bool read_early = false;             ///< something was queued then
  bool flag_ahead = false;             ///< and the flag said that main_grad was complete
  bool written_late = false;           ///< the gradient was written to after that
  bool mixed_up = false;               ///< a W took the entry of another weight or microbatch
  std::optional<std::string> refused;  ///< why the step broke off; what came after did not happen

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

/// The weight. A setting that contract() has no cell for is a bug of the caller.
[[nodiscard]] Outcome accumulate(const Setting& setting, std::span<const Event> events);
/// The bias; without flags.bias nothing is held.
[[nodiscard]] Outcome accumulate_bias(const Setting& setting, std::span<const Event> events);

}  // namespace capo::gradients
