#include "testing/truth/tables.h"

#include "core/input/load.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/wiring.h"
#include "run/processes/walk_all.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

using TablesJson = nlohmann::json;

constexpr std::string_view kFinishes = "finishes";
constexpr std::string_view kHangs = "hangs";
constexpr std::string_view kMispairs = "mispairs";

struct NamedLayout {
  std::string name;
  Communicators layout;
};
const std::array<NamedLayout, 2> kTableLayouts{NamedLayout{"per-pair", Communicators::PerPair},
                                               NamedLayout{"per-edge", Communicators::PerEdge}};

// The file has a table as its rows, and says what it did on two GPUs.
struct StoredTable {
  std::string name;
  Input input;
  TablesJson hardware;
};

Error unreadable(std::string what) {
  return {.kind = ErrorKind::Unreadable, .message = std::move(what), .help = ""};
}

Result<StoredTable> stored_table(const TablesJson& row) {
  std::string text;
  for (const auto& cells : row.at("comms")) text += cells.get<std::string>() + "\n";
  const std::string name =
      row.at("id").get<std::string>() + " " + row.at("policy").get<std::string>();
  LoadOptions options{.form = TextForm::TorchCsv};
  options.torch.stage_to_rank = row.at("stage_to_rank").get<std::vector<std::int32_t>>();
  options.torch.communicates = true;
  auto input = load({.name = name, .text = std::move(text)}, options);
  if (!input) return unreadable(name + ": " + input.error().refusal.finding.message);
  return StoredTable{.name = name, .input = *std::move(input), .hardware = row.at("hardware")};
}

std::string_view word_of_verdict(const CheckResult& result) {
  if (result.verdict == Verdict::Accepted) return kFinishes;
  return result.diagnostics.seen("T09") > 0   ? kHangs
         : result.diagnostics.seen("T08") > 0 ? kMispairs
                                              : "rejected for something else";
}

std::string_view word_of_walk(const run::Walkable& of, const run::WalkedRanks& walked) {
  if (!walked.silent.empty()) return walked.silent;
  if (walked.ran.size() < of.graph.task_of.size()) return kHangs;
  return run::mismatches(of.graph, walked) > 0 ? kMispairs : kFinishes;
}

class Tables {
 public:
  explicit Tables(const TableRun& run) : run_(run) {}

  std::optional<Error> all(const TablesJson& rows) {
    for (const NamedLayout& of : kTableLayouts) {
      run::MessageLibrary& messages = run_.messages(of.layout);
      for (const TablesJson& row : rows) {
        auto table = stored_table(row);
        if (!table) return table.error();
        if (auto failed = one(*table, of, messages)) return failed;
      }
    }
    return std::nullopt;
  }

  TableTally tally;

 private:
  std::optional<Error> one(const StoredTable& table, const NamedLayout& layout,
                           run::MessageLibrary& messages) {
    CheckOptions options;
    options.environment.communicators = layout.layout;
    options.environment.transfers = TransferMode::Rendezvous;
    const Context context(table.input, options);
    const Wiring& wiring = *context.wirings().front();
    if (!wiring.executable()) return unreadable(table.name + " cannot be executed");
    const run::Walkable of = run::walkable(wiring);
    if (!run::can_be_walked(of, run::Meetings::AreNot))
      return unreadable(table.name + " cannot be walked");
    const run::WalkedRanks walked =
        run_.patience ? run::observe(run_.processes, messages, of,
                                     {.on_the_way = *run_.patience, .at_its_end = *run_.patience})
                      : run::walk_all(run_.processes, of);
    if (const std::string why = run::error_of_any(run_.processes, messages); !why.empty()) {
      return Error{.kind = ErrorKind::Environment, .message = table.name + ": " + why, .help = ""};
    }
    const std::string_view seen = word_of_walk(of, walked);
    const auto go_on = run_.processes.spread(seen == kHangs ? "renew" : "");
    if (!go_on) return unreadable("rank 0 does not answer");
    if (!go_on->empty()) run_.renew();
    if (run_.processes.rank() == 0)
      count(table, layout.name, seen, word_of_verdict(check(context)));
    return std::nullopt;
  }

  void count(const StoredTable& table, const std::string& layout, std::string_view seen,
             std::string_view verdict) {
    const auto stored = table.hardware.at(layout).at("256MiB").get<std::string>();
    ++tally.tables;
    tally.as_stored += seen == stored ? 1 : 0;
    tally.as_judged += seen == verdict ? 1 : 0;
    tally.finished += seen == kFinishes ? 1 : 0;
    tally.hung += seen == kHangs ? 1 : 0;
    tally.mispaired += seen == kMispairs ? 1 : 0;
    const bool alike = seen == stored && seen == verdict;
    tally.lines +=
        fmt::format("{} {}: {}{}\n", layout, table.name, seen,
                    alike ? "" : fmt::format(", stored {}, capo says {}", stored, verdict));
  }

  const TableRun& run_;
};

}  // namespace

Result<TableTally> run_tables(const TableRun& run, const std::string& text) {
  try {
    Tables tables(run);
    const TablesJson json = TablesJson::parse(text);
    if (auto failed = tables.all(json.at("rows"))) return *failed;
    return std::move(tables.tally);
  } catch (const TablesJson::exception& wrong) {
    return unreadable(wrong.what());
  }
}

std::string to_text(const TableTally& tally) {
  return fmt::format(
      "{}{} tables and layouts: {} finished, {} hung, {} mispaired\n"
      "{} of {} as two GPUs did, {} of {} as capo says\n",
      tally.lines, tally.tables, tally.finished, tally.hung, tally.mispaired, tally.as_stored,
      tally.tables, tally.as_judged, tally.tables);
}

}  // namespace capo::testing
