#include "core/frameworks/megatron/calls.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace capo {

namespace {

// One call transfers up to four tensors. A send names the entry that made its tensor, a receive the
// chunk that reads it; nullopt: the call has no such operation.
struct Call {
  std::optional<std::uint32_t> send_next;  // the entry whose output leaves
  std::optional<std::uint32_t> send_prev;
  std::optional<std::int32_t> receive_prev;  // the chunk
  std::optional<std::int32_t> receive_next;
};

// The forwards of one rank, or its backwards, turn by turn: a turn is one microbatch of one chunk
// of the model, and has one entry, or one for each layer of the chunk.
class EntriesByTurn {
 public:
  [[nodiscard]] std::size_t size() const { return begins_.size(); }
  [[nodiscard]] bool empty() const { return begins_.empty(); }
  [[nodiscard]] std::span<const std::uint32_t> operator[](std::size_t turn) const {
    const std::size_t end = turn + 1 < begins_.size() ? begins_[turn + 1] : entries_.size();
    return std::span(entries_).subspan(begins_[turn], end - begins_[turn]);
  }
  [[nodiscard]] std::uint32_t first(std::size_t turn) const { return entries_[begins_[turn]]; }
  [[nodiscard]] std::uint32_t last(std::size_t turn) const { return (*this)[turn].back(); }

  void begin() { begins_.push_back(static_cast<std::uint32_t>(entries_.size())); }
  void add(std::uint32_t entry) { entries_.push_back(entry); }

 private:
  std::vector<std::uint32_t> entries_;
  std::vector<std::uint32_t> begins_;
};

// The order of one rank, taken apart.
struct Program {
  EntriesByTurn forwards;
  EntriesByTurn backwards;
  std::size_t warmup = 0;  // turns forward before the first backward
};

// A chunk of the order has a place in the model: it is a layer of one of the model's chunks, or
// all of it.
struct LayerPlace {
  std::int32_t chunk = 0;  // of the model, from 1
  bool first = true;       // of its chunk
  bool last = true;
};

std::vector<LayerPlace> places_of(const RankOrder& order) {
  std::vector<LayerPlace> places;
  std::int32_t number = 0;
  for (const std::int32_t layers : order.model_chunks) {
    ++number;
    for (std::int32_t layer = 0; layer < layers; ++layer) {
      places.push_back({.chunk = number, .first = layer == 0, .last = layer + 1 == layers});
    }
  }
  while (std::cmp_less(places.size(), order.chunks)) places.push_back({.chunk = ++number});
  return places;
}

std::int32_t model_chunks_of(const RankOrder& order) {
  return order.model_chunks.empty() ? order.chunks
                                    : static_cast<std::int32_t>(order.model_chunks.size());
}

class RankCalls {
 public:
  RankCalls(const RankOrder& order, std::int32_t rank, std::int32_t ranks, MegatronCalls calls,
            bool combined)
      : order_(order.order),
        places_(places_of(order)),
        chunks_(model_chunks_of(order)),
        rank_(rank),
        ranks_(ranks),
        calls_(calls),
        by_layer_(!order.model_chunks.empty()),
        combined_(combined || by_layer_),
        received_forward_(as_index(chunks_)),
        received_backward_(as_index(chunks_)) {}

  // This is Megatron's loop with model chunks, which may be a single one.
  void run_interleaved(const Program& program) {
    program_ = &program;
    const std::size_t total = program.forwards.size();
    const std::size_t warmup = program.warmup;
    const std::size_t pairs = total - warmup;
    if (!first_rank()) call({.receive_prev = 1}, Wait::AtOnce);
    for (std::size_t k = 0; k < warmup && alive(); ++k) warm_up(k, warmup, total);
    for (std::size_t k = 0; k < pairs && alive(); ++k) steady(k, warmup, pairs);
    // Not the last rank: a pair follows its warm-up.
    if (pairs == 0) call({.receive_next = chunks_}, Wait::AtOnce);
    for (std::size_t k = pairs; k < total && alive(); ++k) cool_down(k, total);
  }

  // This is Megatron's loop without model chunks: every call is waited for.
  void run_plain(const Program& program) {
    program_ = &program;
    const std::size_t total = program.forwards.size();
    const std::size_t warmup = program.warmup;
    for (std::size_t k = 0; k < warmup; ++k) {
      if (!first_rank()) call({.receive_prev = 1}, Wait::AtOnce);
      forward(k);
      call({.send_next = output_of_forward(k)}, Wait::AtOnce);
    }
    if (total > warmup && !first_rank()) call({.receive_prev = 1}, Wait::AtOnce);
    for (std::size_t k = 0; k < total - warmup; ++k) {
      forward(k + warmup);
      Call turn{.send_next = output_of_forward(k + warmup)};
      if (!last_rank()) turn.receive_next = 1;
      call(turn, Wait::AtOnce);
      backward(k);
      Call back{.send_prev = output_of_backward(k)};
      if (k + 1 < total - warmup && !first_rank()) back.receive_prev = 1;
      call(back, Wait::AtOnce);
    }
    for (std::size_t k = total - warmup; k < total; ++k) {
      if (!last_rank()) call({.receive_next = 1}, Wait::AtOnce);
      backward(k);
      call({.send_prev = output_of_backward(k)}, Wait::AtOnce);
    }
  }

  // Weight gradients and other entries keep their place behind the entry before them.
  void finish() {
    if (alive()) emit_others(static_cast<std::uint32_t>(order_.size()));
  }

  std::vector<Step> steps() { return std::move(steps_); }
  [[nodiscard]] const std::optional<RoutingFault>& fault() const { return fault_; }

 private:
  bool first_rank() const { return rank_ == 0; }
  bool last_rank() const { return rank_ == ranks_ - 1; }
  bool overlaps() const { return calls_ != MegatronCalls::Batch; }
  bool flushes() const { return calls_ == MegatronCalls::Flush; }
  bool alive() const { return !fault_; }

  // The chunk of the model that an entry belongs to.
  std::int32_t chunk_of(std::uint32_t entry) const {
    return places_[order_[entry].chunk.index()].chunk;
  }
  std::int32_t chunk_of(const EntriesByTurn& turns, std::size_t k) const {
    return chunk_of(turns.first(k % turns.size()));
  }

  // The chunk that the arrival for the iteration after k is for; nullopt if nothing arrives.
  std::optional<std::int32_t> arriving(std::size_t k, bool forward) const {
    const auto& sequence = forward ? program_->forwards : program_->backwards;
    const bool leads = forward ? first_rank() : last_rank();
    if (!leads) return chunk_of(sequence, k + 1);
    const auto lag = as_index(ranks_ - 1);
    if (k < lag) return std::nullopt;
    const std::int32_t made = chunk_of(sequence, k - lag);
    if (made == (forward ? chunks_ : 1)) return std::nullopt;
    return forward ? made + 1 : made - 1;
  }

  std::optional<std::uint32_t> output_of_forward(std::size_t k) const {
    const std::uint32_t entry = program_->forwards.last(k);
    if (last_rank() && chunk_of(entry) == chunks_) return std::nullopt;
    return entry;
  }
  std::optional<std::uint32_t> output_of_backward(std::size_t k) const {
    const std::uint32_t entry = program_->backwards.last(k);
    if (first_rank() && chunk_of(entry) == 1) return std::nullopt;
    return entry;
  }

  void warm_up(std::size_t k, std::size_t warmup, std::size_t total) {
    const auto receive = k + 1 == total ? std::nullopt : arriving(k, true);
    if (flushes() && k > 0 && reads_from_before(program_->forwards.first(k))) take_handle(true, k);
    if (flushes() && !first_rank()) {
      call({.receive_prev = receive}, Wait::ByReader);
    }
    forward(k);
    Call after{.send_next = output_of_forward(k)};
    if (!flushes() || first_rank()) after.receive_prev = receive;
    const bool last = k + 1 == warmup && warmup < total;
    if (last && !overlaps() && !last_rank()) after.receive_next = chunks_;
    call(after, flushes() ? Wait::ByReader : Wait::AtOnce);
    if (last && overlaps() && !last_rank()) call({.receive_next = chunks_}, Wait::ByReader);
  }

  void steady(std::size_t k, std::size_t warmup, std::size_t pairs) {
    const std::size_t f = k + warmup;
    const auto receive = k + 1 == pairs ? std::nullopt : arriving(f, true);
    Call after_forward{.send_next = output_of_forward(f), .receive_prev = receive};
    Call after_backward{.send_prev = output_of_backward(k), .receive_next = arriving(k, false)};
    if (overlaps() && reads_from_before(program_->forwards.first(f))) take_handle(true, f);
    if (!combined_) {
      forward(f);
      if (overlaps()) call(after_forward, Wait::ByReader);
    }
    if (overlaps() && alive() && reads_from_after(program_->backwards.first(k)))
      take_handle(false, k);
    if (combined_) {
      pair(f, k);
    } else {
      backward(k);
    }
    if (!overlaps()) {
      call({.send_next = after_forward.send_next,
            .send_prev = after_backward.send_prev,
            .receive_prev = after_forward.receive_prev,
            .receive_next = after_backward.receive_next},
           Wait::AtOnce);
      return;
    }
    if (combined_) call(after_forward, Wait::ByReader);
    call(after_backward, Wait::ByReader);
  }

  void cool_down(std::size_t k, std::size_t total) {
    const auto receive = k + 1 == total ? std::nullopt : arriving(k, false);
    if (flushes() && k > 0 && reads_from_after(program_->backwards.first(k))) take_handle(false, k);
    if (flushes() && !last_rank()) call({.receive_next = receive}, Wait::ByReader);
    backward(k);
    Call after{.send_prev = output_of_backward(k)};
    if (!flushes() || last_rank()) after.receive_next = receive;
    call(after, flushes() ? Wait::ByReader : Wait::AtOnce);
  }

  bool reads_from_before(std::uint32_t entry) const {
    return !(first_rank() && chunk_of(entry) == 1);
  }
  bool reads_from_after(std::uint32_t entry) const {
    return !(last_rank() && chunk_of(entry) == chunks_);
  }

  // Posted receives are waited for in the order of posting. In flush mode Megatron asserts that
  // there is one; else it waits for one if there is.
  void take_handle(bool forward, std::size_t k) {
    std::size_t& handles = forward ? handles_forward_ : handles_backward_;
    if (handles > 0) {
      --handles;
    } else if (flushes()) {
      fault_ = RoutingFault{.kind = RoutingFault::Kind::NoReceive,
                            .rank = rank_,
                            .entry = (forward ? program_->forwards : program_->backwards).first(k)};
    }
  }

  void forward(std::size_t k) { compute(program_->forwards[k]); }
  void backward(std::size_t k) { compute(program_->backwards[k]); }

  void compute(std::span<const std::uint32_t> layers) {
    if (!alive()) return;
    for (const std::uint32_t entry : layers) {
      emit_others(entry);
      if (entry == layers.front()) require_input(entry);
      emit_entry(entry, Group::Alone);
      emit_exchanges_of(entry);
    }
  }

  // Forward and backward of one step run as one: both inputs are there before either starts.
  void pair(std::size_t f, std::size_t b) {
    if (!alive()) return;
    const std::uint32_t forward = program_->forwards.first(f);
    const std::uint32_t backward = program_->backwards.first(b);
    if (chunk_of(forward) == chunk_of(backward) &&
        order_[forward].microbatch == order_[backward].microbatch) {
      fault_ =
          RoutingFault{.kind = RoutingFault::Kind::OwnForward, .rank = rank_, .entry = backward};
      return;
    }
    emit_others(std::min(forward, backward));
    require_input(forward);
    if (alive()) require_input(backward);
    if (by_layer_) {
      interleave(program_->forwards[f], program_->backwards[b]);
    } else {
      emit_entry(forward, Group::Opens);
      emit_entry(backward, Group::Continues);
    }
  }

  // Graphs of layers are launched on one stream, in the order in which they are listed.
  void interleave(std::span<const std::uint32_t> forwards,
                  std::span<const std::uint32_t> backwards) {
    std::vector<std::uint32_t> layers(forwards.size() + backwards.size());
    std::merge(forwards.begin(), forwards.end(), backwards.begin(), backwards.end(),
               layers.begin());
    for (const std::uint32_t entry : layers) {
      emit_others(entry);
      emit_entry(entry, Group::Alone);
      emit_exchanges_of(entry);
    }
  }

  void require_input(std::uint32_t entry) {
    const Entry& of = order_[entry];
    const bool forward = of.kind == Kind::Forward;
    if (forward ? !reads_from_before(entry) : !reads_from_after(entry)) return;
    const auto& received = forward ? received_forward_ : received_backward_;
    if (received[ChunkId(chunk_of(entry)).index()] > of.microbatch) return;
    fault_ = RoutingFault{.kind = RoutingFault::Kind::NoInput, .rank = rank_, .entry = entry};
  }

  void emit_entry(std::uint32_t entry, Group group) {
    if (!alive()) return;
    const Entry& of = order_[entry];
    steps_.push_back(to_step(of.action(), entry, group));
  }

  // The entries before `until` that are neither forward nor backward and were not emitted yet.
  void emit_others(std::uint32_t until) {
    for (; others_ < until; ++others_) {
      const Kind kind = order_[others_].kind;
      if (kind != Kind::Forward && !is_backward(kind) && kind != Kind::Idle) {
        emit_entry(others_, Group::Alone);
      }
    }
  }

  // Exchanges right behind a computation belong to it, and come before the call that sends the
  // result of both.
  void emit_exchanges_of(std::uint32_t computation) {
    const bool forward = order_[computation].kind == Kind::Forward;
    for (others_ = std::max(others_, computation + 1); others_ < order_.size(); ++others_) {
      const Kind kind = order_[others_].kind;
      if (!is_exchange(kind) || is_forward_exchange(kind) != forward) return;
      emit_entry(others_, Group::Alone);
    }
  }

  // One call of Megatron's: a fused group in batch mode, else up to four operations in the order
  // that lets even and odd ranks meet.
  void call(const Call& call, Wait wait) {
    if (!alive()) return;
    const std::size_t before = steps_.size();
    const bool even = rank_ % 2 == 0;
    if (calls_ == MegatronCalls::Batch) {
      send_prev(call, wait);
      receive_prev(call, wait);
      send_next(call, wait);
      receive_next(call, wait);
      for (std::size_t i = before; i < steps_.size(); ++i) {
        steps_[i].group = steps_.size() - before == 1 ? Group::Alone
                          : i == before               ? Group::Opens
                                                      : Group::Continues;
      }
    } else if (even) {
      send_next(call, wait);
      receive_prev(call, wait);
      send_prev(call, wait);
      receive_next(call, wait);
    } else {
      receive_prev(call, wait);
      send_next(call, wait);
      receive_next(call, wait);
      send_prev(call, wait);
    }
  }

  void send_next(const Call& call, Wait wait) {
    // The output is freed behind its send, so the computation waits for it: with EP overlap not
    // this stream but the one that communicates.
    const Wait freed = combined_ ? Wait::ByReader : Wait::AtOnce;
    if (call.send_next)
      send(*call.send_next, Kind::SendForward, wait == Wait::AtOnce ? wait : freed);
  }
  void send_prev(const Call& call, Wait wait) {
    if (call.send_prev)
      send(*call.send_prev, Kind::SendBackward, wait == Wait::AtOnce ? wait : Wait::AtNext);
  }
  void receive_prev(const Call& call, Wait wait) {
    if (call.receive_prev) receive(*call.receive_prev, true, wait);
  }
  void receive_next(const Call& call, Wait wait) {
    if (call.receive_next) receive(*call.receive_next, false, wait);
  }

  // With two ranks the next and the previous are the same, and what odd ranks send goes through a
  // second communicator.
  bool communicator(bool sends) const {
    const bool has_two = calls_ != MegatronCalls::Batch && ranks_ == 2;
    return has_two && (rank_ % 2 == 1) == sends;
  }

  void send(std::uint32_t entry, Kind kind, Wait wait) {
    const Entry& of = order_[entry];
    issue({.kind = kind, .chunk = of.chunk, .microbatch = of.microbatch}, entry, wait);
  }

  // A forward's input is read by the first layer of the chunk, a backward's by the last.
  std::int32_t reading_layer(std::int32_t chunk, bool forward) const {
    const auto before = std::partition_point(
        places_.begin(), places_.end(),
        [&](const LayerPlace& place) { return place.chunk < chunk + (forward ? 0 : 1); });
    return static_cast<std::int32_t>(before - places_.begin()) + (forward ? 1 : 0);
  }

  void receive(std::int32_t chunk, bool forward, Wait wait) {
    std::int32_t& count =
        (forward ? received_forward_ : received_backward_)[ChunkId(chunk).index()];
    if (wait != Wait::AtOnce) ++(forward ? handles_forward_ : handles_backward_);
    issue({.kind = forward ? Kind::ReceiveForward : Kind::ReceiveBackward,
           .chunk = reading_layer(chunk, forward),
           .microbatch = count++},
          kNoEntry, wait);
  }

  void issue(const Action& transfer, std::uint32_t entry, Wait wait) {
    Step step = to_step(transfer, entry);
    step.wait = wait;
    step.communicator = communicator(is_send(transfer.kind));
    steps_.push_back(step);
  }

  const std::vector<Entry>& order_;
  std::vector<LayerPlace> places_;  // by chunk of the order
  std::int32_t chunks_;             // of the model
  std::int32_t rank_;
  std::int32_t ranks_;
  MegatronCalls calls_;
  bool by_layer_;  // entries are layers, which only the overlap of exchanges captures
  bool combined_;  // forward and backward of a step run as one
  const Program* program_ = nullptr;
  std::uint32_t others_ = 0;
  std::vector<std::int32_t> received_forward_;  // by chunk
  std::vector<std::int32_t> received_backward_;
  std::size_t handles_forward_ = 0;  // posted, not yet waited for
  std::size_t handles_backward_ = 0;
  std::vector<Step> steps_;
  std::optional<RoutingFault> fault_;
};

// Whether an entry is the next layer of a turn that has begun. Forwards ascend through the layers
// of a chunk, backwards descend.
bool goes_on(const std::vector<Entry>& order, const EntriesByTurn& turns, const Entry& entry,
             bool forward) {
  if (turns.empty()) return false;
  const Entry& before = order[turns.last(turns.size() - 1)];
  return entry.microbatch == before.microbatch && entry.chunk == before.chunk + (forward ? 1 : -1);
}

// Whether a turn begins with an entry, and the one before it has come to its end.
bool begins_turn(const RankOrder& order, const std::vector<LayerPlace>& places,
                 const EntriesByTurn& turns, const Entry& entry, bool forward) {
  const LayerPlace& place = places[entry.chunk.index()];
  if (!(forward ? place.first : place.last)) return false;
  if (turns.empty()) return true;
  const LayerPlace& before = places[order.order[turns.last(turns.size() - 1)].chunk.index()];
  return forward ? before.last : before.first;
}

// Takes an order apart into its forwards and backwards; false where Megatron's loop cannot have
// made it, with the entry in `at`.
bool take_apart(const RankOrder& order, Program& program, std::uint32_t& at) {
  const std::vector<LayerPlace> places = places_of(order);
  std::vector<std::int32_t> forwards(as_index(order.chunks));
  std::vector<std::int32_t> backwards(forwards.size());
  std::size_t before_first_backward = 0;
  for (at = 0; at < order.order.size(); ++at) {
    const Entry& entry = order.order[at];
    if (is_transfer(entry.kind)) return false;
    if (entry.kind != Kind::Forward && !is_backward(entry.kind)) continue;
    const bool forward = entry.kind == Kind::Forward;
    // First in, first out, for each chunk.
    std::int32_t& next = (forward ? forwards : backwards)[entry.chunk.index()];
    if (entry.microbatch != next++) return false;
    EntriesByTurn& turns = forward ? program.forwards : program.backwards;
    if (!begins_turn(order, places, turns, entry, forward)) {
      if (!goes_on(order.order, turns, entry, forward)) return false;
      turns.add(at);
      continue;
    }
    if (forward) {
      // After the warm-up each forward has its backward before the next forward comes.
      const bool paired =
          program.forwards.size() + 1 == before_first_backward + program.backwards.size();
      if (!program.backwards.empty() && !paired) return false;
    } else if (program.backwards.empty()) {
      before_first_backward = program.forwards.size();
    }
    turns.begin();
    turns.add(at);
  }
  program.warmup = before_first_backward == 0 ? 0 : before_first_backward - 1;
  return before_first_backward > 0 && program.forwards.size() == program.backwards.size();
}

// Whether every forward is over before the first backward begins.
bool all_forwards_first(const Program& program) {
  return program.warmup + 1 >= program.forwards.size() &&
         program.forwards.last(program.forwards.size() - 1) < program.backwards.first(0);
}

// Forwards up to the first backward can all be warm-up, or all but one. Megatron's warm-ups differ
// by a fixed number from rank to rank, so the last rank, which has the shortest, tells.
void settle_warmups(std::vector<Program>& programs, bool interleaved) {
  const std::size_t last = programs.size() - 1;
  for (std::size_t r = 0; r < last; ++r) {
    Program& program = programs[r];
    if (!all_forwards_first(program)) continue;
    const std::size_t expected = programs[last].warmup + (interleaved ? 2 : 1) * (last - r);
    program.warmup =
        expected >= program.forwards.size() ? program.forwards.size() : program.forwards.size() - 1;
  }
}

// Megatron runs the loop with model chunks where there are several, where it overlaps, and where
// the warm-up is that loop's.
bool is_interleaved(const Schedule& schedule, const std::vector<Program>& programs,
                    MegatronCalls calls) {
  if (calls != MegatronCalls::Batch) return true;
  for (std::size_t r = 0; r < programs.size(); ++r) {
    if (model_chunks_of(schedule.ranks[r]) > 1) return true;
    if (!schedule.ranks[r].model_chunks.empty()) return true;  // layers are captured if it overlaps
    if (!all_forwards_first(programs[r]) && programs[r].warmup > programs.size() - 1 - r)
      return true;
  }
  return false;
}

// The first rank whose warm-up is that of the loop without model chunks, which cannot overlap; with
// them, also with a single one, it would be twice as long.
std::optional<std::int32_t> rank_of_plain_loop(const Schedule& schedule,
                                               const std::vector<Program>& programs) {
  const std::size_t last = programs.size() - 1;
  for (std::size_t r = 0; r < last; ++r) {
    // An order of layers has one more, since its first pair begins with a forward.
    const std::size_t more = schedule.ranks[r].model_chunks.empty() ? 0 : 1;
    if (model_chunks_of(schedule.ranks[r]) == 1 && !all_forwards_first(programs[r]) &&
        programs[r].warmup == last - r + more) {
      return static_cast<std::int32_t>(r);
    }
  }
  return std::nullopt;
}

// The entry that a receive is for. A rank that asks for another input than comes has a fault and
// goes on no further; what it posted before and nobody reads is for the entry that it stops at.
void name_readers(const RankOrder& order, const std::optional<RoutingFault>& fault,
                  std::vector<Step>& steps) {
  std::vector<std::vector<std::uint32_t>> forwards(as_index(order.chunks));
  std::vector<std::vector<std::uint32_t>> backwards(forwards.size());
  for (std::uint32_t at = 0; at < order.order.size(); ++at) {
    const Entry& entry = order.order[at];
    if (entry.kind == Kind::Forward) forwards[entry.chunk.index()].push_back(at);
    if (is_backward(entry.kind)) backwards[entry.chunk.index()].push_back(at);
  }
  for (Step& step : steps) {
    if (!is_receive(step.kind)) continue;
    const auto& readers =
        (step.kind == Kind::ReceiveForward ? forwards : backwards)[step.chunk.index()];
    const auto k = step.microbatch.index();
    CAPO_ASSERT(k < readers.size() || fault, "what is received has a reader");
    step.entry = k < readers.size() ? readers[k] : fault->entry;
  }
}

}  // namespace

MegatronLowering lower_megatron(const Schedule& schedule, MegatronCalls calls, bool ep_overlap) {
  MegatronLowering result;
  const auto ranks = static_cast<std::int32_t>(schedule.ranks.size());
  std::vector<Program> programs(schedule.ranks.size());
  for (std::int32_t r = 0; r < ranks; ++r) {
    const RankOrder& rank = schedule.ranks[as_index(r)];
    std::uint32_t at = 0;
    if (take_apart(rank, programs[as_index(r)], at)) continue;
    const bool ends = at >= rank.order.size();
    result.faults.push_back(
        {.kind = RoutingFault::Kind::Form, .rank = r, .entry = ends ? kNoEntry : at});
  }
  result.lowered.ranks.resize(schedule.ranks.size());
  if (!result.faults.empty() || programs.empty()) return result;
  if (calls != MegatronCalls::Batch) {
    if (const auto rank = rank_of_plain_loop(schedule, programs)) {
      result.faults.push_back({.kind = RoutingFault::Kind::NoOverlap, .rank = *rank});
      return result;
    }
  }
  const bool interleaved = is_interleaved(schedule, programs, calls);
  settle_warmups(programs, interleaved);
  for (std::int32_t r = 0; r < ranks; ++r) {
    const RankOrder& rank = schedule.ranks[as_index(r)];
    RankCalls run(rank, r, ranks, calls, interleaved && ep_overlap);
    if (interleaved && ranks > 1) {
      run.run_interleaved(programs[as_index(r)]);
    } else {
      run.run_plain(programs[as_index(r)]);
    }
    run.finish();
    if (run.fault()) result.faults.push_back(*run.fault());
    std::vector<Step> steps = run.steps();
    name_readers(rank, run.fault(), steps);
    result.lowered.ranks[as_index(r)] = StepList(std::move(steps));
  }
  return result;
}

}  // namespace capo
