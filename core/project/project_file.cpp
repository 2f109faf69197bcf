#include "core/project/project_file.h"

#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/diag/lines.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace capo {

namespace {

using Maybe = std::optional<Refusal>;

// Turns places of toml++, which counts lines and columns from 1, into bytes of the text.
class TomlPlaces {
 public:
  explicit TomlPlaces(const Source& source) : source_(source), lines_(source) {}

  [[nodiscard]] Span span(const toml::source_region& region) const {
    const std::uint32_t begin = offset_of(region.begin);
    return {.offset = begin, .length = std::max(offset_of(region.end), begin + 1) - begin};
  }
  [[nodiscard]] std::string words(const toml::source_region& region) const {
    const LineColumn at = lines_.place(offset_of(region.begin));
    return fmt::format("{}:{}:{}", source_.name, at.line, at.column);
  }

 private:
  [[nodiscard]] std::uint32_t offset_of(const toml::source_position& at) const {
    const std::string& text = source_.text;
    std::size_t begin = 0;
    for (toml::source_index line = 1; line < at.line && begin < text.size(); ++line)
      begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::size_t column = std::max<std::size_t>(at.column, 1) - 1;
    return static_cast<std::uint32_t>(std::min(begin + column, text.size()));
  }

  const Source& source_;
  Lines lines_;
};

// Reads one table; each value is taken out by its key, and a key that nobody took is refused.
class TableReader {
 public:
  TableReader(const TomlPlaces& places, const toml::table& table)
      : places_(places), table_(table) {}

  [[nodiscard]] const toml::node* find(std::string_view key) {
    known_.push_back(key);
    return table_.get(key);
  }

  Maybe text(std::string_view key, std::string& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const auto word = node->value_exact<std::string>();
    if (!word || word->empty()) return wrong(*node, key, "a text");
    value = *word;
    return std::nullopt;
  }

  // A text, or a list of them.
  Maybe texts(std::string_view key, std::vector<std::string>& values) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    if (const auto word = node->value_exact<std::string>()) {
      values.push_back(*word);
      return std::nullopt;
    }
    const toml::array* list = node->as_array();
    if (list == nullptr) return wrong(*node, key, "a text, or a list of texts");
    for (const toml::node& item : *list) {
      const auto word = item.value_exact<std::string>();
      if (!word) return wrong(item, key, "a text, or a list of texts");
      values.push_back(*word);
    }
    return std::nullopt;
  }

  template <typename Whole>
  Maybe whole(std::string_view key, std::optional<Whole>& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    const auto number = node->value_exact<std::int64_t>();
    if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max())
      return wrong(*node, key, "a whole number from 0");
    value = static_cast<Whole>(*number);
    return std::nullopt;
  }

  // A word out of `names`, which `named` knows.
  template <typename Value, typename Named>
  Maybe word(std::string_view key, std::optional<Value>& value, Named named,
             std::span<const std::string_view> names) {
    std::string said;
    if (auto refusal = text(key, said); refusal || said.empty()) return refusal;
    value = named(said);
    if (value) return std::nullopt;
    return malformed(span_of_value(key), fmt::format("{} is no `{}`", shown(said), key),
                     did_you_mean(said, names, "there are " + listed(names)));
  }

  Maybe refuse_unknown() const {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      return malformed(places_.span(key.source()),
                       fmt::format("capo.toml has no key {}", shown(key.str())),
                       did_you_mean(key.str(), known_, "there are " + listed(known_)));
    }
    return std::nullopt;
  }

  [[nodiscard]] Span span_of_value(std::string_view key) const {
    return places_.span(table_.get(key)->source());
  }
  [[nodiscard]] Span span() const { return places_.span(table_.source()); }
  [[nodiscard]] std::string place() const { return places_.words(table_.source()); }

 private:
  Maybe wrong(const toml::node& node, std::string_view key, std::string_view what) const {
    return malformed(places_.span(node.source()), fmt::format("`{}` is {}", key, what));
  }

  const TomlPlaces& places_;
  const toml::table& table_;
  std::vector<std::string_view> known_;
};

constexpr std::array<std::string_view, 3> kPlanNames{"te", "safe", "mcore-local"};
constexpr std::array<std::string_view, 3> kFormats{"text", "json", "sarif"};  // by the enum
constexpr std::array<std::string_view, 3> kLayouts{"per-rank", "per-pair", "per-edge"};
constexpr std::array<std::string_view, 2> kModes{"rendezvous", "buffered"};

std::optional<ReportFormat> format_named(std::string_view word) {
  const auto found = std::find(kFormats.begin(), kFormats.end(), word);
  if (found == kFormats.end()) return std::nullopt;
  return static_cast<ReportFormat>(found - kFormats.begin());
}

class ProjectReader {
 public:
  explicit ProjectReader(const Source& source) : source_(source), places_(source) {}

  Read<Project> read() {
    const toml::parse_result parsed = toml::parse(source_.text, source_.name);
    if (!parsed) {
      const toml::parse_error& error = parsed.error();
      return malformed(places_.span(error.source()),
                       fmt::format("not valid TOML: {}", error.description()),
                       "docs/cli.md lists the keys; words stand in quotes, as in `plan = \"te\"`");
    }
    if (auto refusal = read_defaults(parsed.table())) return *std::move(refusal);
    return std::move(project_);
  }

 private:
  Maybe read_defaults(const toml::table& table) {
    TableReader of(places_, table);
    if (auto refusal = of.texts("profile", project_.profiles)) return refusal;
    if (auto refusal = of.text("model", project_.model)) return refusal;
    if (auto refusal = of.word("format", project_.format, format_named, kFormats)) return refusal;
    if (auto refusal = of.word("plan", project_.plan, plan_named, kPlanNames)) return refusal;
    if (auto refusal = of.word("comm", project_.communicators, communicators_named, kLayouts))
      return refusal;
    if (auto refusal = of.word("transfers", project_.transfers, transfer_mode_named, kModes))
      return refusal;
    if (auto refusal = read_modules(of)) return refusal;
    if (auto refusal = read_suppressions(of)) return refusal;
    return of.refuse_unknown();
  }

  Maybe read_modules(TableReader& of) {
    std::vector<std::string> kinds;
    if (auto refusal = of.texts("modules", kinds)) return refusal;
    std::array<std::string_view, kModuleKinds.size()> names;
    std::transform(kModuleKinds.begin(), kModuleKinds.end(), names.begin(),
                   [](ModuleKind kind) { return name_of(kind); });
    if (kinds.empty() && of.find("modules") != nullptr) {
      return malformed(of.span_of_value("modules"), "`modules` names no kind of module",
                       "there are " + listed(names));
    }
    for (const std::string& kind : kinds) {
      const auto named = module_kind_named(kind);
      if (!named) {
        return malformed(of.span_of_value("modules"),
                         fmt::format("{} is no kind of module", shown(kind)),
                         did_you_mean(kind, names, "there are " + listed(names)));
      }
      project_.modules.push_back(*named);
    }
    return std::nullopt;
  }

  Maybe read_suppressions(TableReader& of) {
    const toml::node* node = of.find("suppress");
    if (node == nullptr) return std::nullopt;
    const toml::array* list = node->as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::table))
      return malformed(of.span_of_value("suppress"), "a suppression begins with `[[suppress]]`");
    for (const toml::node& item : *list) {
      if (auto refusal = read_suppression(*item.as_table())) return refusal;
    }
    return std::nullopt;
  }

  Maybe read_suppression(const toml::table& table) {
    TableReader of(places_, table);
    Project::InFile one;
    std::string rule;
    Suppression& suppression = one.suppression;
    if (auto refusal = of.text("file", one.file)) return refusal;
    if (auto refusal = of.text("rule", rule)) return refusal;
    if (auto refusal = of.text("reason", suppression.reason)) return refusal;
    if (auto refusal = of.text("entry", suppression.entry)) return refusal;
    if (auto refusal = of.whole("rank", suppression.rank)) return refusal;
    if (auto refusal = of.whole("index", suppression.index)) return refusal;
    if (auto refusal = of.refuse_unknown()) return refusal;
    for (const auto& [key, value] :
         {std::pair<std::string_view, std::string_view>{"file", one.file},
          {"rule", rule},
          {"reason", suppression.reason}}) {
      if (value.empty())
        return malformed(of.span(), fmt::format("the suppression has no `{}`", key));
    }
    const auto known = suppressible_rule(rule);
    if (!known) return malformed(of.span_of_value("rule"), known.error());
    if (suppression.index && !suppression.rank)
      return malformed(of.span_of_value("index"), "`index` needs the `rank` that it counts in");
    suppression.rule = *known;
    suppression.written_at = of.place();
    one.span = of.span_of_value("file");
    project_.suppressions.push_back(std::move(one));
    return std::nullopt;
  }

  const Source& source_;
  TomlPlaces places_;
  Project project_;
};

}  // namespace

std::string_view name_of(ReportFormat format) {
  return kFormats[as_index(format)];
}

std::vector<Suppression> Project::suppressions_of(std::string_view file) const {
  std::vector<Suppression> found;
  for (const InFile& one : suppressions) {
    if (one.file == file) found.push_back(one.suppression);
  }
  return found;
}

Read<Project> read_project(const Source& source) {
  return ProjectReader(source).read();
}

}  // namespace capo
