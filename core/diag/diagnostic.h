// A finding, as a plain value: a rule appends it, and only core/report turns it into words on a
// terminal, JSON or SARIF.
//
// The first label is the primary place; the others and the notes explain it. The witness names the
// entries that break the rule, so that a program can act on it. Help says what would cure it, with
// an edit where capo knows one.

#pragma once

#include "core/diag/span.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// The chapter of docs/model.md that a rule belongs to.
enum class Family {
  Input,         ///< the text is not in the language: there is no schedule to judge
  Shape,         ///< the actions of one order by themselves
  Dependencies,  ///< actions that must come before others
  Placement,     ///< the ranks that run each stage
  Routing,       ///< tensors that Megatron's runtime hands over, and when
  Transfers,     ///< sends, receives and collectives across ranks
  Buffers,       ///< memory that graphs share
  Streams,       ///< work on several streams that nothing orders
  Replay,        ///< the order of capture against that of replay
  Gradients,     ///< the accumulation of each parameter's gradient
  Capture,       ///< actions that a graph cannot hold, or bakes in
};

enum class Severity { Error, Warning };

/// A place with a remark: "the forward it needs is here".
struct Label {
  Span span;
  std::string text;  ///< may be empty if the message says it all

  friend bool operator==(const Label&, const Label&) = default;
};

struct Note {
  std::string text;
  std::optional<Span> span;

  friend bool operator==(const Note&, const Note&) = default;
};

/// Replace the bytes of `span` by `replacement`.
struct Edit {
  Span span;
  std::string replacement;

  friend bool operator==(const Edit&, const Edit&) = default;
};

struct Help {
  std::string text;
  std::vector<Edit> edits;  ///< empty if capo cannot write the cure down

  friend bool operator==(const Help&, const Help&) = default;
};

enum class WitnessKind { Entries, Path, WaitCycle, Mismatch, Replay };

/// One entry of one rank's order, in the words of the user and of the model.
struct WitnessEntry {
  int rank = 0;
  std::size_t index = 0;  ///< position in the rank's order, from 0
  std::string text;       ///< the entry as written
  std::string action;     ///< "F(c1,m0)"; empty if the entry is no action

  friend bool operator==(const WitnessEntry&, const WitnessEntry&) = default;
};

struct Witness {
  WitnessKind kind = WitnessKind::Entries;
  std::vector<WitnessEntry> tasks;

  friend bool operator==(const Witness&, const Witness&) = default;
};

struct Diagnostic {
  std::string_view rule;  ///< the id in the catalogue, "S07"; it outlives every diagnostic
  Family family = Family::Shape;
  Severity severity = Severity::Error;
  std::string message;
  std::vector<Label> labels;  ///< the first is the primary place; empty: the input as a whole
  std::vector<Note> notes;
  Help help;
  Witness witness;

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// "buffers": the family's name in JSON and on the page of rules.
[[nodiscard]] std::string_view name_of(Family family);
/// "error", "warning".
[[nodiscard]] constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::Error ? "error" : "warning";
}
/// "wait-cycle".
[[nodiscard]] std::string_view name_of(WitnessKind kind);

/// The text with the edits made; they do not overlap.
[[nodiscard]] std::string edited(std::string text, std::vector<Edit> edits);

}  // namespace capo
