#include "tests/exhaustive/orders.h"

#include <fmt/format.h>

namespace capo::exhaustive {

namespace {

std::uint64_t factorial(int n) {
  return n < 2 ? 1 : static_cast<std::uint64_t>(n) * factorial(n - 1);
}

std::size_t token_of(const Size& size, int kind, int chunk) {
  return static_cast<std::size_t>(kind * size.chunks + chunk);
}

}  // namespace

std::string shown(const List& list) {
  std::string text = "[";
  for (const TeEntry& entry : list)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", entry.value);
  return text + "]";
}

void to_oracle(const List& list, std::vector<oracle::Number>& numbers) {
  numbers.clear();
  for (const TeEntry& entry : list) {
    numbers.push_back({.value = entry.value, .floating = entry.type == NumberType::Float});
  }
}

std::string name_of(const Size& size) {
  return fmt::format("{}x{}{}", size.chunks, size.microbatches, size.weights ? " with W" : "");
}

std::uint64_t well_counted(const Size& size) {
  std::uint64_t count = factorial(size.tokens());
  for (int i = 0; i < size.kinds() * size.chunks; ++i) count /= factorial(size.microbatches);
  return count;
}

std::uint64_t tableaux(int rows, int columns) {
  std::uint64_t count = factorial(rows * columns);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      count /= static_cast<std::uint64_t>((rows - row) + (columns - column) - 1);
    }
  }
  return count;
}

List sorted_list(const Size& size) {
  List list;
  for (std::size_t token = 0; token < static_cast<std::size_t>(size.kinds() * size.chunks);
       ++token) {
    list.insert(list.end(), static_cast<std::size_t>(size.microbatches),
                entry_of_token(size, token));
  }
  std::sort(list.begin(), list.end(),
            [](const TeEntry& a, const TeEntry& b) { return a.value < b.value; });
  return list;
}

Needs needs_of_each_chunk(const Size& size) {
  Needs needs(static_cast<std::size_t>(size.kinds() * size.chunks));
  for (int kind = 1; kind < size.kinds(); ++kind) {
    for (int chunk = 0; chunk < size.chunks; ++chunk) {
      needs[token_of(size, kind, chunk)].push_back(token_of(size, kind - 1, chunk));
    }
  }
  return needs;
}

Needs needs_of_a_chain(const Size& size) {
  Needs needs = needs_of_each_chunk(size);
  for (int chunk = 0; chunk + 1 < size.chunks; ++chunk) {
    needs[token_of(size, 0, chunk + 1)].push_back(token_of(size, 0, chunk));
    needs[token_of(size, 1, chunk)].push_back(token_of(size, 1, chunk + 1));
  }
  return needs;
}

TeEntry entry_of_token(const Size& size, std::size_t token) {
  const int kind = static_cast<int>(token) / size.chunks;
  const int id = static_cast<int>(token) % size.chunks + 1;
  return entry_of(kind == 0 ? id : kind == 1 ? -id : -id - 0.5);
}

}  // namespace capo::exhaustive
