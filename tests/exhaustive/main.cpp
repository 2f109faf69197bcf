// The verifier against the oracle on every order of a scope: verdict, rule and first place.
//
//   capo_exhaustive [SCOPE ...] [--quick | --long] [--shard I/N] [--through verdicts|check]
//                   [--check-each N] [--stop-at-first]
//
// Without a scope: all of them, and of the long ones those that there are. Prints what was
// compared, what disagrees as lists to paste, counts against those known from elsewhere, and
// seconds. Exit code 0: no disagreement and all counts right; 1: some; 2: wrong usage. ctest runs
// every scope with --check-each 7, `./dev exhaustive` without it, and `./dev exhaustive --long` the
// long ones, in as many processes as there are processors.

#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using namespace capo::exhaustive;

struct Scope {
  std::string_view name;
  bool (*run)(const Options&);
  bool has_long;
};

constexpr std::array kScopes{
    Scope{"lists", lists, false},         Scope{"lists-with-weights", lists_with_weights, false},
    Scope{"strings", strings, true},      Scope{"neighbours", neighbours, false},
    Scope{"plans", plans, false},         Scope{"declared", declared, false},
    Scope{"pairs", pairs, true},          Scope{"waits", waits, false},
    Scope{"published", published, false}, Scope{"resets", resets, false},
    Scope{"replays", replays, false},     Scope{"captures", captures, false},
};

struct Asked {
  Options options;
  std::vector<Scope> scopes;
};

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "0/4".
bool take_shard(std::string_view text, Options& options) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto shard = number(text.substr(0, slash));
  const auto shards = number(text.substr(slash + 1));
  if (!shard || !shards || *shard >= *shards) return false;
  options.shard = *shard;
  options.shards = *shards;
  return true;
}

bool take_check_each(std::string_view text, Options& options) {
  const auto each = number(text);
  if (!each || *each == 0) return false;
  options.check_each = *each;
  return true;
}

bool take_through(std::string_view text, Options& options) {
  if (text != "verdicts" && text != "check") return false;
  options.through = text == "check" ? Through::Check : Through::Verdicts;
  return true;
}

bool take_scope(std::string_view name, Asked& asked) {
  for (const Scope& scope : kScopes) {
    if (scope.name != name) continue;
    asked.scopes.push_back(scope);
    return true;
  }
  return false;
}

std::optional<Asked> asked_of(const std::vector<std::string_view>& words) {
  Asked asked;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    bool understood = true;
    if (words[i] == "--quick") {
      asked.options.effort = Effort::Quick;
    } else if (words[i] == "--long") {
      asked.options.effort = Effort::Long;
    } else if (words[i] == "--stop-at-first") {
      asked.options.stop_at_first = true;
    } else if (words[i] == "--shard") {
      understood = has_value && take_shard(words[++i], asked.options);
    } else if (words[i] == "--through") {
      understood = has_value && take_through(words[++i], asked.options);
    } else if (words[i] == "--check-each") {
      understood = has_value && take_check_each(words[++i], asked.options);
    } else {
      understood = take_scope(words[i], asked);
    }
    if (!understood) return std::nullopt;
  }
  const auto exists = [&](const Scope& scope) {
    return asked.options.effort != Effort::Long || scope.has_long;
  };
  if (asked.scopes.empty()) {
    std::copy_if(kScopes.begin(), kScopes.end(), std::back_inserter(asked.scopes), exists);
  }
  if (!std::all_of(asked.scopes.begin(), asked.scopes.end(), exists)) return std::nullopt;
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Asked> asked = asked_of({argv + 1, argv + argc});
  if (!asked) {
    fmt::print(
        stderr,
        "usage: capo_exhaustive [SCOPE ...] [--quick | --long] [--shard I/N]\n"
        "                       [--through verdicts|check] [--check-each N] [--stop-at-first]\n"
        "scopes:");
    for (const Scope& scope : kScopes) {
      fmt::print(stderr, " {}{}", scope.name, scope.has_long ? " (also --long)" : "");
    }
    fmt::print(stderr, "\n");
    return 2;
  }
  bool agree = true;
  for (const Scope& scope : asked->scopes) {
    agree = scope.run(asked->options) && agree;
    if (!agree && asked->options.stop_at_first) break;
  }
  return agree ? 0 : 1;
}
