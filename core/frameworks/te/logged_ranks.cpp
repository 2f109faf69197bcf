#include "core/frameworks/te/logged_ranks.h"

#include "core/base/index.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <system_error>

namespace capo {

namespace {

constexpr const char* kCure =
    "give the lines of one pipeline, ranks 0 and up, or take the ranks out of the lines";

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

Refusal refused(const LoggedList& list, std::string message) {
  return malformed(list.place, std::move(message), kCure);
}

}  // namespace

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

Read<std::vector<std::size_t>> order_of_ranks(const std::vector<LoggedList>& lists) {
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
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const LoggedList& list = lists[order[rank]];
    if (*list.rank == rank) continue;
    return refused(list, *list.rank < rank ? fmt::format("rank {} has a second line", *list.rank)
                                           : fmt::format("rank {} has a line, and rank {} has none",
                                                         *list.rank, rank));
  }
  return order;
}

}  // namespace capo
