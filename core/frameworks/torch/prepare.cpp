// The passes in torch's order, between the checks that torch's `_prepare_schedule_with_comms`
// makes.

#include "core/frameworks/torch/passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace capo::torch {

namespace {

Lowered refused(std::string error) {
  return {.error = std::move(error)};
}

// A validator's "ok" is nothing to raise.
std::string refuse_schedule(const Table& table) {
  std::string said = validate(table.rows, table.stages, table.microbatches);
  return said == "ok" ? "" : said;
}

// The number of stages ahead of each rank, or what torch raises.
struct Ahead {
  std::vector<std::int64_t> ranks;
  std::string error;
};

Ahead resolve_lookahead(const Policy& policy, std::size_t ranks) {
  const std::int64_t most = policy.max_active_stages;
  if (most < 1)
    return {.error = fmt::format("ValueError: max_active_stages must be a positive integer, got {}",
                                 most)};
  if (const auto* word = std::get_if<Lookahead>(&policy.unshard_lookahead)) {
    Ahead ahead{.ranks = std::vector<std::int64_t>(ranks, most)};
    for (std::size_t r = 0; *word == Lookahead::Auto && r < ranks; ++r)
      ahead.ranks[r] = std::min(static_cast<std::int64_t>(r) + 2, most);
    return ahead;
  }
  const auto& list = std::get<std::vector<std::int64_t>>(policy.unshard_lookahead);
  if (list.size() != ranks)
    return {.error = fmt::format("ValueError: unshard_lookahead tuple length must equal the "
                                 "pipeline degree ({}), got {}",
                                 ranks, list.size())};
  for (std::size_t r = 0; r < ranks; ++r) {
    if (list[r] >= 1 && list[r] <= most) continue;
    return {.error = fmt::format("ValueError: unshard_lookahead[{}] must be an integer within [1, "
                                 "max_active_stages={}], got {}",
                                 r, most, list[r])};
  }
  return {.ranks = list};
}

std::string refuse_idle(const Rows& rows) {
  for (const auto& row : rows) {
    if (std::any_of(row.begin(), row.end(), [](const Slot& slot) { return slot.idle(); }))
      return "AssertionError: Expected action to be not None, got <class 'NoneType'>";
  }
  return "";
}

bool is_computation(TorchType type) {
  return type == TorchType::Forward || type == TorchType::FullBackward ||
         type == TorchType::BackwardInput || type == TorchType::BackwardWeight ||
         type == TorchType::Overlap;
}

std::string refuse_communication(const Rows& rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t at = 0; at < rows[r].size(); ++at) {
      const Slot& slot = rows[r][at];
      if (slot.idle() || is_computation(slot.head().type)) continue;
      return fmt::format(
          "ValueError: Expected compute-only schedule but found communication action '{}' at rank "
          "{}, position {}. Communication actions (e.g. SEND_F, RECV_F, etc.) should not be "
          "present when format='compute_only'.",
          to_text(slot), r, at);
    }
  }
  return "";
}

Rows without_idle(const Rows& rows) {
  Rows kept = rows;
  for (auto& row : kept) std::erase_if(row, [](const Slot& slot) { return slot.idle(); });
  return kept;
}

std::string refuse_wide_actions(const std::vector<Slot>& row, std::int64_t most) {
  for (const Slot& slot : row) {
    std::set<std::int64_t> stages;
    slot.for_each_part([&](const TorchAction& action) { stages.insert(action.stage); });
    const auto needed = static_cast<std::int64_t>(stages.size());
    if (needed > most)
      return fmt::format(
          "ValueError: Atomic action {} requires {} stages, exceeding max_active_stages={}",
          to_text(slot), needed, most);
  }
  return "";
}

std::vector<std::int64_t> by_stage(const Homes& homes, std::int64_t stages) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(stages), -1);
  for (const auto& [stage, rank] : homes) {
    if (stage >= 0 && stage < stages)
      ranks[static_cast<std::size_t>(stage)] = static_cast<std::int64_t>(rank);
  }
  return ranks;
}

Lowered lower_with_waits(const Table& table, const Policy& policy, const Homes& homes,
                         const std::vector<std::int64_t>& ahead) {
  if (auto error = refuse_communication(table.rows); !error.empty()) return refused(error);
  Rows rows = without_idle(table.rows);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (auto error = refuse_wide_actions(rows[r], policy.max_active_stages); !error.empty())
      return refused(error);
    rows[r] =
        add_unshard_reshard(rows[r], {.resident = policy.max_active_stages, .lookahead = ahead[r]});
    rows[r] =
        add_reduce_grad(rows[r], table.microbatches,
                        policy.defer_reduce_grad_wait ? ReduceWait::Deferred : ReduceWait::AtOnce);
  }
  Lowered lowered = add_send_receive_wait(rows, by_stage(homes, table.stages));
  const bool defers = policy.defer_pp_recv && lowered.error.empty();
  const OrderlyDeferral* orderly = policy.orderly ? &*policy.orderly : nullptr;
  return defers ? defer_receives(lowered.rows, homes, orderly) : lowered;
}

// A lookahead is for lowering alone.
Lowered take_as_written(const Table& table, const Policy& policy,
                        const std::vector<std::int64_t>& ahead) {
  const bool plain = std::all_of(ahead.begin(), ahead.end(), [&](std::int64_t stages) {
    return stages == policy.max_active_stages;
  });
  if (!plain)
    return refused(
        "ValueError: unshard_lookahead cannot be applied to an already-lowered compute_comms "
        "schedule; provide a compute-only schedule and apply the policy while lowering it");
  if (auto error = refuse_idle(table.rows); !error.empty()) return refused(error);
  return {.rows = table.rows, .error = refuse_reduce_waits(table.rows)};
}

}  // namespace

Lowered prepare_2_11(const Table& table, const Policy& /*it has none*/) {
  if (auto error = refuse_schedule(table); !error.empty()) return refused(error);
  if (table.communicates) return {.rows = table.rows, .error = refuse_idle(table.rows)};
  if (auto error = refuse_communication(table.rows); !error.empty()) return refused(error);
  Rows rows = without_idle(table.rows);
  for (auto& row : rows) {
    row = add_unshard_reshard(row, {.eviction = Eviction::AsHashed});
    row = add_reduce_grad(row, table.microbatches, ReduceWait::None);
  }
  return add_send_receive(rows, by_stage(homes_of(table.rows), table.stages));
}

Lowered prepare_2_15(const Table& table, const Policy& policy) {
  const auto most = policy.max_outstanding_sends;
  if (most && *most < 0)
    return refused("ValueError: max_outstanding_sends must be a non-negative integer");
  if (auto error = refuse_schedule(table); !error.empty()) return refused(error);
  const Ahead ahead = resolve_lookahead(policy, table.rows.size());
  if (!ahead.error.empty()) return refused(ahead.error);
  const Homes homes = homes_of(table.rows);
  Lowered lowered = table.communicates ? take_as_written(table, policy, ahead.ranks)
                                       : lower_with_waits(table, policy, homes, ahead.ranks);
  if (lowered.error.empty()) lowered.error = refuse_send_waits(lowered.rows);
  if (!lowered.error.empty() || !most) return lowered;
  lowered = add_send_budget(lowered.rows, homes, *most);
  if (lowered.error.empty()) lowered.error = refuse_send_waits(lowered.rows);
  return lowered;
}

}  // namespace capo::torch
