// What each action of a step leaves of one parameter's gradient: the contract's cell, made into
// writes.
//
//   delay+fuse, B0 B1 W1 W0      B: nothing     W1: adds to main_grad     W0: adds to main_grad
//   vanilla, B0 B1               B0: the product to what it returns, which autograd makes .grad
//                                B1: likewise, which autograd adds to .grad
//
// Autograd behaves as PyTorch's: where .grad is none it takes what it is handed, else it adds. All
// of it is known before anything runs, since orders are fixed: a graph bakes in what is in it
// (`into`), and what autograd does stands beside the graphs (`handed`).
//
// testing/accumulator.h goes through the same cells with sets of microbatches instead of
// numbers; what a driver makes of deposits is compared with it in
// tests/run/setup/deposits_test.cpp.

#pragma once

#include "core/frameworks/te/contract.h"
#include "run/kernels/call.h"

#include <cstdint>
#include <optional>
#include <set>

namespace capo::run {

struct Deposit {
  /// What the product of the action writes.
  enum class Into : std::uint8_t {
    Nothing,  ///< there is none
    Grad,     ///< .grad
    MainGrad,
    Returned,   ///< what backward hands to autograd
    Temporary,  ///< a tensor that nobody keeps
  };
  /// What autograd gets, beside and behind the product.
  enum class Handed : std::uint8_t {
    Nothing,
    Returned,  ///< whatever is in it
    Dummy,     ///< memory without meaning
    Zeros,
    View,            ///< of main_grad
    ReturnedItself,  ///< no copy: the next replay writes what has become .grad
  };
  Into into = Into::Nothing;
  Write write = Write::Overwrite;
  Handed handed = Handed::Nothing;
  bool becomes_grad = false;  ///< .grad was none: what is handed over becomes it

  friend bool operator==(const Deposit&, const Deposit&) = default;
};

/// Whether what a graph returns is copied before autograd gets it.
enum class Clones : std::uint8_t { No, Yes };

/// One parameter through one step, action by action in the order in which they run.
class GradientBook {
 public:
  /// Of a whole backward and of one that leaves its weight gradient to W.
  GradientBook(gradients::Cell whole, gradients::Cell delayed, Clones clones = Clones::Yes)
      : whole_(whole), delayed_(delayed), clones_(clones) {}

  [[nodiscard]] Deposit backward(std::int32_t microbatch, bool delayed);
  [[nodiscard]] Deposit weight_gradient(std::int32_t microbatch);

  /// In the end: whether there is a .grad, whether it is main_grad or what is returned, and the
  /// flag.
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
  bool written_ = false;  ///< main_grad, in this step
  std::set<std::int32_t> queued_;
};

}  // namespace capo::run
