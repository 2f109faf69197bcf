#include "core/frameworks/te/logged_lists.h"

#include "core/base/index.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>

namespace capo {

namespace {

constexpr std::string_view kMegatronOrder = "ORDER [";
constexpr std::string_view kMegatronLayerOrder = "ORDER after overlap_moe_expert_parallel_comm [";

constexpr const char* kLoggedCure =
    "give the lines of one pipeline, ranks 0 and up, or take the ranks out of the lines";

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

Refusal refused(const LoggedList& list, std::string message) {
  return malformed(list.place, std::move(message), kLoggedCure);
}

}  // namespace

std::string_view megatron_words(std::string_view text, std::size_t from) {
  for (const std::string_view words : {kMegatronLayerOrder, kMegatronOrder}) {
    if (list_behind(words, text, from) < text.size()) return words;
  }
  return {};
}

std::size_t list_behind(std::string_view words, std::string_view text, std::size_t from) {
  for (std::size_t at = text.find(words, from); at < text.size(); at = text.find(words, at + 1)) {
    const std::size_t line = text.rfind('\n', at) + 1;
    const bool comment = text.substr(line, at - line).find('#') != std::string_view::npos;
    if (!comment) return at + words.size() - 1;
  }
  return text.size();
}

LoggedList logged_list(std::string_view prefix, std::size_t offset) {
  LoggedList list{.place = span_of(offset, offset + 1)};
  const std::string small = in_small_letters(prefix);
  const std::size_t word = small.rfind("rank");
  if (word == std::string::npos) return list;
  const std::size_t digits = std::min(small.find_first_not_of(" =:#_", word + 4), small.size());
  std::uint32_t rank = 0;
  const auto read = std::from_chars(small.data() + digits, small.data() + small.size(), rank);
  if (read.ec != std::errc{}) return list;
  list.rank = rank;
  list.place = span_of(offset + digits, offset + as_index(read.ptr - small.data()));
  return list;
}

Read<std::vector<std::size_t>> order_of_ranks(const std::vector<LoggedList>& lists,
                                              Numbered numbered) {
  std::vector<std::size_t> order(lists.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto named = [](const LoggedList& list) { return list.rank.has_value(); };
  if (std::none_of(lists.begin(), lists.end(), named)) return order;
  const auto unnamed = std::find_if_not(lists.begin(), lists.end(), named);
  if (unnamed != lists.end()) {
    return refused(*unnamed, "this line does not say its rank, and others do");
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return *lists[a].rank < *lists[b].rank; });
  const std::uint32_t second = numbered == Numbered::ByStages ? *lists[order[1]].rank : 1;
  const std::size_t step = std::max<std::uint32_t>(second, 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const LoggedList& list = lists[order[i]];
    const std::size_t rank = i * step;
    if (*list.rank == rank) continue;
    return refused(list, *list.rank < rank ? fmt::format("rank {} has a second line", *list.rank)
                                           : fmt::format("rank {} has a line, and rank {} has none",
                                                         *list.rank, rank));
  }
  return order;
}

}  // namespace capo
