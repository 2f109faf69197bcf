#include <capo/core/rules/checks.h>
#include <capo/core/rules/rule.h>

#include <algorithm>
#include <array>

namespace capo {

namespace {

using enum Family;

constexpr std::array kCatalogue{
    Rule{"I01", "malformed", "the input is not in the language", Input, Pass::Reading, nullptr},
    Rule{"I02", "limit", "the input is larger than a limit allows", Input, Pass::Reading, nullptr},

    Rule{"S01", "not-finite", "an entry is NaN or infinite", Shape, Pass::Entries,
         rules::not_finite},
    Rule{"S02", "not-a-half", "a fraction other than one half", Shape, Pass::Entries,
         rules::not_a_half},
    Rule{"S03", "float-chunk", "a whole number written as a float", Shape, Pass::Entries,
         rules::float_chunk},
    Rule{"S04", "chunk-zero", "chunks are counted from 1", Shape, Pass::Entries, rules::chunk_zero},
    Rule{"S05", "half-forward", "a forward cannot be a half", Shape, Pass::Entries,
         rules::half_forward},
    Rule{"S06", "empty-order", "an order without a forward", Shape, Pass::Entries,
         rules::empty_order},
    Rule{"S07", "microbatch-missing", "an action without its microbatch", Shape, Pass::Entries,
         rules::microbatch_missing},
    Rule{"S08", "dropped-text", "PyTorch reads only the beginning of a cell", Shape, Pass::Entries,
         rules::dropped_text},
    Rule{"S09", "composite-form", "a composite that is none", Shape, Pass::Entries,
         rules::composite_form},
    Rule{"S10", "surplus-microbatch", "a microbatch on an action of a whole stage", Shape,
         Pass::Entries, rules::surplus_microbatch},
    Rule{"S11", "table-form", "an action that this kind of table does not hold", Shape,
         Pass::Entries, rules::table_form},

    Rule{"S12", "unknown-chunk", "a chunk that the rank does not have", Shape, Pass::Counts,
         rules::unknown_chunk},
    Rule{"S13", "missing-chunk", "a chunk that never runs", Shape, Pass::Counts,
         rules::missing_chunk},
    Rule{"S14", "unequal-microbatches", "chunks run different numbers of microbatches", Shape,
         Pass::Counts, rules::unequal_microbatches},
    Rule{"S15", "backward-count", "a chunk has not as many backwards as forwards", Shape,
         Pass::Counts, rules::backward_count},
    Rule{"S16", "weight-count", "a chunk has not as many weight gradients as backwards", Shape,
         Pass::Counts, rules::weight_count},
    Rule{"S17", "weight-undeclared", "a weight gradient of a chunk that does not delay it", Shape,
         Pass::Counts, rules::weight_undeclared},
    Rule{"S18", "layers-per-chunk", "layers that do not fit the chunks", Shape, Pass::Counts,
         rules::layers_per_chunk},
    Rule{"S19", "microbatch-out-of-range", "a microbatch that the step does not have", Shape,
         Pass::Counts, rules::microbatch_out_of_range},
    Rule{"S20", "repeated-action", "the same action twice", Shape, Pass::Counts,
         rules::repeated_action},
    Rule{"S21", "missing-action", "an action of a microbatch is missing", Shape, Pass::Counts,
         rules::missing_action},
    Rule{"S22", "split-and-whole", "a microbatch has a whole backward and a split one", Shape,
         Pass::Counts, rules::split_and_whole},

    Rule{"S23", "backward-ahead", "backwards run ahead of forwards", Shape, Pass::Order,
         rules::backward_ahead},
    Rule{"S24", "weight-ahead", "weight gradients run ahead of backwards", Shape, Pass::Order,
         rules::weight_ahead},

    Rule{"D01", "backward-before-forward", "a backward before its own forward", Dependencies,
         Pass::Order, rules::backward_before_forward},
    Rule{"D02", "weight-before-backward", "a weight gradient before its own backward", Dependencies,
         Pass::Order, rules::weight_before_backward},

    Rule{"P01", "stage-twice", "a stage on two ranks", Family::Placement, Pass::Placement,
         rules::stage_twice},
    Rule{"P02", "stage-nowhere", "a stage on no rank", Family::Placement, Pass::Placement,
         rules::stage_nowhere},
    Rule{"P03", "stage-unknown", "a stage that the model does not have", Family::Placement,
         Pass::Placement, rules::stage_unknown},
};

}  // namespace

std::span<const Rule> catalogue() {
  return kCatalogue;
}

const Rule* find_rule(std::string_view id_or_name) {
  const auto found = std::find_if(kCatalogue.begin(), kCatalogue.end(), [&](const Rule& rule) {
    return rule.id == id_or_name || rule.name == id_or_name;
  });
  return found == kCatalogue.end() ? nullptr : &*found;
}

std::string_view name_of(Family family) {
  switch (family) {
    case Family::Input:
      return "input";
    case Family::Shape:
      return "shape";
    case Family::Dependencies:
      return "dependencies";
    case Family::Placement:
      return "placement";
  }
  return "unknown";
}

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::Reading:
      return "reading";
    case Pass::Entries:
      return "entries";
    case Pass::Counts:
      return "counts";
    case Pass::Order:
      return "order";
    case Pass::Placement:
      return "placement";
  }
  return "unknown";
}

}  // namespace capo
