#include "testing/truth/report_page.h"

#include "testing/truth/lines_file.h"
#include "testing/truth/stream_error.h"
#include "testing/truth/tally.h"

#include <fmt/format.h>

#include <ios>
#include <istream>
#include <map>
#include <string_view>
#include <utility>

namespace capo::testing {

namespace {

Result<std::string, Error> about_table(std::istream& about, std::string_view header) try {
  about.exceptions(std::ios::badbit);
  std::string text = "| | |\n| --- | --- |\n";
  for (std::string line; std::getline(about, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    text += fmt::format("| {} | {} |\n", line.substr(0, colon), line.substr(colon + 2));
  }
  return text + fmt::format("| campaign | `{}` |\n\n", header);
} catch (const std::ios_base::failure& broken) {
  return Error{.kind = ErrorKind::Unreadable,
               .message = "what is said of the machine cannot be read: " + stream_error(broken),
               .help = ""};
}

std::string counts_table(std::string_view what, const std::map<std::string, CameCounts>& rows) {
  std::string text = fmt::format("| {} | ", what);
  for (std::size_t way = 0; way < kWaysToCome; ++way) {
    text += fmt::format("{} | ", name_of(static_cast<Came>(way)));
  }
  text += "\n| --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const auto& [name, counts] : rows) {
    text += fmt::format("| {} |", name);
    for (const std::uint64_t count : counts) text += fmt::format(" {} |", count);
    text += "\n";
  }
  return text + "\n";
}

// A row counts the lines of one kind of module; modules of several kinds in one order are a row of
// their own.
std::map<std::string, CameCounts> by_kind(const Tally& tally) {
  std::map<std::string, CameCounts> rows;
  for (const auto& [words, counts] : tally.by_module) {
    const bool several = words.find(',') != std::string::npos;
    CameCounts& row = rows[several ? "several kinds" : words.substr(0, words.find(' '))];
    for (std::size_t way = 0; way < kWaysToCome; ++way) row[way] += counts[way];
  }
  return rows;
}

}  // namespace

Result<ReportPage, Error> report_page(std::istream& lines, std::istream& about) {
  const auto read = read_lines(lines);
  if (!read) return read.error();
  const auto where = about_table(about, read->header);
  if (!where) return where.error();
  const Tally& tally = read->tally;
  std::string page = "# Verdict against gradients\n\n" + *where;
  page += fmt::format("{} orders.\n\n```\n{}```\n\n", tally.lines, matrix_text(tally));
  page +=
      "*right*: accepted, every gradient equal to eager execution and within its bounds of\n"
      "float64. *seen*: rejected, victims exactly as predicted (of a race: those that every\n"
      "order of it hurts) and some gradient wrong.\n"
      "*explained*: rejected for what no run can show; the line has the reason. *not-run*:\n"
      "rejected, and nothing is left that could be run.\n\n";
  page += counts_table("rule", tally.by_rule) + counts_table("fault put in", tally.by_fault) +
          counts_table("modules", by_kind(tally)) + counts_table("graphs", tally.by_graphs) +
          counts_table("plan", tally.by_plan);
  return ReportPage{.text = std::move(page), .disagreements = tally.disagreements()};
}

}  // namespace capo::testing
