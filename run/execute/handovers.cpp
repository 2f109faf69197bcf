// The handovers of program_parts.h.

#include "run/execute/program_parts.h"

namespace capo::run {

namespace {

class FedBy final : public CourseVisitor {
 public:
  explicit FedBy(std::map<WorkKey, BufferId>& buffers) : buffers_(buffers) {}

  void work(std::int32_t rank, const Work& work, BufferId fed_by, const Clock&) override {
    if (fed_by != kNoBuffer) buffers_[key_of(rank, work)] = fed_by;
  }
  void sent(const Sending&, const Clock&) override {}

 private:
  std::map<WorkKey, BufferId>& buffers_;
};

}  // namespace

Handovers::Handovers(const BufferTable& table, const Course& course)
    : table_(table), course_(course), cells_(table) {
  FedBy fed_by(fed_by_);
  run_course(table, course, fed_by);
}

Origin Handovers::origin_of(std::int32_t rank, const Work& work, std::int32_t layer) const {
  const bool backward = is_backward(work.kind);
  const std::int32_t behind = backward ? layer + 1 : layer - 1;
  if (behind >= 0 && behind < table_.layers(rank, work.chunk)) {
    const auto kind = backward ? BufferKind::GradInput : BufferKind::Output;
    return {Origin::Kind::Buffer, table_.id(rank, work.chunk, behind, work.microbatch, kind)};
  }
  if (const auto fed = fed_by_.find(key_of(rank, work)); fed != fed_by_.end()) {
    return {Origin::Kind::Buffer, fed->second};
  }
  const StageMap& map = *course_.map;
  const std::uint32_t cell = cells_.of(rank, work.chunk, work.microbatch);
  const std::int32_t maker =
      map.wired() ? map.neighbour(work.kind, map.stage_of(rank, work.chunk)) : kNoStage;
  return {maker == kNoStage ? Origin::Kind::Given : Origin::Kind::Landing, cell};
}

bool Handovers::leaves(std::int32_t rank, std::int32_t chunk) const {
  const StageMap& map = *course_.map;
  return !map.wired() || map.before(map.stage_of(rank, chunk)) == kNoStage;
}

bool Handovers::gives_out(std::int32_t rank, std::int32_t chunk) const {
  return leaves(rank, chunk) || table_.facts(rank, chunk, 0).hands_on;
}

}  // namespace capo::run
