#include "core/report/report.h"

#include "core/base/plural.h"
#include "core/diag/lines.h"
#include "core/report/patterns.h"
#include "core/text/number.h"
#include "core/text/printable.h"
#include "core/text/stated_transfers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

namespace capo {

namespace {

constexpr std::size_t kWidth = 96;          // bytes in the window of a source line
constexpr std::size_t kLongestText = 2000;  // bytes of a message or a help
constexpr std::size_t kMostLabels = 24;     // a circle of waits can go through all ranks
constexpr std::size_t kFewestToGroup = 4;   // findings of one pattern
constexpr std::size_t kScreen = 40;         // lines, behind which findings are cut to headlines
constexpr std::size_t kMostHeadlines = 8;
constexpr std::size_t kMostSuppressions = 3;  // findings that are listed of each suppression

class TextWriter {
 public:
  TextWriter(const Report& report, Colour colour, ShownFindings findings)
      : report_(report), lines_(*report.source), colour_(colour), findings_(findings) {}

  std::string write() {
    write_findings();
    write_suppressed();
    write_rest();
    write_opinions();
    return write_verdict_alone();
  }

  std::string write_verdict_alone() {
    write_verdict();
    return std::move(out_);
  }

 private:
  enum class Ink { Error, Warning, Good, Frame, Strong };

  std::string inked(Ink ink, std::string_view text) const {
    if (colour_ == Colour::Off) return std::string(text);
    const char* code = ink == Ink::Error     ? "1;31"
                       : ink == Ink::Warning ? "1;33"
                       : ink == Ink::Good    ? "1;32"
                       : ink == Ink::Frame   ? "1;34"
                                             : "1";
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

  // Findings of one pattern become one, and what goes beyond a screen keeps its headline alone.
  void write_findings() {
    if (findings_ == ShownFindings::All) {
      for (const Diagnostic& finding : report_.diagnostics.kept()) write_diagnostic(finding);
      return;
    }
    std::size_t cut = 0;
    for (const Pattern& pattern : patterns_of(report_.diagnostics.kept())) {
      if (pattern.findings.size() >= kFewestToGroup) {
        cut += write_pattern(pattern) ? 0 : 1;
        continue;
      }
      for (const Diagnostic* finding : pattern.findings) cut += write_cut(*finding) ? 0 : 1;
    }
    if (without_headline_ > 0) {
      out_ += fmt::format("and {} more\n",
                          counted(without_headline_, "kind of finding", "kinds of findings"));
    }
    if (cut > 0) out_ += "`--all` shows each with its places\n\n";
  }

  [[nodiscard]] bool fills_the_screen() const {
    return static_cast<std::size_t>(std::count(out_.begin(), out_.end(), '\n')) >= kScreen;
  }

  // The first few findings that are cut have a headline, and so has the first of each rule.
  bool has_headline(std::string_view rule) {
    const bool first = rules_.insert(rule).second;
    if (headlines_ >= kMostHeadlines && !first) {
      ++without_headline_;
      return false;
    }
    ++headlines_;
    return true;
  }

  // Returns whether the finding is there with its places.
  bool write_cut(const Diagnostic& finding) {
    if (fills_the_screen()) {
      if (has_headline(finding.rule)) write_headline(finding, finding.message);
      return false;
    }
    write_diagnostic(finding);
    return true;
  }

  bool write_pattern(const Pattern& pattern) {
    const Diagnostic& first = *pattern.findings.front();
    const bool cut = fills_the_screen();
    if (cut && !has_headline(first.rule)) return false;
    write_headline(first, fmt::format("{} times: {}", pattern.findings.size(), pattern.words));
    if (cut) return false;
    write_body(first, fmt::format("this is the first, the last is at {}; `--all` lists them",
                                  place_words(*pattern.findings.back())));
    return true;
  }

  std::string place_words(const Diagnostic& finding) const {
    if (finding.labels.empty()) return printable(report_.source->name);
    const Span span = finding.labels.front().span;
    const LineColumn at = place(span);
    return fmt::format("{}:{}:{}", report_.source->name_at(span.offset), at.line, at.column);
  }

  void write_headline(const Diagnostic& finding, std::string_view words) {
    rules_.insert(finding.rule);
    const Ink ink = finding.severity == Severity::Error ? Ink::Error : Ink::Warning;
    out_ += inked(ink, fmt::format("{}[{}]", name_of(finding.severity), finding.rule));
    out_ += inked(Ink::Strong, ": " + printable(words, kLongestText)) + "\n";
  }

  [[nodiscard]] std::size_t most_labels() const {
    return findings_ == ShownFindings::All ? kMostLabels : kMostLabels / 3;
  }

  void write_diagnostic(const Diagnostic& diagnostic) {
    write_headline(diagnostic, diagnostic.message);
    write_body(diagnostic, "");
  }

  void write_body(const Diagnostic& diagnostic, const std::string& last_note) {
    const Ink ink = diagnostic.severity == Severity::Error ? Ink::Error : Ink::Warning;
    gutter_ = 1;
    for (const Label& label : diagnostic.labels) {
      gutter_ = std::max(gutter_, std::to_string(place(label.span).line).size());
    }
    const std::size_t shown = std::min(diagnostic.labels.size(), most_labels());
    for (std::size_t i = 0; i < shown; ++i) write_label(diagnostic, i, ink);
    if (shown < diagnostic.labels.size()) {
      frame_line("|", " ");
      write_attached("note", fmt::format("{} more places; --format json names them all",
                                         diagnostic.labels.size() - shown));
    }
    if (diagnostic.labels.empty()) frame_line("--> " + printable(report_.source->name), " ");
    if (!diagnostic.labels.empty() &&
        (!diagnostic.notes.empty() || !diagnostic.help.text.empty())) {
      frame_line("|", " ");
    }
    for (const Note& note : diagnostic.notes)
      write_attached("note", printable(note.text, kLongestText));
    if (!last_note.empty()) write_attached("note", last_note);
    if (!diagnostic.help.text.empty())
      write_attached("help",
                     printable(diagnostic.help.text + edit_words(diagnostic.help), kLongestText));
    out_ += "\n";
  }

  LineColumn place(Span span) const { return lines_.place(span.offset); }

  // `gutter` is a line number, or a blank for none.
  void frame_line(std::string_view mark, std::string_view gutter, std::string_view rest = {}) {
    const bool arrow = mark.starts_with("-->") || mark.starts_with(":::");
    std::string lead(gutter_ - std::min(gutter_, gutter.size()), ' ');
    lead += gutter;
    if (!arrow) lead += ' ';
    out_ += inked(Ink::Frame, lead + std::string(mark.substr(0, 3)));
    if (arrow) out_ += mark.substr(3);
    if (!rest.empty()) out_ += " " + std::string(rest);
    out_ += "\n";
  }

  // A label on the line that was shown last, within its window, goes under it.
  void write_label(const Diagnostic& diagnostic, std::size_t i, Ink ink) {
    const Label& label = diagnostic.labels[i];
    const LineColumn at = place(label.span);
    const Window window = window_of(label.span, i == 0 ? label.span : window_owner_);
    const bool shares_line = i > 0 && at.line == place(diagnostic.labels[i - 1].span).line &&
                             window.holds &&
                             report_.source->name_at(label.span.offset) ==
                                 report_.source->name_at(diagnostic.labels[i - 1].span.offset);
    if (!shares_line) {
      window_owner_ = label.span;
      frame_line(fmt::format("{} {}:{}:{}", i == 0 ? "-->" : ":::",
                             report_.source->name_at(label.span.offset), at.line, at.column),
                 " ");
      if (i == 0) frame_line("|", " ");
      frame_line("|", std::to_string(at.line), window.text);
    }
    std::string marks =
        std::string(window.begin, ' ') + std::string(window.length, i == 0 ? '^' : '-');
    if (!label.text.empty()) marks += " " + printable(label.text, kLongestText);
    out_ += inked(Ink::Frame, std::string(gutter_, ' ') + " |") + " " +
            inked(i == 0 ? ink : Ink::Frame, marks) + "\n";
  }

  struct Window {
    std::string text;
    std::size_t begin;
    std::size_t length;
    bool holds;  // the span lies in the window that was made for the primary place
  };

  // The part of the span's line to show, control characters blanked: the window made for `primary`
  // if that holds the span, else one around the span itself.
  Window window_of(Span span, Span primary) const {
    const std::string_view line = lines_.line_at(span.offset);
    const auto first_for = [&](Span of) {
      const std::size_t column = place(of).column - 1;
      const bool fits = line.size() <= kWidth || column + shown_length(of) <= kWidth * 3 / 4;
      return fits || column <= kWidth / 2 ? std::size_t{0} : column - kWidth / 2;
    };
    const std::size_t column = place(span).column - 1;
    std::size_t first = first_for(primary);
    const bool holds = column >= first && column + shown_length(span) <= first + kWidth;
    if (!holds) first = first_for(span);
    // A window begins and ends between characters.
    while (first > 0 && first < line.size() && utf8_length(line.substr(first)) == 0) --first;
    const Shown before = shown(line, first, column);
    const Shown marked = shown(line, column, std::min(column + shown_length(span), line.size()));
    const Shown after = shown(line, std::min(column + shown_length(span), line.size()),
                              std::min(first + kWidth, line.size()));
    const std::string_view cut = first > 0 ? "..." : "";
    const std::string_view rest = first + kWidth < line.size() ? "..." : "";
    return {.text = std::string(cut) + before.text + marked.text + after.text + std::string(rest),
            .begin = before.columns + cut.size(),
            .length = std::max<std::size_t>(marked.columns, 1),
            .holds = holds};
  }

  struct Shown {
    std::string text;
    std::size_t columns = 0;
  };

  // Bytes [begin, end) of a line as they appear: each character takes a column, and so does each
  // byte that does not print.
  static Shown shown(std::string_view line, std::size_t begin, std::size_t end) {
    Shown out;
    while (begin < end) {
      const std::size_t length = utf8_length(line.substr(begin));
      const auto byte = static_cast<unsigned char>(line[begin]);
      const bool c1 =
          byte == 0xc2 && length == 2 && static_cast<unsigned char>(line[begin + 1]) < 0xa0;
      const bool prints = length > 0 && byte >= 0x20 && byte != 0x7f && !c1;
      out.text += prints ? line.substr(begin, length) : length == 1 || c1 ? " " : "\xef\xbf\xbd";
      ++out.columns;
      begin += std::max<std::size_t>(length, 1);
    }
    return out;
  }

  static std::size_t shown_length(Span span) {
    return std::clamp<std::size_t>(span.length, 1, kWidth / 2);
  }

  void write_attached(std::string_view kind, std::string_view text) {
    out_ += inked(Ink::Frame, std::string(gutter_, ' ') + " = ") +
            inked(Ink::Strong, std::string(kind) + ":") + " " + std::string(text) + "\n";
  }

  // Writes the edit itself, unless the words of the help quote it already.
  static std::string edit_words(const Help& help) {
    if (help.edits.empty()) return "";
    std::string_view text = help.edits.front().replacement;
    text.remove_prefix(std::min(text.find_first_not_of(", \""), text.size()));
    text = text.substr(0, text.find_last_not_of('"') + 1);
    if (help.text.find(text) != std::string::npos) return "";
    return fmt::format(": `{}`", text);
  }

  // Each suppression says what it covers: the first findings, or all of them.
  void write_suppressed() {
    const auto& all = report_.suppressed;
    for (auto first = all.begin(); first != all.end();) {
      const auto covered_too = [&](const Suppressed& of) {
        return of.by.written_at == first->by.written_at;
      };
      const auto next = std::find_if_not(first, all.end(), covered_too);
      write_suppression({first, next});
      first = next;
    }
  }

  void write_suppression(std::span<const Suppressed> covered) {
    const Suppressed& first = covered.front();
    gutter_ = 1;
    out_ += inked(Ink::Strong, fmt::format("suppressed[{}]: {}", first.finding.rule,
                                           printable(first.by.reason, kLongestText)));
    out_ += "\n";
    frame_line("--> " + printable(first.by.written_at), " ");
    const std::size_t most = findings_ == ShownFindings::All ? covered.size() : kMostSuppressions;
    for (const Suppressed& of : covered.first(std::min(most, covered.size()))) {
      write_attached(name_of(of.finding.severity),
                     fmt::format("{}: {}", place_words(of.finding),
                                 printable(of.finding.message, kLongestText)));
    }
    if (covered.size() > most)
      write_attached("note", fmt::format("{} more; `--all` lists them", covered.size() - most));
    out_ += "\n";
  }

  void write_rest() {
    if (report_.diagnostics.dropped() > 0) {
      out_ +=
          fmt::format("{} more findings are not shown; --max-findings shows more of each rule\n\n",
                      report_.diagnostics.dropped());
    }
    if (!report_.skipped.empty()) {
      std::vector<std::string_view> names;
      for (const Pass pass : report_.skipped) names.push_back(name_of(pass));
      out_ += fmt::format("not checked before these are cured: {}\n\n", fmt::join(names, ", "));
    }
  }

  void write_opinions() {
    for (const Opinion& opinion : report_.opinions) {
      const std::string_view words = disagreement(report_, opinion);
      const std::string_view says = !opinion.accepts   ? "cannot be asked"
                                    : *opinion.accepts ? "accepts"
                                                       : "refuses";
      out_ += inked(Ink::Strong, fmt::format("profile {}: {}", opinion.profile, says));
      if (!words.empty()) out_ += inked(Ink::Warning, fmt::format(" ({})", words));
      // Megatron captures through TE, and often says the same.
      const bool repeated = &opinion != &report_.opinions.front() &&
                            opinion.reason == report_.opinions.front().reason;
      if (repeated && !opinion.reason.empty()) {
        out_ += fmt::format(", as {} does", report_.opinions.front().profile);
      } else if (!opinion.reason.empty()) {
        out_ += fmt::format("\n  {}", printable(opinion.reason, kLongestText));
      }
      for (const TorchMisreading& misreading : opinion.misreadings) {
        out_ += fmt::format("\n  torch reads `{}` as `{}`", printable(misreading.text, 40),
                            printable(misreading.torch_reads, 40));
      }
      out_ += "\n";
    }
    if (!report_.opinions.empty()) out_ += "\n";
  }

  void write_verdict() {
    const Diagnostics& found = report_.diagnostics;
    switch (report_.verdict) {
      case Verdict::Accepted:
        out_ += accepted_words();
        break;
      case Verdict::Rejected:
        out_ += inked(Ink::Error, "rejected");
        break;
      case Verdict::NoVerdict:
        out_ += inked(Ink::Error, "no verdict");
        break;
    }
    if (report_.verdict == Verdict::Accepted && found.warnings() > 0) {
      out_ += ", with " + counted(found.warnings(), "warning");
      write_where_to_read_on(Severity::Warning);
    }
    if (report_.verdict == Verdict::Rejected) {
      out_ += ": " + counted(found.errors(), "error");
      write_where_to_read_on(Severity::Error);
    }
    write_number_suppressed();
    out_ += "\n";
    if (report_.environment) out_ += environment_words(*report_.environment) + "\n";
    if (report_.plan && report_.plan->declared) out_ += plan_words(*report_.plan) + "\n";
    if (report_.left_unasked) out_ += fmt::format("  {}\n", kLeftUnasked);
    for (const std::string& note : report_.notes) out_ += fmt::format("  note: {}\n", note);
  }

  [[nodiscard]] std::string accepted_words() const {
    const std::size_t errors = suppressed_of(report_, Severity::Error);
    if (errors == 0) return inked(Ink::Good, "accepted");
    return inked(Ink::Warning,
                 fmt::format("accepted but for {}", suppressed_words(errors, Severity::Error)));
  }

  static std::string suppressed_words(std::size_t number, Severity severity) {
    return counted(static_cast<std::int64_t>(number),
                   fmt::format("suppressed {}", name_of(severity)));
  }

  // Those that no word before has told.
  void write_number_suppressed() {
    for (const Severity severity : {Severity::Error, Severity::Warning}) {
      const std::size_t number = suppressed_of(report_, severity);
      const bool told = severity == Severity::Error && report_.verdict == Verdict::Accepted;
      if (number > 0 && !told) out_ += ", " + suppressed_words(number, severity);
    }
  }

  // The rule of the first finding that makes the verdict what it is.
  void write_where_to_read_on(Severity severity) {
    const std::vector<Diagnostic>& kept = report_.diagnostics.kept();
    const auto first = std::find_if(kept.begin(), kept.end(), [&](const Diagnostic& finding) {
      return finding.severity == severity;
    });
    if (first != kept.end()) out_ += fmt::format("; `capo explain {}` tells more", first->rule);
  }

  static std::string modules_words(const std::vector<std::string>& modules) {
    if (modules.empty()) return "no modules";
    constexpr std::size_t kMost = 6;
    const std::size_t named = std::min(modules.size(), kMost);
    std::string words = fmt::format(
        "{} {}", plural(modules.size(), "module"),
        fmt::join(modules.begin(), modules.begin() + static_cast<std::ptrdiff_t>(named), ", "));
    if (named < modules.size()) words += fmt::format(" and {} more", modules.size() - named);
    return printable(words, kLongestText);
  }

  // The memory that the plan takes on the rank that needs most.
  static std::string plan_words(const PlanResult& plan) {
    const auto most = std::max_element(plan.ranks.begin(), plan.ranks.end(),
                                       [](const RankMemory& a, const RankMemory& b) {
                                         return a.peak() + a.weights < b.peak() + b.weights;
                                       });
    if (most == plan.ranks.end()) return "  the plan is of no rank";
    const auto rank = most - plan.ranks.begin();
    std::string words = "  ";
    if (plan.ranks.size() > 1) words += fmt::format("rank {} needs most: ", rank);
    if (most->input_slots > 0) {
      words += counted(most->input_slots, "slot") + " of static inputs, ";
    }
    // A plan may take less if layers read their neighbours' tensors.
    const bool in_place =
        plan.kind == PlanKind::McoreLocal ||
        (plan.kind == PlanKind::Given && plan.hazards.empty() && most->peak() < most->lower_bound);
    const std::string_view others =
        in_place ? "no plan whose layers copy, without hazards," : "no plan without hazards";
    if (!plan.sized) {
      words += fmt::format("{} buffers at once; {} takes less than {}", most->peak(), others,
                           most->lower_bound);
    } else {
      words += fmt::format("{} of buffers; {} takes less than {}", byte_words(most->peak()), others,
                           byte_words(most->lower_bound));
    }
    if (most->peaks_in_warm_up()) {
      words +=
          fmt::format("; the passes before capture take {}",
                      plan.sized ? byte_words(most->warm_up) : counted(most->warm_up, "buffer"));
    }
    return words + (has_transfers(plan) ? transfers_words(plan) : "");
  }

  // How many buffers the transfers of each rank hold, with their bytes.
  static std::string transfers_words(const PlanResult& plan) {
    constexpr std::size_t kMost = 8;
    std::vector<std::string> receives;
    std::vector<std::string> sends;
    for (std::size_t r = 0; r < std::min(plan.ranks.size(), kMost); ++r) {
      const TransferMemory& of = plan.ranks[r].transfers;
      const auto bytes = [&](std::int64_t number) {
        return plan.sized && number > 0 ? fmt::format(" ({})", byte_words(number)) : "";
      };
      receives.push_back(std::to_string(of.receives) + bytes(of.receive_bytes));
      sends.push_back(std::to_string(of.sends) + bytes(of.send_bytes));
    }
    const std::string more = plan.ranks.size() > kMost ? ", ..." : "";
    return fmt::format("\n  slots for receives by rank: {}{}\n  tensors being sent at once: {}{}",
                       fmt::join(receives, ", "), more, fmt::join(sends, ", "), more);
  }

  static std::string environment_words(const Setting& environment) {
    const bool alike = std::adjacent_find(environment.chunks.begin(), environment.chunks.end(),
                                          std::not_equal_to<>()) == environment.chunks.end();
    std::string words = "  " + counted(environment.ranks, "rank") + ", ";
    words += environment.chunks.empty() || !alike ? "chunks by rank"
                                                  : counted(environment.chunks.front(), "chunk");
    if (environment.ranks > 1 && alike) words += " each";
    words += ", " + counted(environment.microbatches, "microbatch", "microbatches");
    words += fmt::format(", topology {}, {}, {}", environment.topology,
                         environment.plan ? fmt::format("plan {}", name_of(*environment.plan))
                                          : std::string("no plan"),
                         modules_words(environment.modules));
    if (environment.communicates) words += communication_words(environment);
    std::vector<std::string_view> taken;
    for (const std::string_view fact : environment.assumed) {
      if (values_judged(environment, fact) == nullptr) taken.push_back(fact);
    }
    if (!taken.empty()) {
      words += fmt::format("\n  not declared: {}; `--explain-model` says what is taken",
                           fmt::join(taken, ", "));
    }
    return words;
  }

  static const Undeclared* values_judged(const Setting& environment, std::string_view key) {
    const auto found = std::find_if(environment.undeclared.begin(), environment.undeclared.end(),
                                    [key](const Undeclared& fact) { return fact.key == key; });
    return found == environment.undeclared.end() ? nullptr : &*found;
  }

  // The value that was declared or assumed, or that all are judged.
  static std::string value_words(const Setting& environment, std::string_view key,
                                 std::string_view value) {
    return values_judged(environment, key) == nullptr ? fmt::format("{} {}", key, value)
                                                      : fmt::format("any {}", key);
  }

  static std::string communication_words(const Setting& environment) {
    const Environment& across = environment.across;
    return fmt::format("\n  {}{}, {}, {}",
                       value_words(environment, "communicators", name_of(across.layout())),
                       across.made_lazily() ? " made at their first use" : "",
                       value_words(environment, "transfers", transfers_text(across)),
                       across.p2p ? fmt::format("Megatron's calls ({})", name_of(*across.p2p))
                                  : std::string("as written or as PyTorch adds them"));
  }

  const Report& report_;
  const Lines lines_;
  Colour colour_;
  ShownFindings findings_;
  std::set<std::string_view> rules_;  // that have a finding shown
  std::size_t headlines_ = 0;         // of findings that are cut to them
  std::size_t without_headline_ = 0;  // findings that are cut altogether
  std::size_t gutter_ = 1;
  Span window_owner_;  // the label whose line was shown last, with a window made for it
  std::string out_;
};

}  // namespace

std::string verdict_text(const Report& report) {
  return TextWriter(report, Colour::Off, ShownFindings::Grouped).write_verdict_alone();
}

std::string to_text(const Report& report, Colour colour, ShownFindings findings) {
  return TextWriter(report, colour, findings).write();
}

}  // namespace capo
