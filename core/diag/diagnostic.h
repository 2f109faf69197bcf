// A finding, as a plain value: whoever finds it appends one, and only core/report turns it into
// words on a terminal, JSON or SARIF.
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
  Shape,         ///< what one order holds
  Dependencies,  ///< what must come before what
  Placement,     ///< which rank runs which stage
  Routing,       ///< what Megatron's runtime receives when
  Transfers,     ///< sends, receives and collectives across ranks
  Buffers,       ///< memory that graphs share
  Streams,       ///< what runs beside what, with nothing between them
  Replay,        ///< the order of capture against that of replay
  Gradients,     ///< what becomes of each parameter's gradient
  Capture,       ///< what a graph cannot hold, or bakes in
};

enum class Severity { Error, Warning };

/// A place and what is there: "the forward it needs is here".
struct Label {
  Span span;
  std::string text;  ///< may be empty: the message says it all

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
  std::vector<Edit> edits;  ///< empty where the cure is not one that capo can write down

  friend bool operator==(const Help&, const Help&) = default;
};

enum class WitnessKind { Entries, Path, WaitCycle, Mismatch, Replay };

/// One entry of one rank's order, in the words of the user and of the model.
struct TaskReference {
  int rank = 0;
  std::size_t index = 0;  ///< position in the rank's order, from 0
  std::string text;       ///< the entry as written
  std::string action;     ///< "F(c1,m0)"; empty where the entry is no action

  friend bool operator==(const TaskReference&, const TaskReference&) = default;
};

struct Witness {
  WitnessKind kind = WitnessKind::Entries;
  std::vector<TaskReference> tasks;

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

}  // namespace capo
