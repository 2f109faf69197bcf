#include <capo/core/order/torch_words.h>

namespace capo {

std::string_view torch_word(Kind kind, Delay delay) {
  switch (kind) {
    case Kind::Forward:
      return "F";
    case Kind::Backward:
      return delay == Delay::Always ? "I" : "B";
    case Kind::BackwardInput:
      return "I";
    case Kind::BackwardWeight:
      return "W";
    case Kind::SendForward:
      return "SEND_F";
    case Kind::ReceiveForward:
      return "RECV_F";
    case Kind::SendBackward:
      return "SEND_B";
    case Kind::ReceiveBackward:
      return "RECV_B";
    case Kind::Unshard:
      return "UNSHARD";
    case Kind::Reshard:
      return "RESHARD";
    case Kind::ReduceGradient:
      return "REDUCE_GRAD";
    case Kind::Idle:
      break;
  }
  return "";
}

}  // namespace capo
