// The input gradients that leave a step, of program_parts.h.

#include "run/execute/program_parts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace capo::run {

GivenOut::GivenOut(const BufferTable& table, const Handovers& handovers,
                   const ExchangesOfProgram& exchanges, Program& program)
    : table_(table),
      handovers_(handovers),
      exchanges_(exchanges),
      program_(program),
      cells_(table),
      handed_on_(table.ranks()) {
}

void GivenOut::note_run(std::int32_t rank, const Work& work, std::uint32_t stream) {
  BufferId handing_on = kNoBuffer;
  const auto each = [&](std::int32_t layer) {
    const BufferId made =
        table_.id(rank, work.chunk, layer, work.microbatch, BufferKind::GradInput);
    const bool first = layer == 0;
    if (first && exchanges_.are_with(rank, work) && handovers_.gives_out(rank, work.chunk)) {
      collect(made);  // experts' rows go back from there
    } else if (table_.facts(rank, work.chunk, layer).hands_on) {
      handing_on = made;
    } else if (first && handovers_.leaves(rank, work.chunk)) {
      collect(made);
    }
  };
  if (work.layer != kAllLayers) {
    each(work.layer);
  } else {
    for (std::int32_t layer = table_.layers(rank, work.chunk); layer-- > 0;) each(layer);
  }
  if (handing_on == kNoBuffer) return;
  HandedOn& before = handed_on_[RankId(rank).index()];
  if (before.buffer != kNoBuffer) collect(before.buffer);
  before = {.buffer = handing_on, .stream = stream};
}

OpPart GivenOut::collecting(BufferId made) const {
  const Buffer of = table_.at(made);
  return {.kind = OpPart::Kind::Collect,
          .way = Way::Backward,
          .rank = of.rank,
          .from = made,
          .to = cells_.of(of.rank, of.chunk, of.microbatch)};
}

// Appends to the op at hand.
void GivenOut::collect(BufferId made) {
  program_.parts.push_back(collecting(made));
}

// The last op of each other stream of a stream's rank.
std::vector<std::uint32_t> GivenOut::last_beside(std::uint32_t stream) const {
  std::map<std::uint32_t, std::uint32_t> last;
  for (std::uint32_t op = 0; op < program_.ops.size(); ++op) {
    const std::uint32_t other = program_.ops[op].stream;
    if (other != stream && program_.rank_of_stream[other] == program_.rank_of_stream[stream])
      last[other] = op;
  }
  std::vector<std::uint32_t> ops;
  for (const auto& [other, op] : last) ops.push_back(op);
  return ops;
}

// Appends to the last op of the stream that made it. If the rank has other streams, an op of its
// own waits for them, since the step ends behind all that the rank does.
void GivenOut::end() {
  for (const HandedOn& left : handed_on_) {
    if (left.buffer == kNoBuffer) continue;
    if (auto others = last_beside(left.stream); !others.empty()) {
      const auto part = static_cast<std::uint32_t>(program_.parts.size());
      program_.parts.push_back(collecting(left.buffer));
      program_.ops.push_back({.stream = left.stream, .first_part = part, .end_part = part + 1});
      program_.waits.push_back(std::move(others));
      continue;
    }
    const auto last = std::find_if(program_.ops.rbegin(), program_.ops.rend(),
                                   [&](const Op& op) { return op.stream == left.stream; });
    program_.parts.insert(program_.parts.begin() + last->end_part, collecting(left.buffer));
    ++last->end_part;
    std::for_each(program_.ops.rbegin(), last, [](Op& op) {
      ++op.first_part;
      ++op.end_part;
    });
  }
}

}  // namespace capo::run
