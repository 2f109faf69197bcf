#include "run/processes/own_rank.h"

#include <utility>

namespace capo::run {

Program with_ends_apart(Program program, const Division& division) {
  for (OpPart& part : program.parts) {
    if (part.kind != OpPart::Kind::Deliver && part.kind != OpPart::Kind::Delivered) continue;
    const Channel& channel = program.transfers[part.to].channel;
    if (division.home(channel.sender) == division.home(channel.receiver)) continue;
    part.kind = part.end == End::Send ? OpPart::Kind::Deliver : OpPart::Kind::Delivered;
  }
  return program;
}

OwnProgram program_of_ranks(const Program& whole, const RankRange& ranks) {
  OwnProgram own;
  own.program.rank_of_stream = whole.rank_of_stream;
  own.program.exchanges = whole.exchanges;
  std::vector<std::uint32_t> number(whole.ops.size(), kNoOp);
  for (std::uint32_t id = 0; id < whole.ops.size(); ++id) {
    Op op = whole.ops[id];
    if (!ranks.contains(whole.rank_of_stream[op.stream])) continue;
    number[id] = static_cast<std::uint32_t>(own.op_of.size());
    own.op_of.push_back(id);
    const auto first = static_cast<std::uint32_t>(own.program.parts.size());
    own.program.parts.insert(own.program.parts.end(), whole.parts.begin() + op.first_part,
                             whole.parts.begin() + op.end_part);
    op.first_part = first;
    op.end_part = static_cast<std::uint32_t>(own.program.parts.size());
    own.program.ops.push_back(op);
    auto& waits = own.program.waits.emplace_back();
    for (const std::uint32_t before : whole.waits[id]) {
      if (number[before] != kNoOp) waits.push_back(number[before]);
    }
  }
  own.program.transfers = whole.transfers;
  for (Transfer& transfer : own.program.transfers) {
    for (std::uint32_t& end : transfer.ends) end = end == kNoOp ? kNoOp : number[end];
  }
  return own;
}

}  // namespace capo::run
