// Stored tables of torch.distributed.pipelining, run over a library of messages: what each table
// does there, beside what it did on two GPUs and what capo says of it.
//
//   capo-fuzz --tables tests/data/nccl_two_gpus.json --transport nccl
//   mpirun -n 2 capo-fuzz --tables tests/data/nccl_two_gpus.json
//
// A table finishes, hangs, or mispairs: finishes with a receive that got the message of another.
// Each is issued under each layout of communicators that the file has, with nothing but transfers
// and what they wait for. Sends are a rendezvous, which those of NCCL are if messages are large.
// Tested by tests/testing/truth/tables_test.sh.

#pragma once

#include "core/base/result.h"
#include "core/model/environment.h"
#include "run/mpi/message_library.h"
#include "run/processes/processes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace capo::testing {

struct TableRun {
  run::Processes& processes;
  /// The messages of a layout; asked for once a layout, by all processes alike.
  std::function<run::MessageLibrary&(Communicators)> messages;
  /// A table hung in the messages that were asked for last, which cannot go on as they are.
  std::function<void()> renew;
  /// A rank that does not go on for so long hangs. nullopt: no clock is asked, and a rank hangs
  /// that does not come further than the verdict says when all others are there.
  std::optional<run::Processes::Duration> patience;
};

struct TableTally {
  std::uint64_t tables = 0;
  std::uint64_t as_stored = 0;  ///< did what the same table did on two GPUs
  std::uint64_t as_judged = 0;  ///< did what capo says of it
  std::uint64_t finished = 0;
  std::uint64_t hung = 0;
  std::uint64_t mispaired = 0;
  std::string lines;  ///< a line a table
};

/// At rank 0 the tally; elsewhere an empty one. `text` is JSON, and an error says what is wrong in
/// it.
[[nodiscard]] Result<TableTally> run_tables(const TableRun& run, const std::string& text);

[[nodiscard]] std::string to_text(const TableTally& tally);

}  // namespace capo::testing
