#include "run/processes/own_rank.h"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

using Streams = std::map<std::int32_t, std::uint32_t>;

// The streams that an op runs on, by process: its own, and of a reduction or a crossing that of the
// first member of each other process.
Streams streams_of(const Program& program, const Op& op, const Division& division) {
  Streams streams{{division.home(program.rank_of_stream[op.stream]), op.stream}};
  for (std::uint32_t at = op.first_part; at < op.end_part; ++at) {
    const OpPart& part = program.parts[at];
    if (!meets(part)) continue;
    const bool reduces = part.kind == OpPart::Kind::Reduce;
    const auto& ranks =
        reduces ? program.reductions[part.to].ranks : program.crossings[part.to].ranks;
    const auto& on = reduces ? program.reduced_on[part.to] : program.crossings[part.to].streams;
    for (std::size_t member = 0; member < ranks.size(); ++member) {
      streams.try_emplace(division.home(ranks[member]), on[member]);
    }
  }
  return streams;
}

// An op that waited for a reduction or a crossing waits for those of all processes, of which each
// keeps its own.
class MeetingsApart {
 public:
  MeetingsApart(Program program, const Division& division) : whole_(std::move(program)) {
    apart_.rank_of_stream = whole_.rank_of_stream;
    apart_.exchanges = whole_.exchanges;
    apart_.reductions = whole_.reductions;
    apart_.reduced_on = whole_.reduced_on;
    apart_.crossings = whole_.crossings;
    for (std::uint32_t id = 0; id < whole_.ops.size(); ++id) {
      const Op& op = whole_.ops[id];
      auto& becomes = becomes_.emplace_back();
      for (const auto& [home, stream] : streams_of(whole_, op, division)) {
        becomes.push_back(static_cast<std::uint32_t>(apart_.ops.size()));
        add(id, stream);
      }
    }
    apart_.transfers = std::move(whole_.transfers);
    for (Transfer& transfer : apart_.transfers) {
      for (std::uint32_t& end : transfer.ends) end = end == kNoOp ? kNoOp : becomes_[end].front();
    }
  }

  Program taken() { return std::move(apart_); }

 private:
  void add(std::uint32_t id, std::uint32_t stream) {
    const Op& op = whole_.ops[id];
    const auto first = static_cast<std::uint32_t>(apart_.parts.size());
    apart_.parts.insert(apart_.parts.end(), whole_.parts.begin() + op.first_part,
                        whole_.parts.begin() + op.end_part);
    for (std::size_t at = first; at < apart_.parts.size(); ++at) {
      OpPart& part = apart_.parts[at];
      if (meets(part)) part.rank = whole_.rank_of_stream[stream];
    }
    apart_.ops.push_back({.stream = stream,
                          .first_part = first,
                          .end_part = static_cast<std::uint32_t>(apart_.parts.size())});
    auto& waits = apart_.waits.emplace_back();
    for (const std::uint32_t before : whole_.waits[id]) {
      for (const std::uint32_t became : becomes_[before]) {
        if (apart_.ops[became].stream != stream) waits.push_back(became);
      }
    }
  }

  Program whole_;
  Program apart_;
  std::vector<std::vector<std::uint32_t>> becomes_;  // by op
};

}  // namespace

Program with_ends_apart(Program program, const Division& division) {
  if (!program.reductions.empty() || !program.crossings.empty()) {
    program = MeetingsApart(std::move(program), division).taken();
  }
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
  own.program.reductions = whole.reductions;
  own.program.reduced_on = whole.reduced_on;
  own.program.crossings = whole.crossings;
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
