#include "core/base/nearest.h"
#include "core/text/action_token.h"
#include "core/text/json_fields.h"
#include "core/text/model_parts.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace capo {

namespace {

using Type = JsonValue::Type;
using Maybe = std::optional<Refusal>;

constexpr std::array<std::string_view, 4> kGroupKeys{"name", "members", "actions", "streams"};
constexpr std::array kCollectives{
    Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward, Kind::CombineBackward,
    Kind::Unshard,         Kind::Reshard,        Kind::ReduceGradient};

std::array<std::string_view, kCollectives.size()> collective_words() {
  std::array<std::string_view, kCollectives.size()> words;
  std::transform(kCollectives.begin(), kCollectives.end(), words.begin(), word_of);
  return words;
}

Refusal repeated(Span span, std::string message, Span before, std::string_view label) {
  Refusal refusal = malformed(span, std::move(message));
  refusal.finding.labels.push_back({before, std::string(label)});
  return refusal;
}

class Reader {
 public:
  explicit Reader(const Limits& limits) : limits_(limits) {}

  Read<std::vector<CollectiveGroup>> read(const JsonValue& value) {
    if (value.type() != Type::Array) return wrong_type(value, "`groups`", "an array of objects");
    for (auto item = value.first(); item; item = item->next()) {
      if (groups_.size() >= limits_.counts) {
        return over_limit(item->span(), fmt::format("more than {} groups", limits_.counts),
                          "--max-count");
      }
      if (auto refusal = read_group(*item)) return std::move(*refusal);
    }
    return std::move(groups_);
  }

 private:
  using Members = std::map<std::int32_t, Span>;
  using Actions = std::map<Kind, Span>;

  Maybe read_group(const JsonValue& value) {
    if (auto refusal = refuse_other_object(value, "a group", kGroupKeys, kModelSchema)) {
      return refusal;
    }
    for (const std::string_view key : {"name", "members", "actions"}) {
      if (!value.find(key)) {
        return malformed(value.span(), fmt::format("the group has no `{}`", key));
      }
    }
    CollectiveGroup& group = groups_.emplace_back();
    auto name = read_name(*value.find("name"), "the `name` of a group");
    if (!name) return name.error();
    group.name = std::move(*name);

    auto members = read_members(*value.find("members"));
    if (!members) return members.error();
    for (const auto& [rank, span] : *members) group.members.push_back(rank);
    auto actions = read_actions(*value.find("actions"));
    if (!actions) return actions.error();
    for (const auto& [action, span] : *actions) group.actions.push_back(action);

    if (auto refusal = refuse_second_group(*members, *actions)) return refusal;
    const auto streams = value.find("streams");
    return streams ? read_streams(*streams, group) : std::nullopt;
  }

  Read<Members> read_members(const JsonValue& value) {
    if (value.type() != Type::Array) return wrong_type(value, "`members`", "an array of ranks");
    if (!value.first()) return malformed(value.span(), "a group has at least one member");
    Members members;
    for (auto item = value.first(); item; item = item->next()) {
      const auto rank = read_rank(*item);
      if (!rank) return rank.error();
      const auto [before, first] = members.emplace(*rank, item->span());
      if (first) continue;
      return repeated(item->span(), fmt::format("rank {} is twice in one group", *rank),
                      before->second, "it is here already");
    }
    return members;
  }

  Read<std::int32_t> read_rank(const JsonValue& value) const {
    const std::uint64_t limit = std::min<std::uint64_t>(limits_.ranks, 0x7fffffff);
    const bool whole = value.type() == Type::Number && value.number_type() == NumberType::Integer;
    if (whole && value.number() >= static_cast<double>(limit)) {
      return over_limit(value.span(),
                        fmt::format("a member is beyond the limit of {} ranks", limits_.ranks),
                        "--max-ranks");
    }
    const auto rank = read_whole(value, "a member", 0, 0x7fffffff);
    if (!rank) return rank.error();
    return static_cast<std::int32_t>(*rank);
  }

  static Read<Actions> read_actions(const JsonValue& value) {
    if (value.type() != Type::Array) return wrong_type(value, "`actions`", "an array of strings");
    if (!value.first()) return malformed(value.span(), "a group performs at least one action");
    Actions actions;
    const auto words = collective_words();
    for (auto item = value.first(); item; item = item->next()) {
      const auto word = read_word(*item, "an action of a group", words);
      if (!word) return word.error();
      const auto [before, first] = actions.emplace(kCollectives[*word], item->span());
      if (first) continue;
      return repeated(item->span(), fmt::format("`{}` is twice in one group", words[*word]),
                      before->second, "it is here already");
    }
    return actions;
  }

  // A rank performs an action with one group only; with two it would be unknown which one is meant.
  Maybe refuse_second_group(const Members& members, const Actions& actions) {
    for (const auto& [rank, span] : members) {
      for (const auto& [action, where] : actions) {
        const auto [before, first] = member_of_.emplace(std::pair(rank, action), span);
        if (first) continue;
        return repeated(
            span,
            fmt::format("rank {} performs `{}` in another group already", rank, word_of(action)),
            before->second, "it is a member here");
      }
    }
    return std::nullopt;
  }

  static Maybe read_streams(const JsonValue& value, CollectiveGroup& group) {
    if (value.type() != Type::Object) {
      return wrong_type(value, "`streams`", "an object of names by action");
    }
    for (auto member = value.first(); member; member = member->next()) {
      const auto found = std::find_if(group.actions.begin(), group.actions.end(), [&](Kind action) {
        return word_of(action) == member->key();
      });
      if (found == group.actions.end()) {
        std::vector<std::string_view> words;
        for (const Kind action : group.actions) words.push_back(word_of(action));
        return malformed(member->key_span(),
                         fmt::format("{} is no action of this group", shown(member->key())),
                         did_you_mean(member->key(), words, ""));
      }
      auto name = read_name(*member, "the name of a stream");
      if (!name) return name.error();
      group.streams.emplace_back(*found, std::move(*name));
    }
    std::sort(group.streams.begin(), group.streams.end());
    return std::nullopt;
  }

  const Limits& limits_;
  std::vector<CollectiveGroup> groups_;
  std::map<std::pair<std::int32_t, Kind>, Span> member_of_;
};

}  // namespace

Read<std::vector<CollectiveGroup>> read_groups(const JsonValue& value, const Limits& limits) {
  return Reader(limits).read(value);
}

}  // namespace capo
