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
void parameters_away(const Context&, Diagnostics&);
void exchange_order(const Context&, Diagnostics&);
void stage_order(const Context&, Diagnostics&);
void dependency_cycle(const Context&, Diagnostics&);
// placement/
void stage_twice(const Context&, Diagnostics&);
void stage_nowhere(const Context&, Diagnostics&);
void stage_unknown(const Context&, Diagnostics&);
// routing/
void megatron_form(const Context&, Diagnostics&);
void input_not_routed(const Context&, Diagnostics&);
// transfers/
void transfer_twice(const Context&, Diagnostics&);
void transfer_nowhere(const Context&, Diagnostics&);
void send_without_receive(const Context&, Diagnostics&);
void receive_without_send(const Context&, Diagnostics&);
void input_not_received(const Context&, Diagnostics&);
void send_too_early(const Context&, Diagnostics&);
void receive_too_late(const Context&, Diagnostics&);
void message_mismatch(const Context&, Diagnostics&);
void deadlock(const Context&, Diagnostics&);
void collective_order(const Context&, Diagnostics&);
// gradients/
void wgrad_lost(const Context&, Diagnostics&);
void bias_gradient_lost(const Context&, Diagnostics&);
void gradient_uninitialised(const Context&, Diagnostics&);
void frozen_weight(const Context&, Diagnostics&);
void double_accumulation(const Context&, Diagnostics&);
void shared_weight(const Context&, Diagnostics&);
void main_grad_layout(const Context&, Diagnostics&);
void hooks_not_run(const Context&, Diagnostics&);
void set_order(const Context&, Diagnostics&);
void returned_gradient_alias(const Context&, Diagnostics&);
void sharded_weight(const Context&, Diagnostics&);
void first_writer(const Context&, Diagnostics&);
void reduce_early(const Context&, Diagnostics&);
void reduce_missing(const Context&, Diagnostics&);
void reduce_twice(const Context&, Diagnostics&);
// capture/
void host_splits(const Context&, Diagnostics&);
void synchronises(const Context&, Diagnostics&);
void unjoined_stream(const Context&, Diagnostics&);
void called_twice(const Context&, Diagnostics&);
void too_many_groups(const Context&, Diagnostics&);
void no_gradient(const Context&, Diagnostics&);
void offloaded_address(const Context&, Diagnostics&);
void half_delayed(const Context&, Diagnostics&);
// buffers/
void static_input_reuse(const Context&, Diagnostics&);
void grad_output_reuse(const Context&, Diagnostics&);
void pool_reuse(const Context&, Diagnostics&);
void p2p_window(const Context&, Diagnostics&);
void weak_input_key(const Context&, Diagnostics&);
void weak_output_key(const Context&, Diagnostics&);
void strides_lost(const Context&, Diagnostics&);
void over_budget(const Context&, Diagnostics&);
// streams/
void slot_race(const Context&, Diagnostics&);
void workspace_race(const Context&, Diagnostics&);
// replay/
void replay_order(const Context&, Diagnostics&);

}  // namespace rules
}  // namespace capo
