#include "run/setup/deposits.h"

namespace capo::run {

using gradients::Cell;
using gradients::Destination;
using gradients::Flagged;
using gradients::Returned;
using gradients::Written;

Deposit GradientBook::backward(std::int32_t microbatch, bool delayed) {
  const Cell& cell = delayed ? delayed_ : whole_;
  Deposit deposit;
  if (cell.written == Written::WithB) {
    if (cell.returned == Returned::Gradient) {
      deposit.into = Deposit::Into::Returned;
    } else {
      write(cell, microbatch, deposit);
    }
  } else if (cell.written == Written::WithW) {
    queued_.insert(microbatch);
    if (cell.flagged == Flagged::AtW) flag_ = false;
  }
  // That of a whole backward says that nothing is owed; TransformerEngine's is ahead of the data.
  if (cell.flagged == Flagged::AtB) flag_ = cell.written != Written::WithB || queued_.empty();
  hand(cell, deposit);
  return deposit;
}

Deposit GradientBook::weight_gradient(std::int32_t microbatch) {
  Deposit deposit;
  if (delayed_.written != Written::WithW) return deposit;
  queued_.erase(microbatch);
  write(delayed_, microbatch, deposit);
  if (delayed_.flagged == Flagged::AtW) flag_ = queued_.empty();
  return deposit;
}

void GradientBook::write(const Cell& cell, std::int32_t microbatch, Deposit& deposit) {
  const auto into = [&](Deposit::Into where, bool adds) {
    deposit.into = where;
    deposit.write = adds ? Write::Add : Write::Overwrite;
    if (where != Deposit::Into::Grad) return;
    has_grad_ = true;
    if (!adds) grad_is_view_ = grad_is_returned_ = false;
  };
  switch (cell.destination) {
    case Destination::Nowhere:
      break;
    case Destination::AddsToGrad:
      into(Deposit::Into::Grad, has_grad_);
      break;
    case Destination::AssignsGrad:
      into(Deposit::Into::Grad, false);
      break;
    case Destination::AssignsGradIfNone:
      if (!has_grad_) into(Deposit::Into::Grad, false);
      break;
    case Destination::AssignsTemporary:
      into(Deposit::Into::Temporary, false);
      break;
    case Destination::AddsToMainGrad:
      into(Deposit::Into::MainGrad, true);
      break;
    case Destination::OverwritesMainGrad:
      into(Deposit::Into::MainGrad, false);
      break;
    case Destination::FirstForwardOverwrites:
      into(Deposit::Into::MainGrad, microbatch != 0);
      break;
    case Destination::FirstWriteOverwrites:
      into(Deposit::Into::MainGrad, written_);
      break;
  }
  written_ = true;
}

void GradientBook::hand(const Cell& cell, Deposit& deposit) {
  switch (cell.returned) {
    case Returned::Nothing:
      return;
    case Returned::Gradient:
    case Returned::Uninitialised:
      deposit.handed =
          clones_ == Clones::Yes ? Deposit::Handed::Returned : Deposit::Handed::ReturnedItself;
      if (!has_grad_) grad_is_returned_ = clones_ == Clones::No;
      break;
    case Returned::Dummy:
    case Returned::SharedDummy:
      // While something is owed a reader adds it, so it is of zeros then.
      deposit.handed = cell.written == Written::WithB && !queued_.empty() ? Deposit::Handed::Zeros
                                                                          : Deposit::Handed::Dummy;
      break;
    case Returned::Zeros:
      deposit.handed = Deposit::Handed::Zeros;
      break;
    case Returned::LiveView:
      deposit.handed = Deposit::Handed::View;
      if (!has_grad_) grad_is_view_ = true;
      break;
  }
  deposit.becomes_grad = !has_grad_;
  has_grad_ = true;
}

}  // namespace capo::run
