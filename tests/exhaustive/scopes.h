// The scopes: each enumerates all orders of a kind, asks product and oracle, and says whether they
// agree throughout and all counts are right. Each of them is one file.

#pragma once

#include "tests/exhaustive/options.h"

namespace capo::exhaustive {

/// All lists with each entry as often as it should occur, without W or with it.
bool lists(const Options& options);
bool lists_with_weights(const Options& options);
/// All short strings of entries, right ones and others.
bool strings(const Options& options);
/// All executable orders of three chunks and three microbatches, and what one edit makes of them.
bool neighbours(const Options& options);
/// The readers that TransformerEngine's reuse of buffers hurts, in all sound orders and executable
/// chains.
bool plans(const Options& options);
/// The findings that declared sizes, gradients, positions, sends and budgets add to that.
bool declared(const Options& options);
/// How many orders of each size there are, and which chains TransformerEngine captures.
bool published(const Options& options);
/// All orders of two ranks that send to each other.
bool pairs(const Options& options);
/// The orders of pairs() are given waits for sends.
bool waits(const Options& options);
/// All sound orders with graphs reset at one or two places.
bool resets(const Options& options);
/// All sound orders, each replayed in every other: with a paged stash, and of Megatron's own
/// graphs.
bool replays(const Options& options);
/// A capture cannot hold all of declared modules and of taken-apart backwards and layers.
bool captures(const Options& options);

}  // namespace capo::exhaustive
