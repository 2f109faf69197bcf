// The exchanges of program_parts.h.

#include "core/graph/lowered.h"
#include "run/execute/program_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace capo::run {

ExchangesOfProgram::ExchangesOfProgram(const BufferTable& table, const Course& course,
                                       const Handovers& handovers, Program& program)
    : table_(table), course_(course), handovers_(handovers), program_(program), cells_(table) {
}

void ExchangesOfProgram::meets(Point point, std::int32_t rank, std::uint32_t stream) {
  meetings_[point].streams[rank] = stream;
}

void ExchangesOfProgram::goes_through(Point point, TaskId exchange) {
  const auto meeting = meetings_.find(point);
  const bool several = meeting != meetings_.end() && meeting->second.streams.size() > 1;
  if (several) through_[exchange] = point;
}

void ExchangesOfProgram::note_run(std::int32_t rank, const Work& work) {
  ran_.insert(key_of(rank, work));
}

Origin ExchangesOfProgram::origin_of(std::int32_t rank, const Work& work,
                                     std::int32_t layer) const {
  const Way way = is_backward(work.kind) ? Way::Backward : Way::Forward;
  const auto moved = before_.find({cells_.of(rank, work.chunk, work.microbatch), layer, way});
  if (moved == before_.end()) return handovers_.origin_of(rank, work, layer);
  const bool away = returns_[moved->second];
  return {away ? Origin::Kind::Permuted : Origin::Kind::Exchanged, moved->second};
}

bool ExchangesOfProgram::are_with(std::int32_t rank, const Work& work) const {
  const auto found = before_.find({cells_.of(rank, work.chunk, work.microbatch),
                                   table_.layers(rank, work.chunk) - 1, Way::Backward});
  return work.layer == kAllLayers && found != before_.end() && returns_[found->second];
}

// An exchange of one rank is over where it ends.
void ExchangesOfProgram::begin(TaskId exchange) {
  const auto through = through_.find(exchange);
  if (through == through_.end()) return;
  const auto moved = move(exchange);
  if (!moved) return;
  begun_[exchange] = *moved;
  Meeting& meeting = meetings_.at(through->second);
  (moved->kind == OpPart::Kind::Return ? meeting.back : meeting.out).push_back(moved->to);
}

void ExchangesOfProgram::end(TaskId exchange) {
  if (!through_.contains(exchange)) {
    if (const auto moved = move(exchange)) finish(*moved);
  } else if (const auto begun = begun_.find(exchange); begun != begun_.end()) {
    finish(begun->second);
  }
}

void ExchangesOfProgram::finish(const OpPart& moved) {
  if (moved.kind == OpPart::Kind::Return) program_.parts.push_back(moved);
}

// Exchanges that go out from here for the first time are divided over each other. Which rows lie
// where is settled with that, so that they find back.
void ExchangesOfProgram::cross(Point point, std::int32_t rank) {
  const auto met = meetings_.find(point);
  if (met == meetings_.end()) return;
  auto& [streams, out, back] = met->second;
  const auto rank_of = [&](std::uint32_t exchange) {
    return cells_.at(program_.exchanges[exchange].cell).rank;
  };
  const auto by_rank = [&](std::uint32_t a, std::uint32_t b) { return rank_of(a) < rank_of(b); };
  std::sort(out.begin(), out.end(), by_rank);
  std::sort(back.begin(), back.end(), by_rank);
  std::vector<std::uint32_t> first;
  std::copy_if(out.begin(), out.end(), std::back_inserter(first),
               [&](std::uint32_t exchange) { return program_.exchanges[exchange].among.empty(); });
  for (const std::uint32_t exchange : first) program_.exchanges[exchange].among = first;
  const auto stays = [&](std::uint32_t exchange) {
    return !program_.exchanges[exchange].crosses();
  };
  std::erase_if(out, stays);
  std::erase_if(back, stays);
  if (out.empty() && back.empty()) return;
  const std::uint32_t any = out.empty() ? back.front() : out.front();
  program_.parts.push_back({.kind = OpPart::Kind::Cross,
                            .way = program_.exchanges[any].way,
                            .rank = rank,
                            .to = static_cast<std::uint32_t>(program_.crossings.size())});
  Crossing& crossing =
      program_.crossings.emplace_back(Crossing{.out = std::move(out), .back = std::move(back)});
  for (const auto& [member, stream] : streams) {
    crossing.ranks.push_back(member);
    crossing.streams.push_back(stream);
  }
}

// Permutes, or returns what is to be put behind the point where ranks meet; nullopt if it moves
// nothing.
std::optional<OpPart> ExchangesOfProgram::move(TaskId id) {
  const Task& task = course_.graph->tasks[id];
  const Step& step = step_of(*course_.lowered, task);
  const std::int32_t rank = task.rank;
  const std::int32_t layers = table_.layers(rank, step.chunk);
  if (layers == 0 || step.microbatch >= table_.microbatches()) return std::nullopt;
  const bool forward = is_forward_exchange(task.kind);
  const Way way = forward ? Way::Forward : Way::Backward;
  const bool apart = takes_layers_apart();
  const Work work{.chunk = step.chunk,
                  .microbatch = step.microbatch,
                  .layer = apart ? static_cast<std::int32_t>(step.layer) : kAllLayers,
                  .kind = forward ? Kind::Forward : backward_of(rank, step)};
  const bool outgoing = ran_.contains(key_of(rank, work));
  if (outgoing && !apart) {
    if (auto part = return_of_experts(rank, work, way)) return part;
  }
  // The grad input of a backward that has run is not the exchange's to change.
  if (outgoing && !forward) return std::nullopt;
  const std::int32_t end = forward == outgoing ? layers - 1 : 0;
  const std::int32_t layer = apart ? work.layer : (forward ? end : layers - 1);
  const std::uint32_t cell = cells_.of(rank, step.chunk, step.microbatch);
  const BufferId output =
      outgoing ? table_.id(rank, step.chunk, layer, step.microbatch, BufferKind::Output)
               : kNoBuffer;
  const auto [at, first] =
      (outgoing ? behind_ : before_)
          .try_emplace({cell, layer, way}, static_cast<std::uint32_t>(program_.exchanges.size()));
  if (first) {
    program_.exchanges.push_back({.cell = cell,
                                  .layer = layer,
                                  .way = way,
                                  .rows = outgoing ? Exchange::Rows::Output : Exchange::Rows::Read,
                                  .route = route_of(cell, way, at->second)});
    returns_.push_back(false);
  }
  const bool returns = returns_[at->second];
  returns_[at->second] = !returns;
  OpPart part{.kind = returns ? OpPart::Kind::Return : OpPart::Kind::Permute,
              .way = way,
              .rank = rank,
              .from = output,
              .to = at->second};
  if (returns) return part;
  part.origin = outgoing ? Origin{Origin::Kind::Buffer, output}
                : first  ? handovers_.origin_of(rank, work, layer)
                         : Origin{Origin::Kind::Exchanged, at->second};
  program_.parts.push_back(part);
  return part;
}

// Brings back what a chunk made of rows that are still with it; nullopt if none are.
std::optional<OpPart> ExchangesOfProgram::return_of_experts(std::int32_t rank, const Work& work,
                                                            Way way) {
  const bool forward = way == Way::Forward;
  const std::int32_t last = table_.layers(rank, work.chunk) - 1;
  const std::uint32_t cell = cells_.of(rank, work.chunk, work.microbatch);
  const auto out = before_.find({cell, forward ? 0 : last, way});
  if (out == before_.end() || !returns_[out->second]) return std::nullopt;
  returns_[out->second] = false;
  Exchange& exchange = program_.exchanges[out->second];
  exchange.made = table_.id(rank, work.chunk, forward ? last : 0, work.microbatch,
                            forward ? BufferKind::Output : BufferKind::GradInput);
  const bool leaves = !forward && handovers_.gives_out(rank, work.chunk);
  exchange.rows = leaves ? Exchange::Rows::LeavingExperts : Exchange::Rows::Experts;
  return OpPart{.kind = OpPart::Kind::Return,
                .way = way,
                .rank = rank,
                .from = exchange.comes_back_into(),
                .to = out->second};
}

// Gradients of rows that were with experts go to them by the way of the rows.
std::uint32_t ExchangesOfProgram::route_of(std::uint32_t cell, Way way, std::uint32_t own) const {
  if (way == Way::Forward) return own;
  const auto forward = before_.find({cell, 0, Way::Forward});
  const bool went =
      forward != before_.end() && program_.exchanges[forward->second].around_experts();
  return went ? forward->second : own;
}

// Tells whether the course runs the layers of a chunk one by one.
bool ExchangesOfProgram::takes_layers_apart() {
  if (!apart_) {
    apart_ = std::any_of(
        course_.lowered->ranks.begin(), course_.lowered->ranks.end(), [](const auto& steps) {
          return std::any_of(steps.begin(), steps.end(),
                             [](const Step& step) { return step.part != Part::Whole; });
        });
  }
  return *apart_;
}

// A backward of a mixed chunk may be either half.
Kind ExchangesOfProgram::backward_of(std::int32_t rank, const Step& step) const {
  for (const Step& other : course_.lowered->ranks[RankId(rank).index()]) {
    if (is_backward(other.kind) && other.chunk == step.chunk &&
        other.microbatch == step.microbatch) {
      return other.kind;
    }
  }
  return Kind::Backward;
}

}  // namespace capo::run
