// The parts of a picture as SVG, each of which writes itself where the layout says.
//
// Tested by svg_test.cpp.

#pragma once

#include "core/timeline/markup.h"
#include "core/timeline/svg_layout.h"

#include <string>
#include <string_view>

namespace capo {

/// Text at a point, with more attributes, each after a blank.
void write_text(SvgPoint at, double print, std::string_view more, std::string_view text,
                Markup& out);

/// Idle time, memory and the actions themselves.
void write_bubbles(const SvgLayout& layout, Markup& out);
void write_memory(const SvgLayout& layout, Markup& out);
void write_actions(const SvgLayout& layout, Markup& out);

/// Arrows of the critical path, of the task that was chosen, and of findings with their words.
void write_path(const SvgLayout& layout, Markup& out);
void write_chosen(const SvgLayout& layout, Markup& out);
void write_alarms(const SvgLayout& layout, Markup& out);

/// The keys of what is drawn; returns where they end.
double write_legend(const SvgLayout& layout, double top, Markup& out);

}  // namespace capo
