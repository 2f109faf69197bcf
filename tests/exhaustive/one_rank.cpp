#include "tests/exhaustive/one_rank.h"

#include <utility>

namespace capo::exhaustive {

namespace {

// Entries of the capture stand behind those of the replay, and behind all that is put among them.
constexpr std::uint32_t kCaptured = 1000;

}  // namespace

std::vector<Kind> computations_of(const Size& size) {
  std::vector<Kind> kinds{Kind::Forward, Kind::Backward};
  if (size.weights) kinds.push_back(Kind::BackwardWeight);
  return kinds;
}

OneRank::OneRank(const Size& size, std::vector<Kind> kinds)
    : size_(size), kinds_(std::move(kinds)) {
  input.form = Form::OrderFile;
  input.schedule = {.naming = Naming::Named,
                    .microbatches = size.microbatches,
                    .ranks = std::vector<RankOrder>(1)};
  rank().chunks = size.chunks;
  rank().chunks_declared = true;
  rank().delay.emplace(static_cast<std::size_t>(size.chunks),
                       size.weights ? Delay::Always : Delay::Never);
}

void OneRank::capture(const std::vector<std::size_t>& tokens) {
  rank().order = entries_of(tokens, kCaptured);
  rank().replay.reset();
}

void OneRank::replay(const std::vector<std::size_t>& tokens) {
  rank().replay = entries_of(tokens, 0);
}

std::vector<Entry> OneRank::entries_of(const std::vector<std::size_t>& tokens,
                                       std::uint32_t first_place) const {
  const auto chunks = static_cast<std::size_t>(size_.chunks);
  std::vector<int> next(kinds_.size() * chunks);
  std::vector<Entry> entries;
  for (const std::size_t token : tokens) {
    entries.push_back({.chunk = static_cast<std::int32_t>(token % chunks) + 1,
                       .microbatch = next[token]++,
                       .offset = first_place + static_cast<std::uint32_t>(entries.size()),
                       .length = 1,
                       .kind = kinds_[token / chunks]});
  }
  return entries;
}

}  // namespace capo::exhaustive
