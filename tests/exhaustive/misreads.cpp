#include "tests/exhaustive/misreads.h"

#include <cmath>
#include <utility>

namespace capo::exhaustive {

namespace {

std::string_view rule_of(oracle::Misread::Operand operand) {
  switch (operand) {
    case oracle::Misread::Input:
      return "B01";
    case oracle::Misread::Gradient:
      return "B02";
    case oracle::Misread::HandedBack:
      break;
  }
  return "B03";
}

bool reads(const Aliases& aliases, oracle::Misread::Operand operand) {
  if (operand == oracle::Misread::Input) return aliases.input;
  return operand == oracle::Misread::HandedBack || aliases.grad_output;
}

}  // namespace

std::vector<oracle::Capture::Entry> entries_of(const List& list) {
  std::vector<oracle::Capture::Entry> entries;
  for (const TeEntry& entry : list) {
    const bool whole = entry.type == NumberType::Integer;
    const auto kind = entry.value > 0 ? oracle::Capture::Forward
                      : whole         ? oracle::Capture::Backward
                                      : oracle::Capture::Weight;
    entries.push_back({kind, static_cast<int>(std::floor(std::abs(entry.value))) - 1});
  }
  return entries;
}

oracle::Capture capture_of(const List& list, const std::vector<oracle::LayerKeys>& chunks,
                           bool chain) {
  oracle::Capture capture{.chunks = {}, .order = entries_of(list), .chain = chain};
  for (const oracle::LayerKeys& keys : chunks) capture.chunks.push_back({keys});
  return capture;
}

Answer earlier(const Answer& a, const Answer& b) {
  if (a.accepted() || b.accepted()) return a.accepted() ? b : a;
  return std::pair(b.position, b.rule) < std::pair(a.position, a.rule) ? b : a;
}

Answer first_misread(const oracle::Replay& replay, const Aliases& aliases) {
  Answer first;
  for (const oracle::Misread& misread : replay.misreads) {
    if (!reads(aliases, misread.operand)) continue;
    first = earlier(first, {.rule = rule_of(misread.operand), .position = misread.position});
  }
  return first;
}

}  // namespace capo::exhaustive
