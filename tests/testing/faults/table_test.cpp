#include "testing/faults/table.h"

#include <gtest/gtest.h>

namespace capo::testing {
namespace {

TEST(Table, OfAScheduleHasItsCellsAndDeclarations) {
  Schedule schedule{.naming = Naming::Named, .topology = Topology::Loop, .microbatches = 1};
  for (int r = 0; r < 2; ++r) {
    RankOrder rank{.chunks = 1};
    rank.delay = {Delay::Always};
    rank.order = {
        {.chunk = 1, .microbatch = 0, .kind = Kind::Forward},
        {},
        {.chunk = 1, .microbatch = 0, .kind = Kind::Backward, .group = Group::Opens},
        {.chunk = 1, .microbatch = 0, .kind = Kind::BackwardWeight, .group = Group::Continues}};
    schedule.ranks.push_back(rank);
  }
  place_stages(schedule);
  const Table table = table_of(schedule);
  EXPECT_EQ(table.text(), "0F0,,(0I0;0W0)OVERLAP_F_B\n1F0,,(1I0;1W0)OVERLAP_F_B\n");
  EXPECT_EQ(table.declarations.stage_to_rank, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(table.declarations.microbatches, 1);
}

TEST(Table, OfChunksThatAreNotWiredIsAChain) {
  Schedule schedule{.naming = Naming::Named};
  for (int r = 0; r < 2; ++r) {
    schedule.ranks.push_back(
        {.order = {{.chunk = 1, .microbatch = 0, .kind = Kind::Forward}}, .chunks = 1});
  }
  EXPECT_EQ(table_of(schedule).text(), "0F0\n1F0\n");
}

// The cells alone would be another table: its stages could be anywhere.
TEST(Table, IsShownWithAllThatIsDeclared) {
  const Table table{.rows = {{"0F0", "1SEND_F0"}, {"1F0"}},
                    .declarations = {.microbatches = 1,
                                     .stages = 2,
                                     .stage_to_rank = std::vector{0, 1},
                                     .communicates = false}};
  EXPECT_EQ(shown_table(table),
            "{\"csv\": [\"0F0,1SEND_F0\",\n         \"1F0\"],\n \"stage_to_rank\": [0,1],\n "
            "\"stages\": 2,\n \"microbatches\": 1,\n \"format\": \"compute\"}\n");
  const std::string declared = shown_table(table, {.environment = {.weight_stream = true}});
  EXPECT_TRUE(declared.starts_with("cat > case.json <<'END'\n{\"csv\": [")) << declared;
  EXPECT_TRUE(declared.ends_with("\ncapo check case.json --model case.model\n")) << declared;
}

}  // namespace
}  // namespace capo::testing
