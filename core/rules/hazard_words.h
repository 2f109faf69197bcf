// A hazard put into words, with its witness, for the rules about shared memory.
//
// The witness is a replay in three steps: who wrote the buffer, who took its memory over, who then
// reads it. If the plan or the operands are undeclared the finding is a warning, and its message
// begins with the condition. Tested by tests/corpus/rules/B01 to B04, E01 and Y01.

#pragma once

#include "core/rules/context.h"
#include "core/rules/findings.h"
#include "core/rules/plan_view.h"

#include <string>
#include <string_view>

namespace capo::rules {

/// The finding is an error if what it depends on was declared, and what depends on the allocator
/// counts.
[[nodiscard]] Severity severity_of(const PlanOptions& options, const PlanView& view,
                                   const JudgedHazard& hazard);

/// Reports a finding of the rule that runs for the hazard.
void report_hazard(const Context& context, const PlanView& view, const JudgedHazard& hazard,
                   Findings& out);

/// "the static input of chunk 2, microbatch 0".
[[nodiscard]] std::string buffer_name(const Context& context, const PlanView& view,
                                      const Buffer& buffer);

/// The place of a piece of work or a send, in the words of the input.
[[nodiscard]] std::string memory_user_name(const Context& context, const Wiring& wiring,
                                           const MemoryUser& user);
[[nodiscard]] WitnessEntry memory_user_reference(const Context& context, const Wiring& wiring,
                                                 const MemoryUser& user);
[[nodiscard]] Span memory_user_span(const Context& context, const Wiring& wiring,
                                    const MemoryUser& user);

}  // namespace capo::rules
