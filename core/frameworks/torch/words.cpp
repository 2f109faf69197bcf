#include "core/frameworks/torch/words.h"

#include "core/base/assert.h"

namespace capo {

TorchType torch_type(Kind kind, Delay delay) {
  switch (kind) {
    case Kind::Forward:
      return TorchType::Forward;
    case Kind::Backward:
      return delay == Delay::Always ? TorchType::BackwardInput : TorchType::FullBackward;
    case Kind::BackwardInput:
      return TorchType::BackwardInput;
    case Kind::BackwardWeight:
      return TorchType::BackwardWeight;
    case Kind::SendForward:
      return TorchType::SendForward;
    case Kind::ReceiveForward:
      return TorchType::ReceiveForward;
    case Kind::SendBackward:
      return TorchType::SendBackward;
    case Kind::ReceiveBackward:
      return TorchType::ReceiveBackward;
    case Kind::Unshard:
      return TorchType::Unshard;
    case Kind::Reshard:
      return TorchType::Reshard;
    case Kind::ReduceGradient:
      return TorchType::ReduceGradient;
    case Kind::WaitSendForward:
      return TorchType::WaitSendForward;
    case Kind::WaitSendBackward:
      return TorchType::WaitSendBackward;
    case Kind::WaitReduceGradient:
      return TorchType::WaitReduceGradient;
    case Kind::DispatchForward:
    case Kind::CombineForward:
    case Kind::DispatchBackward:
    case Kind::CombineBackward:
    case Kind::Idle:
      break;
  }
  CAPO_ASSERT(false, "PyTorch has no type for an idle slot, a dispatch or a combine");
  return TorchType::Forward;
}

std::string_view torch_word(Kind kind, Delay delay) {
  return kind == Kind::Idle || is_exchange(kind) ? "" : torch_name(torch_type(kind, delay));
}

}  // namespace capo
