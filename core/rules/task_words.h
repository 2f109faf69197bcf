// How rules about the task graph speak: a task under the name that the user wrote, or, if a
// transfer was added, under that of what it carries.
//
// If microbatches are counted, an entry's text does not say which one it is, so the name does:
// "`B2` (microbatch 4) of rank 1". Tested through the golden texts of the rules that use it.

#pragma once

#include "core/rules/context.h"
#include "core/rules/wiring.h"

#include <string>
#include <vector>

namespace capo::words {

/// "`0F3` of rank 0", "the send of `0F3` of rank 0".
[[nodiscard]] std::string task_name(const Context& context, const Wiring& wiring,
                                    const TaskGraph& graph, TaskId task);
/// The name that rank `seen_from` uses: "`0F3`" if the task is its own.
[[nodiscard]] std::string task_name(const Context& context, const Wiring& wiring,
                                    const TaskGraph& graph, TaskId task, std::int32_t seen_from);
/// The name with its place: "`0F3` at index 7 of rank 0".
[[nodiscard]] std::string task_placed(const Context& context, const Wiring& wiring,
                                      const TaskGraph& graph, TaskId task);

[[nodiscard]] Span task_span(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                             TaskId task);
[[nodiscard]] WitnessEntry task_reference(const Context& context, const Wiring& wiring,
                                          const TaskGraph& graph, TaskId task);

/// The entries of tasks, as a witness of `kind`.
[[nodiscard]] Witness task_witness(const Context& context, const Wiring& wiring,
                                   const TaskGraph& graph, WitnessKind kind,
                                   std::initializer_list<TaskId> tasks);
/// Adds a label and a witness task for each task of a cycle of waits, from `first` on. If `first`
/// is not in the cycle it gets a label of its own.
void describe_waits(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                    std::vector<WaitEdge> cycle, TaskId first, Diagnostic& finding);

/// "rank 2", "ranks 0 and 1", "ranks 0, 1 and 2"; of more than eight "ranks 0, 1, 2, 3, 4, 5, 6, 7
/// and 56 more".
[[nodiscard]] std::string list_of(const std::vector<std::int32_t>& ranks);

}  // namespace capo::words
