#include "testing/oracle_pipeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace capo::testing {

namespace {

std::optional<oracle::Operation::Kind> kind_of(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return oracle::Operation::Forward;
    case Kind::Backward:
    case Kind::BackwardInput:
      return oracle::Operation::Backward;
    case Kind::BackwardWeight:
      return oracle::Operation::Weight;
    case Kind::SendForward:
      return oracle::Operation::SendForward;
    case Kind::ReceiveForward:
      return oracle::Operation::ReceiveForward;
    case Kind::SendBackward:
      return oracle::Operation::SendBackward;
    case Kind::ReceiveBackward:
      return oracle::Operation::ReceiveBackward;
    case Kind::WaitSendForward:
      return oracle::Operation::WaitSendForward;
    case Kind::WaitSendBackward:
      return oracle::Operation::WaitSendBackward;
    default:
      return std::nullopt;
  }
}

oracle::Operation::Holds holds_of(Wait wait) {
  switch (wait) {
    case Wait::ByReader:
      break;
    case Wait::AtOnce:
      return oracle::Operation::Later;
    case Wait::AtNext:
      return oracle::Operation::MuchLater;
  }
  return oracle::Operation::Nobody;
}

oracle::Lines lines_of(Communicators communicators) {
  switch (communicators) {
    case Communicators::PerRank:
      break;
    case Communicators::PerPair:
      return oracle::Lines::OfThePair;
    case Communicators::PerEdge:
      return oracle::Lines::OfThePairAndDirection;
    case Communicators::PerDirection:
      return oracle::Lines::OfThePass;
    case Communicators::LazyHybrid:
      return oracle::Lines::OfThePairOrJoined;
  }
  return oracle::Lines::All;
}

}  // namespace

oracle::Pipeline oracle_pipeline(const Lowered& lowered, const StageMap& map,
                                 const Environment& environment) {
  oracle::Pipeline pipeline{
      .lines = lines_of(environment.layout()),
      .held = static_cast<int>(std::min<std::uint64_t>(environment.held(), oracle::kHoldsAll))};
  for (std::int32_t stage = 0; stage < map.stages(); ++stage)
    pipeline.home.push_back(map.home(stage).rank);
  for (std::size_t r = 0; r < lowered.ranks.size(); ++r) {
    auto& operations = pipeline.ranks.emplace_back();
    for (const Step& step : lowered.ranks[r]) {
      const auto kind = kind_of(step.kind);
      if (!kind) continue;
      operations.push_back({.kind = *kind,
                            .stage = map.stage_of(static_cast<std::int32_t>(r), step.chunk),
                            .microbatch = step.microbatch,
                            .joined = step.group == Group::Continues,
                            .holds = holds_of(step.wait),
                            .communicator = step.communicator});
    }
  }
  return pipeline;
}

}  // namespace capo::testing
