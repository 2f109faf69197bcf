#include "tests/exhaustive/comparison.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace capo::exhaustive {

namespace {

constexpr std::uint64_t kMostShown = 10;

std::string text_of(const Answer& answer) {
  if (answer.accepted()) return "accepted";
  if (answer.position == Answer::kNowhere) return fmt::format("{}", answer.rule);
  return fmt::format("{} at rank {}, index {}", answer.rule, answer.rank, answer.position);
}

}  // namespace

Comparison::Comparison(std::string name, const Options& options)
    : name_(std::move(name)), options_(options) {
}

void Comparison::disagree(const Answer& product, const Answer& oracle, const std::string& shown) {
  if (++disagreements_ > kMostShown) return;
  fmt::print("DISAGREEMENT in {}: capo says {}, the oracle {}\n{}\n", name_, text_of(product),
             text_of(oracle), shown);
  std::fflush(stdout);
}

void Comparison::expect(std::string_view what, std::uint64_t counted, std::uint64_t known) {
  const bool right = counted == known;
  wrong_counts_ += right ? 0 : 1;
  fmt::print("{}: {} {}{}\n", name_, what, counted,
             right ? "" : fmt::format(", WRONG COUNT: there are {}", known));
}

void Comparison::note(std::string_view what, std::uint64_t count) {
  fmt::print("{}: {} {}\n", name_, what, count);
}

bool Comparison::finish() {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin_;
  std::string rules;
  for (const auto& [rule, count] : by_rule_) {
    rules += fmt::format(", {} {}", rule.empty() ? "accepted" : rule, count);
  }
  const std::string shard =
      options_.shards == 1 ? "" : fmt::format(" (shard {}/{})", options_.shard, options_.shards);
  fmt::print("{}{}: {} compared{}; {} disagreements; {:.1f} s\n", name_, shard, compared_, rules,
             disagreements_, took.count());
  std::fflush(stdout);
  return disagreements_ == 0 && wrong_counts_ == 0;
}

}  // namespace capo::exhaustive
