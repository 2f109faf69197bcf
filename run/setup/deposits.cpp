#include "run/setup/deposits.h"

#include "core/base/index.h"

#include <algorithm>

namespace capo::run {

namespace {

// Whether .grad outlives the next replay: it is a copy, or a reader takes it at once, which
// Megatron's DDP does with parameters that have the attribute.
bool is_kept(const ModuleFlags& flags) {
  return flags.clone_param_grads || flags.grad_added_to_main_grad;
}

}  // namespace

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
  // A whole backward sets the flag if no microbatch is owed; TransformerEngine's is ahead of the
  // data.
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
      // While a microbatch is owed, a reader adds the dummy, so it holds zeros then.
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

Deposits::Deposits(const BufferTable& table, const Course& course, const StepLayers& layers,
                   gradients::Contract whose, Execution execution) {
  for (std::uint32_t parameter = 0; parameter < layers.parameters().size(); ++parameter) {
    ParameterCells cells =
        cells_of(layers.layer_of(parameter), layers.parameters()[parameter].role, whose);
    if (execution == Execution::Replayed) {
      cells = {replayed(cells.whole, whose), replayed(cells.delayed, whose)};
    }
    const bool copied = execution == Execution::Eager || whose == gradients::Contract::Sound ||
                        is_kept(layers.layer_of(parameter).flags);
    books_.emplace_back(cells.whole, cells.delayed, copied ? Clones::Yes : Clones::No);
    table_.emplace_back(as_index(table.microbatches()) * 2);
  }
  for (std::size_t r = 0; r < course.work.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    for (const Work& work : course.work[r]) {
      if (work.kind == Kind::Forward) continue;
      const bool weight = work.kind == Kind::BackwardWeight;
      const std::int32_t first = work.layer == kAllLayers ? 0 : work.layer;
      const std::int32_t end =
          work.layer == kAllLayers ? table.layers(rank, work.chunk) : work.layer + 1;
      for (std::int32_t layer = first; layer < end; ++layer) {
        for (const std::uint32_t parameter : layers.at(rank, work.chunk, layer).parameter) {
          if (parameter == kNoParameter) continue;
          GradientBook& book = books_[parameter];
          const auto at = MicrobatchId(work.microbatch).index() * 2 + (weight ? 1 : 0);
          table_[parameter][at] = weight ? book.weight_gradient(work.microbatch)
                                         : book.backward(work.microbatch, work.delayed);
        }
      }
    }
  }
}

bool Deposits::overwrites_main_grad(std::uint32_t parameter) const {
  const std::vector<Deposit>& all = table_[parameter];
  return std::any_of(all.begin(), all.end(), [](const Deposit& deposit) {
    return deposit.into == Deposit::Into::MainGrad && deposit.write == Write::Overwrite;
  });
}

}  // namespace capo::run
