// Deposits carried out with sets of microbatches for numbers, and read as Megatron's reader does:
// what is held then is what testing/accumulator.h says of the same cell and the same order.
//
// Both start from the contract's cells, and that is all they share: the accumulator goes through
// events, a book only says what each action does to which memory. Every prefix of every order is
// compared, so that the flag is looked at whenever a reader might come.

#include "run/setup/deposits.h"
#include "run/setup/step_layers.h"
#include "testing/accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using gradients::Cell;
using gradients::Contract;
using gradients::Event;
using gradients::Execution;
using gradients::GradientMode;
using gradients::Holding;

constexpr std::int32_t kMicrobatches = 3;

void add(Holding& to, const Holding& from) {
  for (const auto& [microbatch, times] : from.times) to.times[microbatch] += times;
  to.stale = to.stale || from.stale;
  to.garbage = to.garbage || from.garbage;
}

// The memory of one parameter's gradients, with sets of microbatches for what is in it.
class Memory {
 public:
  explicit Memory(bool main_grad_is_stale) { main_grad_.stale = main_grad_is_stale; }

  void take(const Deposit& deposit, std::int32_t microbatch) {
    if (Holding* to = target(deposit)) {
      if (deposit.write == Write::Overwrite) *to = {};
      add(*to, {.times = {{microbatch, 1}}});
    }
    autograd(deposit);
  }

  [[nodiscard]] bool has_grad() const { return grad_.has_value() || grad_is_view_; }
  [[nodiscard]] bool grad_is_view() const { return grad_is_view_; }

  // The gradient that Megatron finds; the memory stays as it is.
  [[nodiscard]] Holding read(bool flag, bool zero_out_wgrad) const {
    Holding held = main_grad_;
    if (flag && !zero_out_wgrad) return held;
    if (grad_is_view_) add(held, main_grad_);
    if (grad_) add(held, *grad_);
    return held;
  }

 private:
  Holding* target(const Deposit& deposit) {
    switch (deposit.into) {
      case Deposit::Into::Nothing:
        return nullptr;
      case Deposit::Into::Grad:
        EXPECT_TRUE(grad_ || deposit.write == Write::Overwrite) << "adds to a .grad that is none";
        if (!grad_) grad_.emplace();
        return &*grad_;
      case Deposit::Into::MainGrad:
        return &main_grad_;
      case Deposit::Into::Returned:
        EXPECT_EQ(deposit.write, Write::Overwrite) << "adds to what the last backward returned";
        return &returned_;
      case Deposit::Into::Temporary:
        return &temporary_;
    }
    return nullptr;
  }

  void autograd(const Deposit& deposit) {
    if (deposit.handed == Deposit::Handed::Nothing) return;
    EXPECT_EQ(deposit.becomes_grad, !has_grad());
    if (deposit.handed == Deposit::Handed::View) {
      // One that is added to itself.
      if (grad_is_view_) add(main_grad_, Holding(main_grad_));
      grad_is_view_ = true;
      return;
    }
    if (!grad_) grad_.emplace();
    if (deposit.handed == Deposit::Handed::Returned) add(*grad_, returned_);
    if (deposit.handed == Deposit::Handed::Dummy) add(*grad_, {.garbage = true});
    returned_ = {.garbage = true};
  }

  std::optional<Holding> grad_;
  bool grad_is_view_ = false;
  Holding main_grad_;
  Holding returned_{.garbage = true};
  Holding temporary_;
};

using Events = std::vector<Event>;

// All orders of B and W in which each W comes behind its B, or all orders of B.
std::vector<Events> orders(bool delayed) {
  std::vector<Events> all;
  std::vector<std::int32_t> slots;
  for (std::int32_t m = 0; m < kMicrobatches; ++m) {
    slots.insert(slots.end(), delayed ? 2 : 1, m);
  }
  do {
    Events events;
    std::vector<bool> seen(kMicrobatches, false);
    for (const std::int32_t m : slots) {
      const auto at = static_cast<std::size_t>(m);
      events.push_back(seen[at] ? gradients::weight_gradient(m) : gradients::backward(m));
      seen[at] = true;
    }
    all.push_back(events);
  } while (std::next_permutation(slots.begin(), slots.end()));
  return all;
}

ModuleFlags flags_of(GradientMode mode) {
  ModuleFlags flags;
  flags.delay_wgrad = mode == GradientMode::Delay || mode == GradientMode::DelayFuse ||
                      mode == GradientMode::DelayFuseAttr;
  flags.fuse_wgrad_accumulation = mode != GradientMode::Vanilla && mode != GradientMode::Delay;
  flags.grad_added_to_main_grad =
      mode == GradientMode::FuseAttr || mode == GradientMode::DelayFuseAttr;
  return flags;
}

// The mode with every combination of the flags that a step may set.
std::vector<ModuleFlags> variants(GradientMode mode) {
  std::vector<ModuleFlags> all;
  for (unsigned bits = 0; bits < 8; ++bits) {
    ModuleFlags flags = flags_of(mode);
    flags.overwrite_main_grad = (bits & 1U) != 0;
    flags.is_first_microbatch = (bits & 2U) != 0;
    flags.zero_out_wgrad = (bits & 4U) != 0;
    all.push_back(flags);
  }
  return all;
}

enum class Of : std::uint8_t { Weight, Bias };

struct Case {
  ModuleKind kind;
  ModuleFlags flags;
  Contract whose;
  Execution execution = Execution::Eager;
  Of of = Of::Weight;

  [[nodiscard]] Cell cell(bool delayed) const {
    ModuleFlags changed = flags;
    changed.delay_wgrad = delayed;
    const auto cell = of == Of::Weight ? gradients::contract_under(kind, changed, whose)
                                       : gradients::bias_contract(kind, changed, whose);
    const Cell found = cell.value_or(Cell{});
    return execution == Execution::Replayed ? replayed(found, whose) : found;
  }
  [[nodiscard]] gradients::Outcome by_accumulator(const Events& events) const {
    const gradients::Setting setting{
        .kind = kind, .flags = flags, .whose = whose, .execution = execution};
    return of == Of::Weight ? gradients::accumulate(setting, events)
                            : gradients::accumulate_bias(setting, events);
  }
  [[nodiscard]] std::string name() const {
    std::string text(name_of(kind));
    text += whose == Contract::Sound ? " sound " : " te ";
    text += gradients::name_of(gradients::gradient_mode_of(flags));
    if (flags.overwrite_main_grad) text += " overwrite";
    if (flags.is_first_microbatch) text += " first";
    if (flags.zero_out_wgrad) text += " zeros";
    if (flags.frozen_weight) text += " frozen";
    return text;
  }
};

std::string text_of(const Events& events) {
  std::string text;
  for (const Event& event : events) {
    text += event.kind == Event::Kind::Backward ? " B" : " W";
    text += std::to_string(event.microbatch);
  }
  return text;
}

// How many prefixes were compared: not those that break off, nor those in which TransformerEngine's
// W took the entry of another microbatch, which a graph of its own cannot.
std::size_t compare(const Case& of) {
  std::size_t compared = 0;
  const bool delayed = of.flags.delay_wgrad;
  for (const Events& order : orders(delayed)) {
    const Cell cell = of.cell(delayed);
    GradientBook book(of.cell(false), delayed ? cell : Cell{});
    const bool stale = is_main_grad(cell.destination) &&
                       (of.flags.overwrite_main_grad || of.flags.is_first_microbatch);
    Memory memory(stale);
    for (std::size_t count = 1; count <= order.size(); ++count) {
      const Event& event = order[count - 1];
      memory.take(event.kind == Event::Kind::Backward ? book.backward(event.microbatch, delayed)
                                                      : book.weight_gradient(event.microbatch),
                  event.microbatch);
      const Events prefix(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
      const gradients::Outcome expected = of.by_accumulator(prefix);
      if (expected.refused || expected.mixed_up) break;
      EXPECT_EQ(memory.has_grad(), book.has_grad()) << of.name() << text_of(prefix);
      EXPECT_EQ(memory.grad_is_view(), book.grad_is_view()) << of.name() << text_of(prefix);
      EXPECT_EQ(memory.read(book.flag(), of.flags.zero_out_wgrad), expected.held)
          << of.name() << text_of(prefix);
      // Zeros may be added whatever the flag says; a reader that trusts it may not come early.
      EXPECT_EQ(expected.read_early && book.flag(), expected.flag_ahead)
          << of.name() << text_of(prefix);
      ++compared;
    }
  }
  return compared;
}

TEST(Deposits, ThereAreNinetyOrdersOfThreeDelayedMicrobatches) {
  EXPECT_EQ(orders(true).size(), 90U);
  EXPECT_EQ(orders(false).size(), 6U);
}

// Every cell of both contracts.
template <typename Visit>
void for_each_cell(Visit visit) {
  for (const Contract whose : {Contract::Sound, Contract::Te}) {
    for (const ModuleKind kind : gradients::kColumns) {
      for (const GradientMode mode : gradients::kGradientModes) {
        visit(whose, kind, mode);
      }
    }
  }
}

TEST(Deposits, OfEveryCellAndItsReplaysTheyMakeWhatTheAccumulatorSays) {
  for_each_cell([](Contract whose, ModuleKind kind, GradientMode mode) {
    for (const ModuleFlags& flags : variants(mode)) {
      Case of{.kind = kind, .flags = flags, .whose = whose};
      const std::size_t compared = compare(of);
      if (whose == Contract::Te && flags.delay_wgrad) {
        EXPECT_GE(compared, 180U) << of.name();  // 30 orders are first in, first out
      } else {
        EXPECT_EQ(compared, flags.delay_wgrad ? 540U : 18U) << of.name();
      }
      of.execution = Execution::Replayed;
      EXPECT_GT(compare(of), 0U) << of.name();
    }
  });
}

TEST(Deposits, OfABasicOperationThatReturnsAViewTheyMakeWhatTheAccumulatorSays) {
  for (const GradientMode mode :
       {GradientMode::Vanilla, GradientMode::Fuse, GradientMode::FuseAttr}) {
    for (const ModuleFlags& flags : variants(mode)) {
      for (const Contract whose : {Contract::Sound, Contract::Te}) {
        EXPECT_EQ(compare({.kind = ModuleKind::BasicLinearOp, .flags = flags, .whose = whose}),
                  18U);
      }
    }
  }
}

TEST(Deposits, OfAFrozenWeightThereAreNone) {
  for (const ModuleKind kind : gradients::kColumns) {
    if (kind == ModuleKind::LayerNormMlp) continue;  // of two weights, followed by the trained one
    for (const GradientMode mode : gradients::kGradientModes) {
      ModuleFlags flags = flags_of(mode);
      flags.frozen_weight = true;
      const Case of{.kind = kind, .flags = flags, .whose = Contract::Te};
      GradientBook book(of.cell(false), of.cell(true));
      EXPECT_EQ(book.backward(0, flags.delay_wgrad), Deposit{});
      EXPECT_EQ(book.weight_gradient(0), Deposit{});
      EXPECT_FALSE(book.has_grad());
      EXPECT_FALSE(book.flag());
    }
  }
}

TEST(Deposits, OfBiasesTheyMakeWhatTheAccumulatorSays) {
  for_each_cell([](Contract whose, ModuleKind kind, GradientMode mode) {
    ModuleFlags flags = flags_of(mode);
    flags.bias = true;
    EXPECT_GT(compare({.kind = kind, .flags = flags, .whose = whose, .of = Of::Bias}), 0U);
  });
}

}  // namespace
}  // namespace capo::run
