// How much is compared, and by which way through the product.

#pragma once

#include <cstdint>

namespace capo::exhaustive {

/// Which way the product is asked.
enum class Through : std::uint8_t {
  Verdicts,  ///< the fast interface, and check() as well: see Options::check_each
  Check,     ///< check() alone, for what the fast interface would answer without asking a rule
};

enum class Effort : std::uint8_t {
  Quick,  ///< about a second for all scopes together
  Whole,  ///< every run
  Long,   ///< beyond every run; in shards
};

struct Options {
  Through through = Through::Verdicts;
  Effort effort = Effort::Whole;
  std::uint64_t shard = 0;  ///< takes this one of `shards` parts
  std::uint64_t shards = 1;
  /// check() is asked about all that the fast interface accepts, and one in so many of the others.
  std::uint64_t check_each = 1;
  bool stop_at_first = false;
};

}  // namespace capo::exhaustive
