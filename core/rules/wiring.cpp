#include "core/rules/wiring.h"

#include "core/frameworks/megatron/ep_overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace capo {

namespace {

// Only the orders differ; a rank without a replay order of its own replays what it captures.
Schedule replayed(const Schedule& schedule) {
  Schedule replayed = schedule;
  for (RankOrder& rank : replayed.ranks) {
    if (rank.replay) rank.order = std::move(*rank.replay);
    rank.replay.reset();
  }
  return replayed;
}

bool holds_strays(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const RankOrder& rank) { return rank.strays > 0; });
}

template <typename Value, typename Make>
const Value& once(std::unique_ptr<Value>& value, Make make) {
  if (!value) value = std::make_unique<Value>(make());
  return *value;
}

constexpr bool beside_computation(Kind kind) {
  return !is_compute(kind) && kind != Kind::Idle;
}

}  // namespace

Wiring::Wiring(const Schedule& schedule, const Environment& environment,
               std::span<const CollectiveGroup> groups, std::int32_t microbatches, bool replay)
    : replayed_(replay ? std::make_shared<const Schedule>(replayed(schedule)) : nullptr),
      schedule_(replay ? *replayed_ : schedule),
      environment_(environment_of(schedule, environment)),
      groups_(groups),
      microbatches_(microbatches),
      replay_(replay),
      map_(schedule) {
  const Kinds kinds(schedule_);
  writes_transfers_ = kinds.any<is_transfer>();
  writes_exchanges_ = kinds.any<is_exchange>();
  writes_waits_ = kinds.any<is_send_wait>();
  writes_any_wait_ = kinds.any<is_wait>();
  only_computes_ = !kinds.any<beside_computation>();
}

Wiring::Wiring(const Wiring& like, const Environment& environment)
    : replayed_(like.replayed_),
      schedule_(like.schedule_),
      environment_(environment_of(like.schedule_, environment)),
      groups_(like.groups_),
      microbatches_(like.microbatches_),
      replay_(like.replay_),
      writes_transfers_(like.writes_transfers_),
      writes_exchanges_(like.writes_exchanges_),
      writes_waits_(like.writes_waits_),
      writes_any_wait_(like.writes_any_wait_),
      only_computes_(like.only_computes_),
      map_(like.map_),
      all_are_added_(like.all_are_added_),
      swept_log_(like.swept_log_) {
}

void Wiring::forget_graphs() {
  if (added_) all_are_added_ = added_->complete;
  added_.reset();
  written_.reset();
  megatron_.reset();
  apart_.reset();
  ideal_.reset();
  on_links_.reset();
  direct_.reset();
  direct_execution_.reset();
  transfers_.reset();
  execution_.reset();
  first_uses_.reset();
  making_.reset();
}

bool Wiring::by_megatron() const {
  return environment_.p2p && map_.wired() && !writes_transfers_ && schedule_.ranks.size() > 1;
}

bool Wiring::megatron_placement() const {
  const std::size_t ranks = schedule_.ranks.size();
  std::vector<std::int32_t> placed(ranks);  // chunks of each rank whose stage has come
  std::vector<std::size_t> turns(ranks);    // and chunks of the model
  std::size_t turn = 0;
  for (std::int32_t stage = 0; stage < map_.stages(); ++turn) {
    const std::size_t rank = turn % ranks;
    const auto& layers = schedule_.ranks[rank].model_chunks;
    if (!layers.empty() && turns[rank] == layers.size()) return false;
    const std::int32_t count = layers.empty() ? 1 : layers[turns[rank]];
    ++turns[rank];
    for (const std::int32_t end = stage + count; stage < end; ++stage) {
      if (stage >= map_.stages()) return false;
      const StageMap::Place& home = map_.home(stage);
      if (home.rank != static_cast<std::int32_t>(rank) || home.chunk != ++placed[rank])
        return false;
    }
  }
  return turn % ranks == 0;
}

const MegatronLowering& Wiring::megatron() const {
  return once(megatron_, [&] {
    return lower_megatron(schedule_, *environment_.p2p, environment_.ep_overlap);
  });
}

const WithTransfers& Wiring::added() const {
  return once(added_, [&] { return add_transfers(schedule_, map_, microbatches_); });
}

const TaskGraph& Wiring::direct() const {
  return once(direct_, [&] {
    const Lowered& written = once(written_, [&] { return as_written(schedule_); });
    // Transfers that are put in stand where the order has come to, exchanges included.
    return wire_directly(
        written, map_, microbatches_,
        adds_transfers() && writes_exchanges_ ? Exchanges::InTurn : Exchanges::LeftOut);
  });
}

const Execution& Wiring::direct_execution() const {
  return once(direct_execution_, [&] { return execute(direct()); });
}

bool Wiring::adds_transfers() const {
  return !writes_transfers_ && !by_megatron();
}

bool Wiring::executable() const {
  if (!adds_transfers()) return direct_execution().finishes();
  // Chunks that are not wired to each other wait for nobody. Else, putting the transfers in runs
  // the order on paper already, and sees besides that a member of a composite reads another.
  return !map_.wired() || all_are_added();
}

bool Wiring::all_are_added() const {
  if (added_) return added_->complete;
  if (!all_are_added_) all_are_added_ = can_add_transfers(schedule_, map_, microbatches_);
  return *all_are_added_;
}

bool Wiring::takes_layers_apart() const {
  const bool exchanges = std::any_of(groups_.begin(), groups_.end(),
                                     [](const auto& group) { return group.exchanges(); });
  return exchanges && environment_.ep_overlap && !writes_exchanges_;
}

Lowered Wiring::apart(const Lowered& lowered) const {
  const bool by_layer = std::any_of(schedule_.ranks.begin(), schedule_.ranks.end(),
                                    [](const auto& rank) { return !rank.model_chunks.empty(); });
  if (by_layer) return take_listed_layers_apart(lowered, environment_.ep_slots);
  return take_layers_apart(lowered, layer_counts(schedule_), environment_.ep_slots);
}

const Lowered& Wiring::lowered() const {
  if (!takes_layers_apart()) return with_whole_layers();
  return once(apart_, [&] { return apart(with_whole_layers()); });
}

const Wiring::Ideal& Wiring::ideal() const {
  return once(ideal_, [&] {
    const bool by_chunk = by_megatron();
    Lowered lowered = by_chunk ? megatron().lowered : as_written(schedule_);
    if (environment_.ep_overlap && !writes_exchanges_) {
      lowered =
          by_chunk ? apart(lowered) : take_listed_layers_apart(lowered, environment_.ep_slots);
    }
    TaskGraph graph = wire_ideally(lowered, map_, microbatches_, environment_, groups_);
    return Ideal{.lowered = std::move(lowered), .graph = std::move(graph)};
  });
}

bool Wiring::overlaps_undeclared() const {
  return environment_.ep_overlap && !writes_exchanges_ && !takes_layers_apart();
}

const Wiring::Ideal& Wiring::on_links() const {
  return once(on_links_, [&] {
    Lowered lowered = apart(with_whole_layers());
    TaskGraph graph = wire_transfers(lowered, map_, microbatches_, environment_, groups_).graph;
    return Ideal{.lowered = std::move(lowered), .graph = std::move(graph)};
  });
}

const Lowered& Wiring::lowered_for_links() const {
  return overlaps_undeclared() ? on_links().lowered : lowered();
}

const TaskGraph& Wiring::graph_for_links() const {
  return overlaps_undeclared() ? on_links().graph : transfers().graph;
}

const Lowered& Wiring::with_whole_layers() const {
  if (writes_transfers_) return once(written_, [&] { return as_written(schedule_); });
  return by_megatron() ? megatron().lowered : added().lowered;
}

const Lowered& Wiring::lowered_for(const TaskGraph& graph) const {
  return direct_ && &graph == &*direct_ ? *written_ : lowered();
}

const WiredTransfers& Wiring::transfers() const {
  return once(transfers_, [&] {
    return wire_transfers(lowered(), map_, microbatches_, environment_, groups_);
  });
}

bool Wiring::transfers_matter() const {
  if (environment_.has_weight_stream() || !groups_.empty() || writes_exchanges_) return true;
  return map_.wired() && (schedule_.ranks.size() > 1 || writes_transfers_ || writes_waits_);
}

bool Wiring::transfers_in_doubt() const {
  if (!transfers_matter()) return false;
  const bool more_than_transfers =
      !groups_.empty() || writes_exchanges_ || writes_any_wait_ || environment_.made_lazily();
  return !map_.wired() || !adds_transfers() || more_than_transfers || holds_strays(schedule_) ||
         !all_are_added();
}

std::optional<SweptTransfers> Wiring::swept() const {
  const Communicators layout = environment_.layout();
  const bool known = layout == Communicators::PerRank || layout == Communicators::PerPair ||
                     layout == Communicators::PerEdge;
  if (!transfers_matter() || transfers_in_doubt() || !known || !only_computes_ ||
      environment_.has_weight_stream() || environment_.channel_bytes)
    return std::nullopt;
  if (!in_rows_and_rings(map_, schedule_.ranks.size())) return std::nullopt;
  return SweptTransfers{
      .schedule = &schedule_,
      .microbatches = microbatches_,
      .layout = layout,
      .mode = environment_.buffered() ? TransferMode::Buffered : TransferMode::Rendezvous};
}

const std::shared_ptr<const SweptLog>& Wiring::swept_log() const {
  if (!swept_log_)
    swept_log_ = std::make_shared<const SweptLog>(capo::swept_log(schedule_, map_, microbatches_));
  return swept_log_;
}

bool Wiring::finishes_under(const Environment& environment) const {
  return execute(wire_transfers(lowered(), map_, microbatches_, environment, groups_).graph)
      .finishes();
}

const Execution& Wiring::execution() const {
  return once(execution_, [&] { return execute(transfers().graph); });
}

const FirstUses& Wiring::first_uses() const {
  return once(first_uses_, [&] {
    return environment_.made_lazily() ? wire_first_uses(transfers().graph, groups_) : FirstUses();
  });
}

const Execution& Wiring::making() const {
  return once(making_, [&] { return execute(first_uses().graph); });
}

const TaskGraph& Wiring::judged() const {
  const bool routed = !by_megatron() || (megatron_placement() && megatron().faults.empty());
  return executable() && routed ? transfers().graph : direct();
}

}  // namespace capo
