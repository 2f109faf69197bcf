// Builds a schedule from actions and facts, as an .order file or JSON states them.
//
// Both readers hand over each thing that they read with its place. The questions that the two forms
// have in common are settled here once: limits, whether microbatches are named, how many chunks a
// rank has, which of them split their backwards, where stages live. Tested through
// order_reader_test.cpp and json_reader_test.cpp.

#pragma once

#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

/// A chunk that is said to split its backwards, and the place that says so.
struct ChunkMention {
  static constexpr ChunkId kAll = 0;  // every chunk of the rank

  ChunkId chunk = kAll;
  Span span;
};

/// The facts that are stated about a rank, or about all of them.
struct RankFacts {
  std::optional<std::int32_t> chunks;
  std::optional<Layers> layers;
  std::optional<std::vector<ChunkMention>> delayed;
  std::optional<std::vector<ChunkMention>> mixed;
  std::optional<std::vector<std::int32_t>> stages;
  std::optional<std::vector<std::int32_t>> model_chunks;
};

/// An order as it is read: its actions, and the resets between them.
struct ReadOrder {
  std::vector<Entry> entries;
  std::vector<Reset> resets;
};

class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const Limits& limits) : limits_(limits) {}

  /// The caller sets topology, microbatches and stages, and leaves the ranks alone.
  Schedule& schedule() { return schedule_; }

  /// Appends the action, or the reset, that `token` names.
  [[nodiscard]] std::optional<Refusal> add_token(ReadOrder& order, std::string_view token,
                                                 Span span, Group group);

  /// Appends a rank. `shared` gives the facts that it does not state itself.
  [[nodiscard]] std::optional<Refusal> add_rank(Span where, RankFacts facts,
                                                const RankFacts& shared, ReadOrder order,
                                                std::optional<ReadOrder> replay);

  /// Numbers microbatches and places stages. Precondition: all ranks are added.
  [[nodiscard]] Read<Schedule> finish() &&;

 private:
  std::optional<Refusal> add_action(std::vector<Entry>& order, std::string_view token, Span span,
                                    Group group);
  [[nodiscard]] std::optional<Refusal> refuse_large(std::uint64_t number, std::string_view token,
                                                    Span span) const;
  std::optional<Refusal> check_naming(bool named, Span span);
  std::optional<Refusal> settle_chunks(RankOrder& rank, Span where, const RankFacts& facts);
  std::optional<Refusal> settle_stages(RankOrder& rank, Span where, const RankFacts& facts) const;
  static std::optional<Refusal> settle_model_chunks(RankOrder& rank, Span where,
                                                    const RankFacts& facts);
  [[nodiscard]] std::optional<Refusal> refuse_two_kinds_of_transfers() const;
  std::optional<Refusal> settle_delay(RankOrder& rank, const RankFacts& facts);

  const Limits& limits_;
  Schedule schedule_;
  std::uint64_t entries_ = 0;
  std::uint64_t declared_chunks_ = 0;
  std::optional<Naming> naming_;
  Span first_action_;
  std::optional<Span> mixed_at_;  ///< where a chunk is first said to be mixed
};

}  // namespace capo
