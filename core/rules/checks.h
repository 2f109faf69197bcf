// The checks of the catalogue, one per file of the same name under core/rules/.

#pragma once

namespace capo {

class Context;
class Diagnostics;

namespace rules {

// shape/: entries
void not_finite(const Context&, Diagnostics&);
void not_a_half(const Context&, Diagnostics&);
void float_chunk(const Context&, Diagnostics&);
void chunk_zero(const Context&, Diagnostics&);
void half_forward(const Context&, Diagnostics&);
void empty_order(const Context&, Diagnostics&);
void microbatch_missing(const Context&, Diagnostics&);
void dropped_text(const Context&, Diagnostics&);
void composite_form(const Context&, Diagnostics&);
void surplus_microbatch(const Context&, Diagnostics&);
void table_form(const Context&, Diagnostics&);
// shape/: counts
void unknown_chunk(const Context&, Diagnostics&);
void missing_chunk(const Context&, Diagnostics&);
void unequal_microbatches(const Context&, Diagnostics&);
void backward_count(const Context&, Diagnostics&);
void weight_count(const Context&, Diagnostics&);
void weight_undeclared(const Context&, Diagnostics&);
void layers_per_chunk(const Context&, Diagnostics&);
void microbatch_out_of_range(const Context&, Diagnostics&);
void repeated_action(const Context&, Diagnostics&);
void missing_action(const Context&, Diagnostics&);
void split_and_whole(const Context&, Diagnostics&);
// shape/: order, where microbatches are counted
void backward_ahead(const Context&, Diagnostics&);
void weight_ahead(const Context&, Diagnostics&);
// dependencies/
void backward_before_forward(const Context&, Diagnostics&);
void weight_before_backward(const Context&, Diagnostics&);
// placement/
void stage_twice(const Context&, Diagnostics&);
void stage_nowhere(const Context&, Diagnostics&);
void stage_unknown(const Context&, Diagnostics&);

}  // namespace rules
}  // namespace capo
