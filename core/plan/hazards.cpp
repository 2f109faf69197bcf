#include "core/plan/hazards.h"

#include "core/base/index.h"
#include "core/plan/accesses.h"

#include <algorithm>
#include <iterator>

namespace capo {

namespace {

bool any_is_somewhere(const Plan& plan, BufferId first, std::size_t count) {
  const auto from = std::min<std::size_t>(first, plan.address.size());
  const auto end = std::min(from + count, plan.address.size());
  return std::any_of(plan.address.begin() + static_cast<std::ptrdiff_t>(from),
                     plan.address.begin() + static_cast<std::ptrdiff_t>(end),
                     [](std::int64_t address) { return address != kNowhere; });
}

}  // namespace

HazardList::Kept::Kept(const Hazard& of)
    : rank_(of.victim.rank),
      chunk_(of.victim.chunk),
      layer_(of.victim.layer),
      microbatch_(of.victim.microbatch),
      taker_(of.taker),
      writer_(of.writer.entry),
      reader_(of.reader.entry),
      victim_(of.victim.kind),
      writer_kind_(of.writer.kind),
      reader_kind_(of.reader.kind),
      race_(of.race),
      window_(of.window) {
  static_assert(sizeof(Kept) == 32);
}

HazardFinder::HazardFinder(const BufferTable& table, const Plan& plan, std::int32_t rank,
                           HazardList& found)
    : table_(table),
      plan_(plan),
      rank_(rank),
      buffers_(table.of_rank(rank)),
      found_(found),
      has_receives_(any_is_somewhere(plan, buffers_.receives, buffers_.receives_count)),
      states_(buffers_.size() * (plan.made.empty() ? 1 : 2)) {
  if (!table.sized()) units_.most = buffers_.size();
  // A microbatch of a chunk is two or three pieces of work, two sends and two receives.
  constexpr std::size_t kEvents = 7;
  events_.reserve(table.chunks(rank) * as_index(table.microbatches()) * kEvents);
}

HazardFinder::EventId HazardFinder::note(const MemoryUser& user, Point point, Point received) {
  events_.push_back({.user = user, .point = point, .received = received});
  return static_cast<EventId>(events_.size() - 1);
}

void HazardFinder::add(BufferId victim, BufferId taker, EventId writer, EventId reader, bool race,
                       bool window) {
  const auto all = static_cast<BufferId>(table_.all());
  const Hazard hazard{.victim = table_.at(victim < all ? victim : victim - all),
                      .taker = taker < all ? taker : taker - all,
                      .writer = events_[writer].user,
                      .reader = events_[reader].user,
                      .race = race,
                      .window = window};
  if (!plan_.tensor.empty()) {
    // A piece of work reads a tensor as often as it is somebody's buffer.
    const auto same = [&](const Hazard& other) {
      return other.reader == hazard.reader && other.writer == hazard.writer &&
             other.victim == hazard.victim;
    };
    if (std::any_of(of_this_work_.begin(), of_this_work_.end(), same)) return;
    of_this_work_.push_back(hazard);
  }
  found_.push_back(hazard);
}

void HazardFinder::write(BufferId buffer, std::int64_t bytes, EventId event, const Clock& clock) {
  const std::int64_t begin = plan_.at(buffer);
  if (begin == kNowhere) return;
  BufferId rival = kNoBuffer;
  const auto write_at = [&](std::int64_t at, BufferId owner) {
    const BufferId found = claim({at, at + bytes}, buffer, owner, event, clock);
    state_of(owner) = {.last_use = event, .written_by = event};
    if (found == kNoBuffer) return;
    rival_[owner] = found;
    rival = found;
  };
  if (const auto made = plan_.made_at(buffer); made != kNowhere) write_at(made, made_of(buffer));
  write_at(begin, buffer);
  if (rival != kNoBuffer) add(buffer, rival, state_of(rival).written_by, event, true, false);
}

// The taker writes a range, which is the owner's from now on.
BufferId HazardFinder::claim(Range range, BufferId taker, BufferId owner, EventId event,
                             const Clock& clock) {
  const auto [begin, end] = range;
  if (end == begin) return kNoBuffer;  // an empty range takes nothing over
  if (BufferId* unit = unit_at(begin)) {
    const BufferId loser = *unit;
    *unit = owner;
    return loser == kNoBuffer ? kNoBuffer : take_over(loser, taker, event, clock);
  }
  auto at = held_.lower_bound(begin);
  if (at != held_.begin() && std::prev(at)->second.end > begin) --at;
  const bool slot_alike = at != held_.end() && at->first == begin && at->second.end == end;
  if (slot_alike) {
    const BufferId loser = at->second.owner;
    at->second.owner = owner;
    return take_over(loser, taker, event, clock);
  }
  BufferId rival = kNoBuffer;
  while (at != held_.end() && at->first < end) {
    const auto [from, loser] = *at;
    const BufferId found = take_over(loser.owner, taker, event, clock);
    if (rival == kNoBuffer) rival = found;
    at = held_.erase(at);
    if (from < begin) held_.emplace(from, Held{.owner = loser.owner, .end = begin});
    if (loser.end > end) {
      held_.emplace(end, loser);
      break;
    }
  }
  held_.emplace(begin, Held{.owner = owner, .end = end});
  return rival;
}

BufferId* HazardFinder::unit_at(std::int64_t address) {
  const auto offset = static_cast<std::size_t>(offset_of(address));
  if (offset >= units_.most) return nullptr;
  std::vector<BufferId>& owners = units_.owners[static_cast<std::size_t>(region_of(address))];
  constexpr std::size_t kFirst = 16;
  if (offset >= owners.size()) owners.resize(std::max(2 * offset, kFirst), kNoBuffer);
  return &owners[offset];
}

BufferId HazardFinder::take_over(BufferId loser, BufferId taker, EventId event,
                                 const Clock& clock) {
  State& state = state_of(loser);
  // Somebody who takes over what is left of it is no second hazard for the same reader.
  if (state.taken_by == kNone) {
    state.taken_by = event;
    state.taker = taker;
  }
  // Once the last use is over, so is the write before it, also where the course does not tell.
  const bool races = beside(state.last_use, event, clock);
  if (races && state.raced != state.last_use) {
    state.raced = state.last_use;
    add(loser, taker, event, state.last_use, true, false);
  }
  if (races && beside(state.written_by, event, clock)) return loser;
  const auto rival = rival_.find(loser);
  if (rival == rival_.end()) return kNoBuffer;
  const State& later = state_of(rival->second);
  const bool still = beside(later.last_use, event, clock) && beside(later.written_by, event, clock);
  return still ? rival->second : kNoBuffer;
}

// Layers of one piece of work run one after another.
bool HazardFinder::beside(EventId other, EventId event, const Clock& clock) const {
  return events_[other].user != events_[event].user && !over(other, clock);
}

void HazardFinder::read(BufferId buffer, EventId event, const Clock& clock, bool window) {
  if (plan_.at(buffer) == kNowhere) return;
  State& state = state_of(buffer);
  if (state.taken_by != kNone) {
    const bool same = events_[state.taken_by].user == events_[event].user;
    const bool ordered = window || same || over(state.taken_by, clock);
    add(buffer, state.taker, state.taken_by, event, !ordered, window);
  }
  state.last_use = event;
}

void HazardFinder::work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock& clock) {
  const MemoryUser user{.rank = rank, .entry = work.entry, .kind = work.kind};
  const EventId event = note(user, clock.now(), clock.now());
  of_this_work_.clear();
  if (last_ == kNone || work.entry >= events_[last_].user.entry) last_ = event;
  BufferId handing_on = kNoBuffer;
  if (fed_by != kNoBuffer) read(fed_by, event, clock);
  if (has_receives_) {
    const BufferId received = received_by(table_, rank, work);
    if (received != kNoBuffer) read(received, event, clock);
  }
  for_each_layer(table_, rank, work, [&](std::int32_t layer) {
    const LayerFacts& facts = table_.facts(rank, work.chunk, layer);
    for (const Access& access : accesses_of(table_, rank, work, layer)) {
      const BufferId tensor = plan_.tensor_of(access.buffer);
      if (access.writes && tensor == access.buffer) {
        write(tensor, facts.bytes[as_index(access.kind)], event, clock);
      } else {  // where it is another layer's, its maker has written it
        read(tensor, event, clock);
      }
    }
    if (is_backward(work.kind) && facts.hands_on) {
      handing_on = table_.id(rank, work.chunk, layer, work.microbatch, BufferKind::GradInput);
    }
  });
  if (handing_on == kNoBuffer) return;
  // The send of the last one is over by the end of this chunk of the model, and no sooner.
  if (handed_on_ != kNoBuffer) read(handed_on_, event, clock, true);
  handed_on_ = handing_on;
}

// No backward ends the send of the last one, but the step does, behind all work of the rank.
void HazardFinder::end() {
  if (handed_on_ == kNoBuffer) return;
  of_this_work_.clear();
  read(handed_on_, last_, Clock(nullptr, events_[last_].point), true);
}

void HazardFinder::sent(const Sending& sending, const Clock& clock) {
  if (table_.layers(sending.rank, sending.chunk) == 0) return;
  const bool forward = sending.kind == Kind::SendForward;
  const std::int32_t layer = forward ? table_.layers(sending.rank, sending.chunk) - 1 : 0;
  const EventId event = note({.rank = sending.rank, .entry = sending.entry, .kind = sending.kind},
                             clock.now(), sending.received);
  read(table_.id(sending.rank, sending.chunk, layer, sending.microbatch,
                 forward ? BufferKind::Output : BufferKind::GradInput),
       event, clock);
}

void HazardFinder::receiving(const Receiving& receiving, const Clock& clock) {
  if (!has_receives_) return;
  const EventId event =
      note({.rank = receiving.rank, .entry = receiving.entry, .kind = receiving.kind}, clock.now(),
           clock.now());
  const BufferKind kind = received_kind(receiving.kind);
  write(table_.received(receiving.rank, receiving.chunk, receiving.microbatch, kind),
        table_.bytes_received(receiving.rank, receiving.chunk, kind), event, clock);
}

std::string_view name_of(HazardKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"static-input", "grad-output", "pool",
                                                   "p2p-window"};
  return kNames[as_index(kind)];
}

HazardKind kind_of(const Hazard& hazard) {
  const bool sent = hazard.window || is_send(hazard.reader.kind);
  if (sent && hazard.victim.kind == BufferKind::GradInput) return HazardKind::P2pWindow;
  if (hazard.victim.kind == BufferKind::StaticInput) return HazardKind::StaticInput;
  if (hazard.victim.kind == BufferKind::GradOutput) return HazardKind::GradOutput;
  return HazardKind::Pool;
}

}  // namespace capo
