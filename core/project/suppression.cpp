#include "core/project/suppression.h"

#include "core/base/nearest.h"
#include "core/diag/lines.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace capo {

namespace {

constexpr std::string_view kForm = "write `# capo: allow E01 at B1.0: the reason`";

bool has_comments(TextForm form) {
  return form == TextForm::OrderFile || form == TextForm::TeList;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Cuts the first word off, with the blanks around it.
std::string_view cut_word(std::string_view& text) {
  text = without_blanks(text);
  const std::size_t length = std::min(text.find_first_of(" \t:"), text.size());
  const std::string_view word = text.substr(0, length);
  text = without_blanks(text.substr(length));
  return word;
}

// The bytes of a line before its comment, and of the comment behind its `#`.
struct LineParts {
  Span before;
  std::optional<Span> comment;
};

LineParts parts_of(std::string_view text, std::size_t begin) {
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  const std::size_t hash = std::min(line.find('#'), line.size());
  LineParts parts{.before = span_of(begin, begin + hash), .comment = {}};
  if (hash == line.size()) return parts;
  const std::size_t length = line.find_last_not_of(" \t\r") + 1 - hash;
  parts.comment = span_of(begin + hash, begin + hash + length);
  return parts;
}

constexpr std::string_view kMark = "capo:";

class Comments {
 public:
  explicit Comments(const Source& source) : source_(source), lines_(source) {}

  Read<std::vector<Suppression>> read() {
    const std::string_view text = source_.text;
    for (std::size_t at = 0; at < text.size();
         at = std::min(text.find('\n', at), text.size()) + 1) {
      if (auto refusal = read_line(parts_of(text, at))) return *std::move(refusal);
    }
    return std::move(found_);
  }

 private:
  std::optional<Refusal> read_line(const LineParts& line) {
    std::optional<Refusal> refusal;
    if (line.comment) refusal = read_comment(*line.comment);
    if (without_blanks(source_.slice(line.before)).empty()) return refusal;
    for (; open_ < found_.size(); ++open_) found_[open_].line = line.before;
    return refusal;
  }

  std::optional<Refusal> read_comment(Span place) {
    std::string_view rest = without_blanks(source_.slice(place).substr(1));
    if (!rest.starts_with(kMark)) return std::nullopt;
    rest.remove_prefix(kMark.size());
    if (const std::string_view verb = cut_word(rest); verb != "allow") {
      return malformed(place, fmt::format("{} is no directive of a comment", shown(verb)),
                       std::string(kForm));
    }
    Suppression one{.span = place, .line = Span{}};
    const auto rule = suppressible_rule(cut_word(rest));
    if (!rule) return malformed(place, rule.error());
    one.rule = *rule;
    if (rest.starts_with("at ")) {
      cut_word(rest);
      one.entry = cut_word(rest);
    }
    if (!rest.starts_with(':'))
      return malformed(place, "a suppression names a rule and a reason", std::string(kForm));
    one.reason = without_blanks(rest.substr(1));
    if (one.reason.empty())
      return malformed(place, "the suppression has no reason", "write why, behind a colon");
    const LineColumn at = lines_.place(place.offset);
    one.written_at = fmt::format("{}:{}:{}", source_.name_at(place.offset), at.line, at.column);
    found_.push_back(std::move(one));
    return std::nullopt;
  }

  const Source& source_;
  Lines lines_;
  std::vector<Suppression> found_;
  std::size_t open_ = 0;  // those from here on cover the next line that holds more than a comment
};

// The first byte that is neither blank nor in a comment, where a finding about the whole stands.
std::uint32_t first_line_of(const Source& source) {
  const std::string_view text = source.text;
  for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1) {
    const Span before = parts_of(text, at).before;
    if (!without_blanks(source.slice(before)).empty()) return before.offset;
  }
  return 0;
}

bool holds(Span line, std::uint32_t offset) {
  return line.offset <= offset && offset - line.offset < line.length;
}

class Suppressing {
 public:
  Suppressing(CheckResult& result, const Input& input, std::span<const Suppression> by)
      : result_(result), input_(input), by_(by), first_(first_line_of(input.source)) {}

  std::vector<Suppressed> run() {
    Diagnostics left(kMostSuppressed);
    std::vector<std::vector<Suppressed>> taken(by_.size());
    for (const Diagnostic& finding : result_.diagnostics.kept()) {
      if (const auto which = covering(finding)) {
        taken[*which].push_back({finding, by_[*which]});
      } else {
        left.add(finding);
      }
    }
    count_unkept(left);
    for (std::size_t which = 0; which < by_.size(); ++which) {
      if (taken[which].empty() && judged(*by_[which].rule)) left.add(unused(by_[which]));
    }
    left.sort();
    result_.diagnostics = std::move(left);
    if (result_.verdict == Verdict::Rejected && result_.diagnostics.errors() == 0)
      result_.verdict = Verdict::Accepted;
    return joined(std::move(taken));
  }

 private:
  static std::vector<Suppressed> joined(std::vector<std::vector<Suppressed>> parts) {
    std::vector<Suppressed> all;
    for (auto& part : parts) {
      all.insert(all.end(), std::make_move_iterator(part.begin()),
                 std::make_move_iterator(part.end()));
    }
    return all;
  }

  // Findings that were counted and not kept stay, errors first, since nobody knows where they are.
  void count_unkept(Diagnostics& left) const {
    const auto& kept = result_.diagnostics.kept();
    const auto kept_of = [&](auto holds) {
      return static_cast<std::size_t>(std::count_if(kept.begin(), kept.end(), holds));
    };
    std::size_t errors = result_.diagnostics.errors() - kept_of([](const Diagnostic& finding) {
                           return finding.severity == Severity::Error;
                         });
    for (const Rule& rule : catalogue()) {
      std::size_t unkept = result_.diagnostics.seen(rule.id);
      if (unkept == 0) continue;
      unkept -= kept_of([&](const Diagnostic& finding) { return finding.rule == rule.id; });
      const std::size_t wrong = std::min(unkept, errors);
      errors -= wrong;
      if (wrong > 0) left.count_unseen(rule.id, wrong);
      for (; unkept > wrong; --unkept) static_cast<void>(left.wants(rule.id, Severity::Warning));
    }
  }

  [[nodiscard]] std::optional<std::size_t> covering(const Diagnostic& finding) const {
    for (std::size_t which = 0; which < by_.size(); ++which) {
      if (covers(by_[which], finding)) return which;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool covers(const Suppression& by, const Diagnostic& finding) const {
    if (by.rule->id != finding.rule) return false;
    const Label* label = finding.labels.empty() ? nullptr : &finding.labels.front();
    if (by.line && !holds(*by.line, label == nullptr ? first_ : label->span.offset)) return false;
    if (!by.entry.empty() && (label == nullptr || input_.source.slice(label->span) != by.entry))
      return false;
    if (!by.rank) return true;
    const auto place = label == nullptr ? std::nullopt : place_of(label->span.offset);
    return place && place->rank == *by.rank && (!by.index || place->index == *by.index);
  }

  // The entry that stands at an offset of the text.
  [[nodiscard]] std::optional<Place> place_of(std::uint32_t offset) const {
    const auto& ranks = input_.schedule.ranks;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      auto index = index_in(ranks[rank].order, offset);
      if (!index && ranks[rank].replay) index = index_in(*ranks[rank].replay, offset);
      if (index) return Place{static_cast<std::int32_t>(rank), *index};
    }
    return std::nullopt;
  }

  // A composite is one cell.
  static std::optional<std::size_t> index_in(const std::vector<Entry>& order,
                                             std::uint32_t offset) {
    std::size_t index = 0;
    for (const Entry& entry : order) {
      if (entry.group != Group::Continues) ++index;
      if (entry.offset == offset) return index - 1;
    }
    return std::nullopt;
  }

  // Whether the rule was looked for, so that its absence says something.
  [[nodiscard]] bool judged(const Rule& rule) const {
    const auto& skipped = result_.skipped;
    if (std::find(skipped.begin(), skipped.end(), rule.pass) != skipped.end()) return false;
    if (rule.pass == Pass::Buffers) return result_.plan && result_.plan_declared;
    return rule.pass != Pass::Modules || !result_.modules.empty();
  }

  static Diagnostic unused(const Suppression& by) {
    Diagnostic finding{.rule = kMalformedRule,
                       .family = Family::Input,
                       .severity = Severity::Warning,
                       .message = fmt::format("this suppresses no finding of {}", by.rule->id),
                       .help = {.text = "take it away, or correct its place", .edits = {}}};
    if (by.span) {
      finding.labels.push_back({*by.span, ""});
    } else {
      finding.message =
          fmt::format("the suppression at {} covers no finding of {}", by.written_at, by.rule->id);
    }
    return finding;
  }

  CheckResult& result_;
  const Input& input_;
  std::span<const Suppression> by_;
  std::uint32_t first_;
};

}  // namespace

// Passes up to that of transfers are the ground of those behind them.
bool can_be_suppressed(const Rule& rule) {
  return rule.pass > Pass::Transfers;
}

Result<const Rule*, std::string> suppressible_rule(std::string_view name) {
  const Rule* rule = find_rule(name);
  if (rule == nullptr)
    return fmt::format("there is no rule {}; `capo rules` lists them", shown(name));
  if (can_be_suppressed(*rule)) return rule;
  return fmt::format("{} cannot be suppressed: what is judged after it rests on it", rule->id);
}

Read<std::vector<Suppression>> suppressions_in(const Source& source, TextForm form) {
  const bool any = has_comments(form) && source.text.find(kMark) != std::string::npos;
  if (!any) return std::vector<Suppression>{};
  return Comments(source).read();
}

std::vector<Suppressed> suppress(CheckResult& result, const Input& input,
                                 std::span<const Suppression> suppressions) {
  if (suppressions.empty()) return {};
  return Suppressing(result, input, suppressions).run();
}

}  // namespace capo
