// What does not fit among the transfers and collectives of a task graph. Found where the graph is
// built, said by the rules in core/rules/transfers.cpp and deadlock.cpp.

#pragma once

#include "core/graph/task_graph.h"

#include <cstdint>

namespace capo {

struct TransferFault {
  enum class Kind : std::uint8_t {
    Repeated,         ///< the same transfer again; `other` is the first
    Nowhere,          ///< no rank, or this very rank, holds the stage at the other end
    SendWithout,      ///< nobody receives it
    ReceiveWithout,   ///< nobody sends it
    NotReceived,      ///< a computation whose input nobody receives; `other` is its send, if any
    SendTooEarly,     ///< issued before `other`, which makes what it sends
    ReceiveTooLate,   ///< issued behind `other`, which reads what it receives
    Mismatch,         ///< the receive that NCCL pairs with the send `other`, which holds another
    CollectiveOrder,  ///< another member of its group performs `other` at this point, or nothing
  };

  Kind kind = Kind::Repeated;
  TaskId task = kNoTask;
  TaskId other = kNoTask;
  std::uint32_t group = 0;  ///< of the declared groups, for collectives
};

}  // namespace capo
