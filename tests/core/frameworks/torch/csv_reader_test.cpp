#include "core/frameworks/torch/csv_reader.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/text/order_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Read<TorchReading> read(const std::string& text, const TorchDeclarations& declarations = {}) {
  auto rows = split_torch_csv(text, {});
  if (!rows) return rows.error();
  return read_torch_rows(*rows, declarations, {});
}

TEST(TorchCsvReader, SplitsRowsAndCellsAsCsvReaderDoes) {
  const auto rows = split_torch_csv("0F0,\"0B0\",\r\n\n1F0", {}).value();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].cells.size(), 3U);
  EXPECT_EQ(rows[0].cells[1].text, "0B0");
  EXPECT_EQ(rows[0].cells[2].text, "");
  EXPECT_TRUE(rows[1].cells.empty());
  EXPECT_EQ(rows[2].cells[0].span, (Span{13, 3}));
}

TEST(TorchCsvReader, GivesARankTheStagesOfItsRow) {
  const TorchReading reading = read("2F0,0F0,0B0,2B0\n1F0,1B0\n").value();
  EXPECT_EQ(reading.schedule.ranks.at(0).stages, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(reading.schedule.ranks.at(0).order.at(0).chunk, 2);
  EXPECT_FALSE(reading.communicates);
}

TEST(TorchCsvReader, KeepsAStrayedStageBehindTheDeclaredOnes) {
  const TorchReading reading =
      read("1F0,0F0,0B0\n1F0,1B0\n", {.stage_to_rank = std::vector<std::int32_t>{0, 1}}).value();
  EXPECT_EQ(reading.schedule.ranks.at(0).stages, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(reading.schedule.ranks.at(0).strays, 1);
}

TEST(TorchCsvReader, TakesTheInputHalfForBWhereEveryBackwardIsSplit) {
  const TorchReading split = read("0F0,0I0,0W0\n").value();
  EXPECT_EQ(split.schedule.ranks.at(0).order.at(1).kind, Kind::Backward);
  EXPECT_EQ(split.schedule.ranks.at(0).delay->at(0), Delay::Always);
  const TorchReading mixed = read("0F0,0I0,0W0,0F1,0B1\n").value();
  EXPECT_EQ(mixed.schedule.ranks.at(0).order.at(1).kind, Kind::BackwardInput);
  EXPECT_EQ(mixed.schedule.ranks.at(0).delay->at(0), Delay::Mixed);
}

TEST(TorchCsvReader, NotesWhatTorchReadsOtherwise) {
  const TorchReading reading = read("0F0x,()OVERLAP_F_B,(0F1;0B0)B,5RESHARD7\n").value();
  ASSERT_EQ(reading.faults.size(), 4U);
  EXPECT_EQ(reading.faults[0].kind, CellFault::Kind::DroppedText);
  EXPECT_EQ(reading.faults[0].torch_reads, "0F0");
  EXPECT_EQ(reading.faults[1].kind, CellFault::Kind::EmptyComposite);
  EXPECT_EQ(reading.faults[2].kind, CellFault::Kind::WrongContainer);
  EXPECT_EQ(reading.faults[3].kind, CellFault::Kind::SurplusMicrobatch);
}

TEST(TorchCsvReader, RefusesWhatTorchRefuses) {
  EXPECT_FALSE(read("F0\n"));
  EXPECT_FALSE(read("(0F0;1B0)OVERLAP_F_B3\n"));
  EXPECT_FALSE(read("\"0F0\n"));
  EXPECT_FALSE(read(" \n"));
}

TEST(TorchCsvPrinter, WritesWhatTorchReads) {
  const std::string text = "0F0,,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD\n1RECV_F0,1F0\n";
  EXPECT_EQ(print_torch_csv(read(text)->schedule).value(), text);
}

TEST(TorchCsvPrinter, SaysWhatATableLacks) {
  Schedule schedule;
  schedule.ranks.resize(2);
  EXPECT_FALSE(print_torch_csv(schedule)) << "chunks that are no stages";
  schedule.ranks.resize(1);
  schedule.ranks[0].replay.emplace();
  EXPECT_FALSE(print_torch_csv(schedule)) << "two orders";
}

TEST(TorchCsvPrinter, HasNoNotationForDispatchAndCombine) {
  const auto order = [&](const std::string& actions) {
    return read_order_file("capo 1\nrank 0: " + actions + "\n", {}).value();
  };
  for (const char* action : {"dispatch-F1.0", "combine-F1.0", "dispatch-B1.0", "combine-B1.0"}) {
    const auto table = print_torch_csv(order(std::string("F1.0 ") + action + " B1.0"));
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().reason, "a table has no notation for dispatch and combine");
    EXPECT_EQ(table.error().span->offset, 20U);
    EXPECT_TRUE(table.error().droppable);
  }
  const auto dropped = [&](const std::string& actions) {
    return print_torch_csv(order(actions), Beside::Drop).value();
  };
  EXPECT_EQ(dropped("F1.0 dispatch-F1.0 B1.0"), "0F0,0B0\n");
  EXPECT_EQ(dropped("(dispatch-F1.0 F1.0) B1.0"), "0F0,0B0\n") << "one member is no composite";
  EXPECT_EQ(dropped("F1.0 (dispatch-F1.0 F1.1 B1.0 combine-B1.0) (F1.2 B1.1) B1.2"),
            "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\n");
  EXPECT_EQ(dropped("F1.0 (dispatch-F1.0 combine-F1.0) B1.0"), "0F0,0B0\n");
}

}  // namespace
}  // namespace capo
