// The deposits of each action of a short step, written out by hand.
//
// deposits_test.cpp compares all cells in all orders; here are the steps that a reader wants to
// see, and those in which some backwards are whole and some are not, which the accumulator has no
// word for.

#include "core/frameworks/te/contract.h"
#include "run/setup/deposits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using gradients::Cell;
using gradients::Contract;
using gradients::Destination;
using gradients::Flagged;
using gradients::Returned;
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

// A line an action: its product, what autograd gets, and the flag where it is set. "B1" is a whole
// backward of microbatch 1, "I1 W1" are its halves.
Lines words(GradientBook book, const std::string& actions) {
  Lines lines;
  std::istringstream in(actions);
  for (std::string action; in >> action;) {
    const std::int32_t microbatch = action[1] - '0';
    const Deposit deposit = action[0] == 'W' ? book.weight_gradient(microbatch)
                                             : book.backward(microbatch, action[0] == 'I');
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

GradientBook book_of(ModuleFlags flags, Contract whose = Contract::Sound,
                     ModuleKind kind = ModuleKind::Linear) {
  flags.delay_wgrad = false;
  const auto whole_cell = gradients::contract_under(kind, flags, whose);
  flags.delay_wgrad = true;
  const auto delayed = gradients::contract_under(kind, flags, whose);
  return {whole_cell.value_or(Cell{}), delayed.value_or(Cell{})};
}

constexpr ModuleFlags kPlain;
constexpr ModuleFlags kFuse{.fuse_wgrad_accumulation = true};
constexpr ModuleFlags kFuseAttr{.fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true};
constexpr ModuleFlags kOverwrite{.fuse_wgrad_accumulation = true, .overwrite_main_grad = true};
constexpr ModuleFlags kFirst{.fuse_wgrad_accumulation = true, .is_first_microbatch = true};

struct Step {
  const char* what;
  GradientBook book;
  const char* actions;
  Lines lines;
};

TEST(DepositsInWords, OfShortSteps) {
  const std::string returns = "overwrites what it returns, what it returns";
  const std::vector<Step> steps{
      {"plain backwards return their gradients",
       book_of(kPlain),
       "B0 B1",
       {returns + " becomes .grad", returns + " is added to .grad"}},
      {"a delayed gradient is written by W, and the second adds",
       book_of(kPlain),
       "I0 I1 W1 W0",
       {"nothing", "nothing", "overwrites .grad", "adds to .grad"}},
      {"TransformerEngine's W assigns each time",
       book_of(kPlain, Contract::Te),
       "I0 W0 I1 W1",
       {"nothing", "overwrites .grad", "nothing", "overwrites .grad"}},
      {"TransformerEngine's grouped linear returns what W will write",
       book_of(kPlain, Contract::Te, ModuleKind::GroupedLinear),
       "I0 W0 I1 W1",
       {"what it returns becomes .grad", "overwrites .grad", "what it returns is added to .grad",
        "overwrites .grad"}},
      {"a fused gradient is added to main_grad",
       book_of(kFuse),
       "B0 B1",
       {"adds to main_grad", "adds to main_grad"}},
      {"also by W",
       book_of(kFuse),
       "I0 I1 W1 W0",
       {"nothing", "nothing", "adds to main_grad", "adds to main_grad"}},
      {"with the attribute autograd gets a dummy once the flag is set",
       book_of(kFuseAttr),
       "B0 B1",
       {"adds to main_grad, a dummy becomes .grad; done",
        "adds to main_grad, a dummy is added to .grad; done"}},
      // While a W is queued nothing is done, and the tensor that autograd gets may be added.
      {"delayed, the flag is set by the last W",
       book_of(kFuseAttr),
       "I0 I1 W1 W0",
       {"zeros becomes .grad", "zeros is added to .grad", "adds to main_grad",
        "adds to main_grad; done"}},
      {"or by each that leaves none queued",
       book_of(kFuseAttr),
       "I0 W0 I1 W1",
       {"zeros becomes .grad", "adds to main_grad; done", "zeros is added to .grad",
        "adds to main_grad; done"}},
      {"TransformerEngine sets the flag ahead of W",
       book_of(kFuseAttr, Contract::Te),
       "I0 W0",
       {"a dummy becomes .grad; done", "adds to main_grad; done"}},
      {"the first write overwrites, whichever microbatch it is",
       book_of(kOverwrite),
       "I0 I1 W1 W0",
       {"nothing", "nothing", "overwrites main_grad", "adds to main_grad"}},
      {"TransformerEngine's overwrites each time",
       book_of(kOverwrite, Contract::Te),
       "I0 I1 W1 W0",
       {"nothing", "nothing", "overwrites main_grad", "overwrites main_grad"}},
      // It erases microbatch 1.
      {"TransformerEngine's first microbatch overwrites when it comes",
       book_of(kFirst, Contract::Te),
       "B1 B0",
       {"adds to main_grad", "overwrites main_grad"}},
      {"the sound one overwrites with the first write",
       book_of(kFirst),
       "B1 B0",
       {"overwrites main_grad", "adds to main_grad"}},
      // From here on microbatch 0 has a whole backward and microbatch 1 has two halves.
      {"whole and split backwards of one chunk add up",
       book_of(kPlain),
       "B0 I1 W1",
       {returns + " becomes .grad", "nothing", "adds to .grad"}},
      {"in whatever order",
       book_of(kPlain),
       "I1 W1 B0",
       {"nothing", "overwrites .grad", returns + " is added to .grad"}},
      {"an overwrite is the first of whole and split together",
       book_of(kOverwrite),
       "I1 B0 W1",
       {"nothing", "overwrites main_grad", "adds to main_grad"}},
      {"also if that is a W",
       book_of(kOverwrite),
       "I1 W1 B0",
       {"nothing", "overwrites main_grad", "adds to main_grad"}},
      // Otherwise a reader after B0 would take an incomplete main_grad for a complete one.
      {"a whole backward beside a queued one does not say that all is done",
       book_of(kFuseAttr),
       "I1 B0 W1",
       {"zeros becomes .grad", "adds to main_grad, zeros is added to .grad",
        "adds to main_grad; done"}},
  };
  for (const Step& step : steps) EXPECT_EQ(words(step.book, step.actions), step.lines) << step.what;
}

TEST(DepositsInWords, AViewOfMainGradBecomesGrad) {
  ModuleFlags flags = kFuse;
  flags.overwrite_main_grad = true;
  GradientBook book = book_of(flags, Contract::Te, ModuleKind::BasicLinearOp);
  EXPECT_EQ(words(book, "B0 B1"), (Lines{"overwrites main_grad, a view becomes .grad",
                                         "overwrites main_grad, a view is added to .grad"}));
  EXPECT_FALSE(book.has_grad());
  static_cast<void>(book.backward(0, false));
  EXPECT_TRUE(book.has_grad());
  EXPECT_TRUE(book.grad_is_view());
}

// The second replay writes what is .grad, and it is added to itself.
TEST(DepositsInWords, WhatIsNotCopiedBecomesGradItself) {
  const ModuleFlags flags;
  const auto cell = gradients::contract_under(ModuleKind::Linear, flags, Contract::Te);
  ASSERT_TRUE(cell);
  GradientBook book(*cell, Cell{}, Clones::No);
  EXPECT_EQ(words(book, "B0 B1"),
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
  const auto cell = gradients::bias_contract(ModuleKind::Linear, flags, Contract::Te);
  ASSERT_TRUE(cell);
  EXPECT_EQ(words({*cell, *cell}, "I0 W0 I1 W1"),
            (Lines{"nothing", "overwrites .grad", "nothing", "nothing"}));
}

TEST(DepositsInWords, AGradientOfATemporaryIsKeptByNobody) {
  const Cell cell{Returned::Nothing, Destination::AssignsTemporary, Written::WithW, Flagged::Never};
  GradientBook book(cell, cell);
  EXPECT_EQ(words(book, "I0 W0"), (Lines{"nothing", "overwrites a temporary"}));
  static_cast<void>(book.weight_gradient(0));
  EXPECT_FALSE(book.has_grad());
}

}  // namespace
}  // namespace capo::run
