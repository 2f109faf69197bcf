#include "core/base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace capo {

namespace {

std::string in_small_letters(std::string_view word) {
  std::string small(word);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i holds the distances of a's first i letters to every prefix of b.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(row);
  }
  return previous[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  const std::string meant = in_small_letters(word);
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    // Each letter that one has more than the other is an edit, so a word of any length is cheap.
    const std::size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= fewest) continue;
    const std::size_t distance = edit_distance(meant, in_small_letters(candidate));
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  constexpr std::size_t kLeast = 5;  // `--mic` of `--microbatches`
  if (!best.empty() || word.size() < kLeast) return best;
  const auto begun = std::find_if(known.begin(), known.end(), [&](std::string_view candidate) {
    return in_small_letters(candidate).starts_with(meant);
  });
  return begun == known.end() ? best : *begun;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         std::string_view otherwise) {
  const std::string_view close = nearest(word, known);
  return close.empty() ? std::string(otherwise) : "did you mean `" + std::string(close) + "`?";
}

}  // namespace capo
