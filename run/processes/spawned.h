// Processes of one machine that this one makes of itself, where nobody launched several: copies
// that talk through sockets, and one that waits for them.
//
//   MessageLibrary* mine = spawn(2);   returns twice, in two new processes; this one only waits
//
// The process that was there before ends when all of them have, with the exit code of rank 0. When
// one ends by itself without having left, or is killed, it ends the others at once: with the code
// of that one, or, for a signal, with code 5 and a line that names it. When it is killed itself,
// they are as well.
//
// The messages are those of a control plane, short and few: what tensors need goes through NCCL.
// Tested by spawned_test.cpp.

#pragma once

#include "core/base/result.h"
#include "run/mpi/message_library.h"

namespace capo::run {

/// Precondition: this process has one thread, and has asked nothing of CUDA.
[[nodiscard]] Result<MessageLibrary*> spawn(int count);

}  // namespace capo::run
