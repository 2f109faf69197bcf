// What each action of a short step leaves, cell by cell, written out by hand.
//
// deposits_test.cpp compares all cells in all orders; here are the steps that a reader wants to
// see, and those in which some backwards are whole and some are not, which the accumulator has no
// word for.

#include "core/frameworks/te/contract.h"
#include "run/setup/deposits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using gradients::Cell;
using gradients::Destination;
using gradients::Flagged;
using gradients::Returned;
using gradients::Whose;
using gradients::Written;
using Lines = std::vector<std::string>;

std::string product_of(const Deposit& deposit) {
  const std::string does = deposit.write == Write::Add ? "adds to " : "overwrites ";
  switch (deposit.into) {
    case Deposit::Into::Nothing:
      return "";
    case Deposit::Into::Grad:
      return does + ".grad";
    case Deposit::Into::MainGrad:
      return does + "main_grad";
    case Deposit::Into::Returned:
      return does + "what it returns";
    case Deposit::Into::Temporary:
      return does + "a temporary";
  }
  return "";
}

std::string handed_by(const Deposit& deposit) {
  const std::string becomes = deposit.becomes_grad ? " becomes .grad" : " is added to .grad";
  switch (deposit.handed) {
    case Deposit::Handed::Nothing:
      return "";
    case Deposit::Handed::Returned:
      return "what it returns" + becomes;
    case Deposit::Handed::Dummy:
      return "a dummy" + becomes;
    case Deposit::Handed::Zeros:
      return "zeros" + becomes;
    case Deposit::Handed::View:
      return "a view" + becomes;
    case Deposit::Handed::ReturnedItself:
      return "the returned tensor itself" + becomes;
  }
  return "";
}

struct Action {
  enum class Kind : std::uint8_t { Whole, Half, Weight };
  Kind kind;
  std::int32_t microbatch;
};
constexpr Action whole(std::int32_t microbatch) {
  return {Action::Kind::Whole, microbatch};
}
constexpr Action half(std::int32_t microbatch) {
  return {Action::Kind::Half, microbatch};
}
constexpr Action weight(std::int32_t microbatch) {
  return {Action::Kind::Weight, microbatch};
}

// A line an action: its product, what autograd gets, and the flag where it is set.
Lines words(GradientBook book, const std::vector<Action>& actions) {
  Lines lines;
  for (const auto& [kind, microbatch] : actions) {
    const Deposit deposit = kind == Action::Kind::Weight
                                ? book.weight_gradient(microbatch)
                                : book.backward(microbatch, kind == Action::Kind::Half);
    std::string line = product_of(deposit);
    const std::string handed = handed_by(deposit);
    if (!line.empty() && !handed.empty()) line += ", ";
    line += handed;
    if (line.empty()) line = "nothing";
    if (book.flag()) line += "; done";
    lines.push_back(line);
  }
  return lines;
}

GradientBook book_of(ModuleFlags flags, Whose whose = Whose::Sound,
                     ModuleKind kind = ModuleKind::Linear) {
  flags.delay_wgrad = false;
  const auto whole_cell = gradients::contract_under(kind, flags, whose);
  flags.delay_wgrad = true;
  const auto delayed = gradients::contract_under(kind, flags, whose);
  return {whole_cell.value_or(Cell{}), delayed.value_or(Cell{})};
}

constexpr ModuleFlags kFuse{.fuse_wgrad_accumulation = true};
constexpr ModuleFlags kFuseAttr{.fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true};

TEST(DepositsInWords, PlainBackwardsReturnTheirGradients) {
  EXPECT_EQ(words(book_of({}), {whole(0), whole(1)}),
            (Lines{"overwrites what it returns, what it returns becomes .grad",
                   "overwrites what it returns, what it returns is added to .grad"}));
}

TEST(DepositsInWords, ADelayedGradientIsWrittenByWAndTheSecondAdds) {
  EXPECT_EQ(words(book_of({}), {half(0), half(1), weight(1), weight(0)}),
            (Lines{"nothing", "nothing", "overwrites .grad", "adds to .grad"}));
}

TEST(DepositsInWords, TransformerEnginesWAssignsEachTime) {
  EXPECT_EQ(words(book_of({}, Whose::Te), {half(0), weight(0), half(1), weight(1)}),
            (Lines{"nothing", "overwrites .grad", "nothing", "overwrites .grad"}));
}

TEST(DepositsInWords, TransformerEnginesGroupedLinearReturnsWhatWWillWrite) {
  EXPECT_EQ(words(book_of({}, Whose::Te, ModuleKind::GroupedLinear),
                  {half(0), weight(0), half(1), weight(1)}),
            (Lines{"what it returns becomes .grad", "overwrites .grad",
                   "what it returns is added to .grad", "overwrites .grad"}));
}

TEST(DepositsInWords, AFusedGradientIsAddedToMainGrad) {
  EXPECT_EQ(words(book_of(kFuse), {whole(0), whole(1)}),
            (Lines{"adds to main_grad", "adds to main_grad"}));
  EXPECT_EQ(words(book_of(kFuse), {half(0), half(1), weight(1), weight(0)}),
            (Lines{"nothing", "nothing", "adds to main_grad", "adds to main_grad"}));
}

TEST(DepositsInWords, WithTheAttributeAutogradGetsADummyOnceTheFlagIsSet) {
  EXPECT_EQ(words(book_of(kFuseAttr), {whole(0), whole(1)}),
            (Lines{"adds to main_grad, a dummy becomes .grad; done",
                   "adds to main_grad, a dummy is added to .grad; done"}));
}

// While a W is queued nothing is done, and what autograd gets may be added.
TEST(DepositsInWords, DelayedWithTheAttributeTheFlagIsSetByTheLastW) {
  EXPECT_EQ(words(book_of(kFuseAttr), {half(0), half(1), weight(1), weight(0)}),
            (Lines{"zeros becomes .grad", "zeros is added to .grad", "adds to main_grad",
                   "adds to main_grad; done"}));
  EXPECT_EQ(words(book_of(kFuseAttr), {half(0), weight(0), half(1), weight(1)}),
            (Lines{"zeros becomes .grad", "adds to main_grad; done", "zeros is added to .grad",
                   "adds to main_grad; done"}));
}

TEST(DepositsInWords, TransformerEngineSetsTheFlagAheadOfW) {
  EXPECT_EQ(words(book_of(kFuseAttr, Whose::Te), {half(0), weight(0)}),
            (Lines{"a dummy becomes .grad; done", "adds to main_grad; done"}));
}

TEST(DepositsInWords, WhatIsWrittenFirstOverwritesWhicheverMicrobatchItIs) {
  ModuleFlags flags = kFuse;
  flags.overwrite_main_grad = true;
  EXPECT_EQ(words(book_of(flags), {half(0), half(1), weight(1), weight(0)}),
            (Lines{"nothing", "nothing", "overwrites main_grad", "adds to main_grad"}));
  EXPECT_EQ(words(book_of(flags, Whose::Te), {half(0), half(1), weight(1), weight(0)}),
            (Lines{"nothing", "nothing", "overwrites main_grad", "overwrites main_grad"}));
}

// The erased one is microbatch 1.
TEST(DepositsInWords, TransformerEnginesFirstMicrobatchOverwritesWhenItComes) {
  ModuleFlags flags = kFuse;
  flags.is_first_microbatch = true;
  EXPECT_EQ(words(book_of(flags, Whose::Te), {whole(1), whole(0)}),
            (Lines{"adds to main_grad", "overwrites main_grad"}));
  EXPECT_EQ(words(book_of(flags), {whole(1), whole(0)}),
            (Lines{"overwrites main_grad", "adds to main_grad"}));
}

TEST(DepositsInWords, AViewOfMainGradBecomesGrad) {
  ModuleFlags flags = kFuse;
  flags.overwrite_main_grad = true;
  GradientBook book = book_of(flags, Whose::Te, ModuleKind::BasicLinearOp);
  EXPECT_EQ(words(book, {whole(0), whole(1)}),
            (Lines{"overwrites main_grad, a view becomes .grad",
                   "overwrites main_grad, a view is added to .grad"}));
  EXPECT_FALSE(book.has_grad());
  static_cast<void>(book.backward(0, false));
  EXPECT_TRUE(book.has_grad());
  EXPECT_TRUE(book.grad_is_view());
}

// The second replay writes what is .grad, and it is added to itself.
TEST(DepositsInWords, WhatIsNotCopiedBecomesGradItself) {
  const ModuleFlags flags;
  const auto cell = gradients::contract_under(ModuleKind::Linear, flags, Whose::Te);
  ASSERT_TRUE(cell);
  GradientBook book(*cell, Cell{}, Clones::No);
  EXPECT_EQ(words(book, {whole(0), whole(1)}),
            (Lines{"overwrites what it returns, the returned tensor itself becomes .grad",
                   "overwrites what it returns, the returned tensor itself is added to .grad"}));
  EXPECT_FALSE(book.grad_is_returned());
  static_cast<void>(book.backward(0, false));
  EXPECT_TRUE(book.grad_is_returned());
  GradientBook copying(*cell, Cell{});
  static_cast<void>(copying.backward(0, false));
  EXPECT_FALSE(copying.grad_is_returned());
}

TEST(DepositsInWords, ABiasOfTransformerEngineIsAssignedOnlyOnce) {
  const ModuleFlags flags{.delay_wgrad = true, .bias = true};
  const auto cell = gradients::bias_contract(ModuleKind::Linear, flags, Whose::Te);
  ASSERT_TRUE(cell);
  EXPECT_EQ(words({*cell, *cell}, {half(0), weight(0), half(1), weight(1)}),
            (Lines{"nothing", "overwrites .grad", "nothing", "nothing"}));
}

TEST(DepositsInWords, AGradientOfATemporaryIsKeptByNobody) {
  const Cell cell{Returned::Nothing, Destination::AssignsTemporary, Written::WithW, Flagged::Never};
  GradientBook book(cell, cell);
  EXPECT_EQ(words(book, {half(0), weight(0)}), (Lines{"nothing", "overwrites a temporary"}));
  static_cast<void>(book.weight_gradient(0));
  EXPECT_FALSE(book.has_grad());
}

// A chunk in which microbatch 0 has a whole backward and microbatch 1 has two halves.
TEST(DepositsInWords, WholeAndSplitBackwardsOfOneChunkAddUp) {
  EXPECT_EQ(words(book_of({}), {whole(0), half(1), weight(1)}),
            (Lines{"overwrites what it returns, what it returns becomes .grad", "nothing",
                   "adds to .grad"}));
  EXPECT_EQ(words(book_of({}), {half(1), weight(1), whole(0)}),
            (Lines{"nothing", "overwrites .grad",
                   "overwrites what it returns, what it returns is added to .grad"}));
}

TEST(DepositsInWords, AnOverwriteIsTheFirstOfWholeAndSplitTogether) {
  ModuleFlags flags = kFuse;
  flags.overwrite_main_grad = true;
  EXPECT_EQ(words(book_of(flags), {half(1), whole(0), weight(1)}),
            (Lines{"nothing", "overwrites main_grad", "adds to main_grad"}));
  EXPECT_EQ(words(book_of(flags), {half(1), weight(1), whole(0)}),
            (Lines{"nothing", "overwrites main_grad", "adds to main_grad"}));
}

// Else a reader behind B0 took an incomplete main_grad for a complete one.
TEST(DepositsInWords, AWholeBackwardBesideAQueuedOneDoesNotSayThatAllIsDone) {
  EXPECT_EQ(words(book_of(kFuseAttr), {half(1), whole(0), weight(1)}),
            (Lines{"zeros becomes .grad", "adds to main_grad, zeros is added to .grad",
                   "adds to main_grad; done"}));
}

}  // namespace
}  // namespace capo::run
