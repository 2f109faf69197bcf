// Laws of programs, over the published schedules and Megatron's: all work is there once, after
// everything that it depends on; every message is delivered once, between its maker and its reader,
// and each of its sides begins and finishes on its own rank; everything that leaves the step is
// collected.
//
// Dependencies are said here by stages alone, and "behind" means by the streams and waits of the
// program: not that it was launched before, but that no engine may run it earlier.

#include "core/frameworks/megatron/orders.h"
#include "core/plan/accesses.h"
#include "schedules/catalogue.h"
#include "tests/run/execute/program_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

constexpr Environment kPairs{.communicators = Communicators::PerPair,
                             .transfers = TransferMode::Buffered};

// The place of an part in the order of launches.
struct At {
  std::size_t op = 0;
  std::size_t part = 0;
};

// Knows for every op which ops are over before it begins.
class Behind {
 public:
  explicit Behind(const Program& program) {
    std::map<std::uint32_t, std::size_t> last;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      auto& row = over_.emplace_back(program.ops.size(), false);
      const auto join = [&](std::size_t before) {
        row[before] = true;
        for (std::size_t i = 0; i < before; ++i) row[i] = row[i] || over_[before][i];
      };
      const auto on_stream = last.find(program.ops[op].stream);
      if (on_stream != last.end()) join(on_stream->second);
      for (const std::uint32_t before : program.waits[op]) join(before);
      last[program.ops[op].stream] = op;
    }
  }
  [[nodiscard]] bool operator()(At before, At after) const {
    return before.op == after.op ? before.part <= after.part : over_[after.op][before.op];
  }

 private:
  std::vector<std::vector<bool>> over_;
};

// One layer's share of a work.
// Rank, chunk, layer, microbatch, and which of F, B and W.
using Share = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, Kind>;

Kind phase(Kind kind) {
  return kind == Kind::BackwardInput ? Kind::Backward : kind;
}

class Laws {
 public:
  Laws(const Launched& launched, std::string name)
      : table_(launched.step.table()),
        course_(launched.step.course()),
        program_(launched.program),
        name_(std::move(name)),
        behind_(program_),
        cells_(table_) {
    SCOPED_TRACE(name_);
    waits_are_earlier_ops_of_other_streams();
    all_work_is_there_once();
    all_work_is_behind_what_it_depends_on();
    origins_are_where_makers_put_it();
    messages_are_delivered_once();
    both_sides_begin_and_finish();
    what_leaves_is_collected_once();
  }

  [[nodiscard]] std::size_t deliveries() const { return deliveries_; }
  [[nodiscard]] std::size_t exchanges() const { return program_.exchanges.size(); }

 private:
  template <typename Visit>
  void for_each_part(Visit visit) const {
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      for (std::size_t at = program_.ops[op].first_part; at < program_.ops[op].end_part; ++at) {
        visit(program_.parts[at], At{op, at});
      }
    }
  }

  void waits_are_earlier_ops_of_other_streams() const {
    ASSERT_EQ(program_.waits.size(), program_.ops.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      ASSERT_LT(program_.ops[op].stream, program_.rank_of_stream.size());
      for (const std::uint32_t before : program_.waits[op]) {
        ASSERT_LT(before, op);
        EXPECT_NE(program_.ops[before].stream, program_.ops[op].stream);
      }
    }
  }

  void all_work_is_there_once() {
    std::size_t works = 0;
    for_each_part([&](const OpPart& part, At at) {
      if (part.kind != OpPart::Kind::Work) return;
      ++works;
      for_each_layer(table_, part.rank, part.work, [&](std::int32_t layer) {
        const Work& work = part.work;
        const bool fresh =
            at_.try_emplace({part.rank, work.chunk, layer, work.microbatch, phase(work.kind)}, at)
                .second;
        EXPECT_TRUE(fresh);
      });
    });
    std::size_t expected = 0;
    for (std::size_t r = 0; r < course_.work.size(); ++r) {
      expected += course_.work[r].size();
      const auto rank = static_cast<std::int32_t>(r);
      for (const Work& work : course_.work[r]) {
        for_each_layer(table_, rank, work, [&](std::int32_t layer) {
          EXPECT_TRUE(at_.contains({rank, work.chunk, layer, work.microbatch, phase(work.kind)}));
        });
      }
    }
    EXPECT_EQ(works, expected);
  }

  // The stage's first or last layer.
  [[nodiscard]] Share end_of(std::int32_t stage, Kind kind, std::int32_t microbatch) const {
    const StageMap::Place& home = course_.map->home(stage);
    const std::int32_t layer = kind == Kind::Forward ? table_.layers(home.rank, home.chunk) - 1 : 0;
    return {home.rank, home.chunk, layer, microbatch, kind};
  }

  void expect_behind(const Share& before, At at) const {
    const auto found = at_.find(before);
    ASSERT_TRUE(found != at_.end());
    EXPECT_TRUE(behind_(found->second, at));
  }

  void all_work_is_behind_what_it_depends_on() const {
    for (const auto& [share, at] : at_) {
      const auto& [rank, chunk, layer, microbatch, kind] = share;
      const std::int32_t stage = course_.map->stage_of(rank, chunk);
      const auto same = [&](std::int32_t other, Kind of) {
        expect_behind({rank, chunk, other, microbatch, of}, at);
      };
      if (kind == Kind::Forward) {
        const std::int32_t maker = course_.map->before(stage);
        if (layer > 0) same(layer - 1, kind);
        if (layer == 0 && maker != kNoStage) expect_behind(end_of(maker, kind, microbatch), at);
      } else if (kind == Kind::Backward) {
        const std::int32_t maker = course_.map->after(stage);
        same(layer, Kind::Forward);
        const bool last = layer + 1 == table_.layers(rank, chunk);
        if (!last) same(layer + 1, kind);
        if (last && maker != kNoStage) expect_behind(end_of(maker, kind, microbatch), at);
      } else {
        same(layer, Kind::Backward);
      }
    }
  }

  [[nodiscard]] Origin expected_origin(const OpPart& part) const {
    const Work& work = part.work;
    const bool forward = work.kind == Kind::Forward;
    const std::int32_t last = table_.layers(part.rank, work.chunk) - 1;
    const std::int32_t layer = work.layer != kAllLayers ? work.layer : forward ? 0 : last;
    const auto made = forward ? BufferKind::Output : BufferKind::GradInput;
    if (layer != (forward ? 0 : last)) {
      return {
          Origin::Kind::Buffer,
          table_.id(part.rank, work.chunk, forward ? layer - 1 : layer + 1, work.microbatch, made)};
    }
    const std::int32_t stage = course_.map->stage_of(part.rank, work.chunk);
    const std::int32_t maker = forward ? course_.map->before(stage) : course_.map->after(stage);
    const std::uint32_t cell = cells_.of(part.rank, work.chunk, work.microbatch);
    if (maker == kNoStage) return {Origin::Kind::Given, cell};
    const StageMap::Place& home = course_.map->home(maker);
    if (home.rank != part.rank) return {Origin::Kind::Landing, cell};
    const std::int32_t end = forward ? table_.layers(home.rank, home.chunk) - 1 : 0;
    return {Origin::Kind::Buffer, table_.id(home.rank, home.chunk, end, work.microbatch, made)};
  }

  // The law holds of works whose rows no exchange has moved.
  void origins_are_where_makers_put_it() const {
    for_each_part([&](const OpPart& part, At) {
      if (part.kind != OpPart::Kind::Work || part.work.kind == Kind::BackwardWeight) return;
      EXPECT_EQ(part.way == Way::Forward, part.work.kind == Kind::Forward);
      const bool moved =
          part.origin.kind == Origin::Kind::Exchanged || part.origin.kind == Origin::Kind::Permuted;
      if (moved) return;
      EXPECT_EQ(part.origin, expected_origin(part));
    });
  }

  [[nodiscard]] std::set<std::int32_t> ranks_of(std::size_t a, std::size_t b) const {
    return {program_.rank_of_stream[program_.ops[a].stream],
            program_.rank_of_stream[program_.ops[b].stream]};
  }

  void messages_are_delivered_once() {
    std::set<std::pair<std::uint32_t, Way>> delivered;
    for_each_part([&](const OpPart& part, At at) {
      if (part.kind != OpPart::Kind::Deliver) return;
      ++deliveries_;
      const Transfer& transfer = program_.transfers[part.to];
      EXPECT_TRUE(delivered.insert({transfer.cell, part.way}).second);
      const Cells::Cell to = cells_.at(transfer.cell);
      const bool forward = part.way == Way::Forward;
      const Kind kind = forward ? Kind::Forward : Kind::Backward;
      const std::int32_t stage = course_.map->stage_of(to.rank, to.chunk);
      const std::int32_t maker = forward ? course_.map->before(stage) : course_.map->after(stage);
      ASSERT_NE(maker, kNoStage);
      const Share from = end_of(maker, kind, to.microbatch);
      expect_behind(from, at);
      EXPECT_EQ(part.from,
                table_.id(std::get<0>(from), std::get<1>(from), std::get<2>(from), to.microbatch,
                          forward ? BufferKind::Output : BufferKind::GradInput));
      const std::uint32_t other_end = transfer.ends[1];
      EXPECT_EQ(transfer.ends[0], at.op);
      EXPECT_EQ(ranks_of(at.op, other_end), (std::set{std::get<0>(from), to.rank}));
      EXPECT_TRUE(behind_(at, At{other_end, program_.ops[other_end].end_part}));
      EXPECT_EQ(transfer.channel.sender, std::get<0>(from));
      EXPECT_EQ(transfer.channel.receiver, to.rank);
      const std::int32_t first = forward ? 0 : table_.layers(to.rank, to.chunk) - 1;
      const auto reader = at_.find({to.rank, to.chunk, first, to.microbatch, kind});
      ASSERT_TRUE(reader != at_.end());
      EXPECT_TRUE(behind_(at, reader->second));
    });
    for_each_part([&](const OpPart& part, At) {
      if (part.kind == OpPart::Kind::Work && part.origin.kind == Origin::Kind::Landing) {
        EXPECT_TRUE(delivered.contains({part.origin.id, part.way}));
      }
    });
  }

  // Both sides of every message begin and finish, each on a stream of its own rank.
  void both_sides_begin_and_finish() const {
    std::map<std::pair<std::uint32_t, End>, std::pair<int, int>> sides;  // by message and side
    for_each_part([&](const OpPart& part, At at) {
      const bool begins = part.kind == OpPart::Kind::Send || part.kind == OpPart::Kind::Receive;
      const bool finishes =
          part.kind == OpPart::Kind::Deliver || part.kind == OpPart::Kind::Delivered;
      if (!begins && !finishes) return;
      const Channel& channel = program_.transfers[part.to].channel;
      EXPECT_EQ(program_.rank_of_stream[program_.ops[at.op].stream],
                part.end == End::Send ? channel.sender : channel.receiver);
      auto& [begun, finished] = sides[{part.to, part.end}];
      EXPECT_EQ(begun, finishes ? 1 : 0);
      ++(begins ? begun : finished);
    });
    EXPECT_EQ(sides.size(), 2 * program_.transfers.size());
    for (const auto& [side, times] : sides) EXPECT_EQ(times, std::pair(1, 1));
  }

  void what_leaves_is_collected_once() const {
    std::set<std::uint32_t> collected;
    for_each_part([&](const OpPart& part, At at) {
      if (part.kind != OpPart::Kind::Collect) return;
      const Cells::Cell cell = cells_.at(part.to);
      EXPECT_TRUE(collected.insert(part.to).second);
      EXPECT_EQ(course_.map->before(course_.map->stage_of(cell.rank, cell.chunk)), kNoStage);
      EXPECT_EQ(part.from,
                table_.id(cell.rank, cell.chunk, 0, cell.microbatch, BufferKind::GradInput));
      expect_behind({cell.rank, cell.chunk, 0, cell.microbatch, Kind::Backward}, at);
    });
    std::size_t leaving = 0;
    for (std::uint32_t id = 0; id < cells_.count(); ++id) {
      const Cells::Cell cell = cells_.at(id);
      if (course_.map->before(course_.map->stage_of(cell.rank, cell.chunk)) == kNoStage) ++leaving;
    }
    EXPECT_EQ(collected.size(), leaving);
  }

  const BufferTable& table_;
  const Course& course_;
  const Program& program_;
  std::string name_;
  Behind behind_;
  Cells cells_;
  std::map<Share, At> at_;
  std::size_t deliveries_ = 0;
};

// Stages minus one, forward and backward, of every microbatch: those between ranks.
std::size_t messages(const Launched& launched) {
  const StageMap& map = *launched.step.course().map;
  std::size_t between = 0;
  for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
    const std::int32_t next = map.after(stage);
    if (next != kNoStage && !map.same_rank(stage, next)) between += 2;
  }
  return between * static_cast<std::size_t>(launched.step.table().microbatches());
}

TEST(ProgramLaws, HoldOfThePublishedSchedules) {
  std::size_t schedules = 0;
  for (const schedules::Entry& entry : schedules::entries()) {
    for (const std::int32_t ranks : {2, 4}) {
      for (const bool weight_stream : {false, true}) {
        const auto schedule = schedules::schedule_named(
            {.name = std::string(entry.name), .ranks = ranks, .microbatches = 8});
        if (!schedule) continue;
        Environment environment = kPairs;
        environment.weight_stream = weight_stream;
        const Launched launched(*schedule, {}, environment);
        const Laws laws(launched, std::string(entry.name));
        EXPECT_EQ(laws.deliveries(), messages(launched)) << entry.name;
        ++schedules;
      }
    }
  }
  EXPECT_GT(schedules, 60U);
}

// A stage sends what its last layer made, and sends back from its first.
TEST(ProgramLaws, HoldOfChunksOfSeveralLayers) {
  for (const char* name : {"1f1b", "zb-h1", "1f1b-v", "v-half", "dualpipev"}) {
    Schedule schedule =
        schedules::schedule_named({.name = name, .ranks = 4, .microbatches = 8}).value();
    for (RankOrder& rank : schedule.ranks) {
      rank.layers = {.form = Layers::Form::Count, .values = {3}};
    }
    const Launched launched(schedule, {}, kPairs);
    ASSERT_EQ(launched.step.table().layers(0, 1), 3);
    EXPECT_EQ(Laws(launched, name).deliveries(), messages(launched)) << name;
  }
}

// Fused groups of transfers, and forward beside backward.
TEST(ProgramLaws, HoldOfMegatronsSchedules) {
  std::size_t schedules = 0;
  for (const MegatronCalls calls :
       {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    for (const bool overlap : {false, true}) {
      megatron::Request request{.which = megatron::Which::Runtime};
      request.configuration = {.pipeline = 2, .virtual_stages = 2, .microbatches = 4};
      request.configuration.ep_overlap = overlap;
      const Schedule schedule = megatron::schedule_of(megatron::orders_of(request).value());
      Environment environment = kPairs;
      environment.p2p = calls;
      environment.ep_overlap = overlap;
      const testing_support::PlannedStep step(schedule, {}, {}, environment);
      if (!step.wiring().execution().finishes()) continue;
      const Launched launched(schedule, {}, environment);
      const Laws laws(launched, overlap ? "overlap" : "plain");
      EXPECT_EQ(laws.deliveries(), messages(launched));
      ++schedules;
    }
  }
  EXPECT_GE(schedules, 4U);
}

// Exchanges of two ranks on streams of their own, between the parts of each layer.
TEST(ProgramLaws, HoldWhereLayersAreTakenApart) {
  Schedule schedule = testing_support::read_schedule(
      "ranks 2\nmicrobatches 2\n"
      "rank 0: F1.0 (F1.1 B1.0) B1.1\nrank 1: F1.0 (F1.1 B1.0) B1.1\n");
  for (RankOrder& rank : schedule.ranks) {
    rank.layers = {.form = Layers::Form::Count, .values = {2}};
  }
  const std::vector<CollectiveGroup> experts{
      {.name = "experts",
       .members = {0, 1},
       .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                   Kind::CombineBackward}}};
  const Launched launched(schedule, {}, {.ep_overlap = true}, experts);
  const Laws laws(launched, "apart");
  // Two ranks, microbatches and layers have one in each forward, and one in each backward.
  EXPECT_GE(laws.exchanges(), 8U);
  EXPECT_EQ(laws.deliveries(), 0U);
}

}  // namespace
}  // namespace capo::run
