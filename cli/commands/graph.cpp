// `capo graph FILE -o out.dot`: the dependency graph for Graphviz, what is wrong in red.

#include "cli/commands/commands.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "core/draw/draw.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

namespace capo::cli {

namespace {

struct GraphRequest : InputRequest {
  std::string ranks;
  std::string window;
  DotOptions dot;
  std::string output = "-";
};

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = result.ec == std::errc{} && result.ptr == text.data() + text.size();
  return whole && !text.empty() ? std::optional(value) : std::nullopt;
}

// Reads "0,2-4" as 0, 2, 3, 4. A rank that does not exist is an error and no empty picture.
std::vector<std::int32_t> ranks_of(const std::string& text, std::size_t ranks) {
  std::vector<std::int32_t> chosen;
  std::stringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const std::size_t dash = item.find('-');
    const auto first = number(std::string_view(item).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : number(std::string_view(item).substr(dash + 1));
    if (!first || !last || *last < *first || *last >= ranks) {
      throw CLI::ValidationError(
          "--ranks", fmt::format("{} is no rank or range of ranks; {}", shown(item),
                                 ranks == 1 ? "there is only rank 0"
                                            : fmt::format("there are 0 to {}", ranks - 1)));
    }
    for (std::uint32_t rank = *first; rank <= *last; ++rank) {
      chosen.push_back(static_cast<std::int32_t>(rank));
    }
  }
  return chosen;
}

std::pair<std::uint32_t, std::uint32_t> window_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto first = number(std::string_view(text).substr(0, colon));
  const auto last =
      colon == std::string::npos ? std::nullopt : number(std::string_view(text).substr(colon + 1));
  if (!first || !last || *last <= *first) {
    throw CLI::ValidationError("--window",
                               fmt::format("{} is no range of steps such as 0:40", shown(text)));
  }
  return {*first, *last};
}

// A file whose name says that it is a picture would be one that nothing opens.
void refuse_picture(const std::string& output) {
  const std::filesystem::path file(output);
  const std::string ending = file.extension().string();
  if (ending != ".svg" && ending != ".png" && ending != ".pdf" && ending != ".html") return;
  const std::string text = std::filesystem::path(file).replace_extension(".dot").string();
  throw CLI::ValidationError(
      "--output", fmt::format("{} is a picture by its ending, and `capo graph` writes Graphviz's "
                              "text: write {}, of which `dot -Tsvg` makes a picture, or see `capo "
                              "draw`",
                              shown(output), shown(text)));
}

int draw_graph(const GraphRequest& request) {
  refuse_picture(request.output);
  const auto judged = judged_input(request);
  if (!judged) return refuse(judged.error());
  const Input& input = judged->input;
  DotOptions dot = request.dot;
  if (!request.ranks.empty()) dot.ranks = ranks_of(request.ranks, input.schedule.ranks.size());
  if (!request.window.empty()) dot.window = window_of(request.window);
  const auto text = draw(input, judged->check_options(), dot);
  if (!text) return fail(text.error());
  return exit_code_after(write_output(request.output, *text));
}

}  // namespace

Run add_graph(CLI::App& command) {
  command.footer("Example: capo graph schedule.order --p2p flush -o out.dot && dot -Tsvg out.dot");
  auto request = std::make_shared<GraphRequest>();
  request->input.add_to(command);
  request->environment.add_to(command);
  request->plan.emplace().add_to(command);
  request->fuse.add_to(command);
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  command.add_option("--ranks", request->ranks, "Only these ranks, `0,2-4`");
  command.add_option("--window", request->window,
                     "Only these steps of each rank's order, transfers counted, `0:40`");
  command.add_flag("--collapse", request->dot.collapse,
                   "Draw a transfer as an edge between the computations that it joins");
  command
      .add_option("--columns", request->dot.columns,
                  "Columns after which rows go on in a next line; 0: as fits a page")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command
      .add_option("--max-nodes", request->dot.max_nodes,
                  "Nodes beyond which there is no picture (exit code 4)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str();
  return [request] { return draw_graph(*request); };
}

}  // namespace capo::cli
