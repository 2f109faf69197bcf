// Deposits: what each action of a step leaves of each parameter's gradient, which is the cell of
// the contract made into writes.
//
//   delay+fuse, B0 B1 W1 W0      B: nothing     W1: adds to main_grad     W0: adds to main_grad
//   vanilla, B0 B1               B0: the product to what it returns, which autograd makes .grad
//                                B1: the same again, which autograd adds to .grad
//
// Autograd behaves as PyTorch's: if .grad is none it takes what it is handed, otherwise it adds.
// All of it is known before anything runs, since orders are fixed: a graph bakes in what is in it
// (`into`), and what autograd does stands beside the graphs (`handed`). A GradientBook follows one
// parameter; Deposits walks one book for each parameter in the order in which the actions run.
//
// testing/accumulator.h goes through the same cells with sets of microbatches instead of numbers.
// Tested by deposits_test.cpp, which compares with it what is made of deposits, by
// deposits_in_words_test.cpp and contract_runs_test.cpp.

#pragma once

#include "core/frameworks/assign.h"
#include "core/frameworks/te/contract.h"
#include "core/plan/buffers.h"
#include "run/kernels/call.h"
#include "run/setup/step_layers.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace capo::run {

struct Deposit {
  /// The tensor that the product of the action is written to.
  enum class Into : std::uint8_t {
    Nothing,  ///< the action has no product
    Grad,     ///< .grad
    MainGrad,
    Returned,   ///< the tensor that backward hands to autograd
    Temporary,  ///< a tensor that nobody keeps
  };
  /// The tensor that autograd gets after the product.
  enum class Handed : std::uint8_t {
    Nothing,
    Returned,  ///< a copy of the tensor that backward returns
    Dummy,     ///< memory without meaning
    Zeros,
    View,            ///< a view of main_grad
    ReturnedItself,  ///< no copy, so that the next replay writes what has become .grad
  };
  Into into = Into::Nothing;
  Write write = Write::Overwrite;
  Handed handed = Handed::Nothing;
  bool becomes_grad = false;  ///< .grad was none, so the tensor that is handed over becomes it

  friend bool operator==(const Deposit&, const Deposit&) = default;
};

/// Whether the tensor that a graph returns is copied before autograd gets it.
enum class Clones : std::uint8_t { No, Yes };

/// One parameter through one step, action by action in the order in which they run.
class GradientBook {
 public:
  /// `whole` is the contract of a backward that also makes the weight gradient, `delayed` that of
  /// one that leaves it to W.
  GradientBook(gradients::Cell whole, gradients::Cell delayed, Clones clones = Clones::Yes)
      : whole_(whole), delayed_(delayed), clones_(clones) {}

  [[nodiscard]] Deposit backward(std::int32_t microbatch, bool delayed);
  [[nodiscard]] Deposit weight_gradient(std::int32_t microbatch);

  /// The state after the actions so far: whether there is a .grad, whether it is a view of
  /// main_grad or the returned tensor itself, and the value of grad_added_to_main_grad.
  [[nodiscard]] bool has_grad() const { return has_grad_; }
  [[nodiscard]] bool grad_is_view() const { return grad_is_view_; }
  [[nodiscard]] bool grad_is_returned() const { return grad_is_returned_; }
  [[nodiscard]] bool flag() const { return flag_; }

 private:
  void write(const gradients::Cell& cell, std::int32_t microbatch, Deposit& deposit);
  void hand(const gradients::Cell& cell, Deposit& deposit);

  gradients::Cell whole_;
  gradients::Cell delayed_;
  Clones clones_;
  bool has_grad_ = false;
  bool grad_is_view_ = false;
  bool grad_is_returned_ = false;
  bool flag_ = false;
  bool written_ = false;  ///< whether an action of this step has written main_grad
  std::set<std::int32_t> queued_;
};

/// The deposits of every action of a step, and the books at its end.
class Deposits {
 public:
  enum class Execution : std::uint8_t { Eager, Replayed };

  /// The actions run in the order of the course.
  Deposits(const BufferTable& table, const Course& course, const StepLayers& layers,
           gradients::Contract whose, Execution execution);

  [[nodiscard]] const Deposit& of(std::uint32_t parameter, std::int32_t microbatch,
                                  bool weight_action) const {
    const auto m = MicrobatchId(microbatch).index();
    return table_[parameter][m * 2 + (weight_action ? 1 : 0)];
  }
  /// Whether some action overwrites main_grad, so that it need not be zeroed before the step.
  [[nodiscard]] bool overwrites_main_grad(std::uint32_t parameter) const;
  [[nodiscard]] const GradientBook& book(std::uint32_t parameter) const {
    return books_[parameter];
  }

 private:
  std::vector<GradientBook> books_;          // by parameter; in the state at the end of the step
  std::vector<std::vector<Deposit>> table_;  // by parameter; two a microbatch: of B, of W
};

}  // namespace capo::run
