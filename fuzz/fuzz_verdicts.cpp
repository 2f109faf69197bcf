// The fast interface, check() and the oracle say the same of a list: verdict, rule and place.
//
// The first byte says whether chunks are a chain; each further one is an entry, as entries.h says:
// "0aAx" is [1, -1, -1.5]. The same two Verdicts judge all inputs, so that nothing of one may be
// left for the next.

#include "core/rules/check.h"
#include "core/rules/verdicts.h"
#include "fuzz/bytes.h"
#include "fuzz/entries.h"
#include "fuzz/laws.h"
#include "testing/oracle/first_fault.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace {

using namespace capo;

constexpr std::size_t kLongest = 64;
constexpr int kWhole = oracle::Fault::kWholeList;

oracle::Fault said_by(const FirstFinding& finding) {
  return {.position = finding.place ? static_cast<int>(finding.place->index) : kWhole,
          .rule = finding.rule};
}

// Entries stand where they are counted.
oracle::Fault said_by_check(std::vector<TeEntry> list, Topology topology) {
  for (std::size_t at = 0; at < list.size(); ++at) {
    list[at].offset = static_cast<std::uint32_t>(at);
    list[at].length = 1;
  }
  Input input{.te_list = {std::move(list)}};
  TeReading reading = from_te_list(input.te_list, {});
  input.schedule = std::move(reading.schedule);
  input.schedule.topology = topology;
  place_stages(input.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  const CheckResult result = check(input);
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity != Severity::Error) continue;
    const bool placed = !finding.labels.empty();
    return {.position = placed ? static_cast<int>(finding.labels.front().span.offset) : kWhole,
            .rule = finding.rule};
  }
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Verdicts bare({});
  static Verdicts chain({.topology = Topology::Chain});
  fuzz::Bytes bytes(data, std::min(size, kLongest));
  const bool wired = bytes.flag();
  std::vector<TeEntry> list;
  std::vector<oracle::Number> numbers;
  while (!bytes.empty()) {
    list.push_back(fuzz::entry_of(bytes.below(256)));
    numbers.push_back(
        {.value = list.back().value, .floating = list.back().type == NumberType::Float});
  }

  const FirstFinding fast = (wired ? chain : bare).of(list);
  const auto fault = wired ? oracle::first_fault_of_chain(numbers) : oracle::first_fault(numbers);
  fuzz::require((fast.verdict == Verdict::Accepted) == !fault.has_value(),
                "the verdict is the oracle's");
  fuzz::require(said_by(fast) == fault.value_or(oracle::Fault{}),
                "so are the rule and the place of the first error");
  const Topology topology = wired ? Topology::Chain : Topology::Independent;
  fuzz::require(said_by(fast) == said_by_check(list, topology), "check() says the same");
  return 0;
}
