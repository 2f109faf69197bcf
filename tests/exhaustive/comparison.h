// Product against oracle: counts what is compared, and prints what differs as a list to paste.
//
// Orders are dealt out to shards by their number, so that every shard of a scope has some of each
// kind. The first ten disagreements are printed, or the first alone.

#pragma once

#include "tests/exhaustive/answer.h"
#include "tests/exhaustive/options.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace capo::exhaustive {

class Comparison {
 public:
  Comparison(std::string name, const Options& options);

  /// Whether the next order is this shard's.
  [[nodiscard]] bool mine() { return met_++ % options_.shards == options_.shard; }
  /// Whether enough has been seen.
  [[nodiscard]] bool stopped() const { return options_.stop_at_first && disagreements_ > 0; }
  /// Whether all orders are this shard's, so that counts are those of the scope.
  [[nodiscard]] bool complete() const { return options_.shards == 1 && !stopped(); }

  /// `shown()` is the order as text.
  template <typename Shown>
  void compare(const Answer& product, const Answer& oracle, Shown shown) {
    ++compared_;
    ++by_rule_[oracle.rule];
    if (product != oracle) disagree(product, oracle, shown());
  }

  /// A count that is known from elsewhere.
  void expect(std::string_view what, std::uint64_t counted, std::uint64_t known);
  void note(std::string_view what, std::uint64_t count);

  /// Prints one line; whether nothing differed.
  bool finish();

 private:
  void disagree(const Answer& product, const Answer& oracle, const std::string& shown);

  std::string name_;
  Options options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::uint64_t met_ = 0;
  std::uint64_t compared_ = 0;
  std::uint64_t disagreements_ = 0;
  std::uint64_t wrong_counts_ = 0;
  std::map<std::string_view, std::uint64_t> by_rule_;
};

}  // namespace capo::exhaustive
