// failing_world.cpp and the library that it preloads into capo talk over this: one page of memory
// that both see, and two pipes.
//
//   test                          preloaded, before main()
//   order into the ledger   -->   forks; the child goes on into main() and fails where it is told
//   one byte                      waits for the child
//                           <--   the child's status; what it did is in the ledger
//
// Forking there spares each run the loading of the program, which is most of a short run.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace capo::failing {

/// The way in which the chosen call fails.
enum class Failure : std::int32_t {
  None,
  NoMemory,      ///< an allocation throws std::bad_alloc
  Error,         ///< a call for a file returns `error` and does nothing
  Short,         ///< a read or write moves a single byte
  Interrupt,     ///< Ctrl-C comes before a call for a file
  KilledBefore,  ///< kill -9, the call not made
  KilledAfter,   ///< kill -9, the call made
};

/// Calls are numbered from 1, allocations and calls for files apart.
struct FailingOrder {
  Failure failure = Failure::None;
  std::int32_t error = 0;
  std::uint64_t at = 0;
};

struct FailingLedger {
  static constexpr std::size_t kSites = std::size_t{1} << 16;

  FailingOrder order;
  std::atomic<std::uint64_t> allocations;
  std::atomic<std::int64_t> live;  ///< allocations that were not given back
  std::atomic<std::uint64_t> file_calls;
  std::atomic<bool> left_at_once;  ///< it ended by _Exit(), which frees no memory
  char call[16];                   ///< the call for a file that failed; empty: none did
  /// Size and place in its page of the code of each allocation: equal up to n, and so are the runs.
  std::uint32_t sites[kSites];
};

inline constexpr int kLedgerDescriptor = 200;
inline constexpr int kOrdersDescriptor = 201;
inline constexpr int kStatusDescriptor = 202;

}  // namespace capo::failing
