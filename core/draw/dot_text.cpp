#include "core/base/index.h"
#include "core/draw/drawing.h"
#include "core/draw/lanes.h"
#include "core/timeline/marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace capo {

namespace {

struct Style {
  std::string_view name;
  std::string_view attributes;
};

// Edges differ in style as well as in colour, for grey print and for those who see colours
// otherwise.
constexpr std::array<Style, 8> kStyles{{
    {"order", "color=\"#9a9a9a\""},
    {"data", "color=\"#1f4e8c\", style=solid, penwidth=0.8"},
    {"message", "color=\"#0b6e4f\", style=bold, penwidth=1.6"},
    {"issue", "color=\"#7f7f7f\", style=dotted"},
    {"wait", "color=\"#8c6d1f\", style=dotted, penwidth=1.5"},
    {"event", "color=\"#6a3d9a\", style=dashed"},
    {"collective", "color=\"#0b6e4f\", style=\"dashed,bold\", dir=none"},
    {"witness", "color=\"#d00000\", penwidth=2.2, fontcolor=\"#d00000\""},
}};

constexpr std::string_view kRed = "color=\"#d00000\", penwidth=2.5, fontcolor=\"#d00000\"";

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

const Ink& ink_for(Kind kind) {
  return *std::find_if(kInks.begin(), kInks.end(),
                       [&](const Ink& ink) { return ink.name == ink_of(kind); });
}

constexpr double kInch = 72;  // points: Graphviz counts sizes of nodes in inches

class DotText {
 public:
  DotText(const Drawing& drawing, std::size_t columns)
      : drawing_(drawing), lanes_(drawing, columns) {}

  std::string text() {
    write_head();
    for (const RankBand& band : lanes_.bands()) write_band(band);
    for (const DrawnLine& line : drawing_.lines) write_line(line);
    return out_ + "}\n";
  }

 private:
  void write_head() {
    const Box title = lanes_.title();
    out_ += fmt::format(
        "digraph capo {{\n"
        "  graph [layout=nop2, outputorder=edgesfirst, fontname=\"Helvetica\", fontsize=12,\n"
        "         bb=\"0,0,{:.1f},{:.1f}\", lp=\"{:.1f},{:.1f}\", label={}];\n"
        "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.6];\n",
        lanes_.width(), lanes_.height(), title.x, title.y, quoted(drawing_.title));
  }

  // A rank is a box; if rows are folded it is one in each line.
  void write_band(const RankBand& band) {
    const Box& box = band.box;
    out_ += fmt::format(
        "  subgraph cluster_rank{}{} {{\n"
        "    label=\"rank {}\"; lp=\"28,{:.1f}\"; style=filled; color=\"#f3f4f6\"; fontsize=11;\n"
        "    bb=\"{:.1f},{:.1f},{:.1f},{:.1f}\";\n",
        band.rank, band.line == 0 ? "" : fmt::format("_line{}", band.line), band.rank, box.y,
        box.x - box.width / 2, box.y - box.height / 2, box.x + box.width / 2,
        box.y + box.height / 2);
    for (std::size_t node = 0; node < drawing_.nodes.size(); ++node) {
      const bool here = drawing_.nodes[node].rank == band.rank && lanes_.line_of(node) == band.line;
      if (here) write_node(node);
    }
    out_ += "  }\n";
  }

  void write_node(std::size_t at) {
    const DrawnNode& node = drawing_.nodes[at];
    const Box& box = lanes_.box(at);
    const Ink& ink = ink_for(node.kind);
    out_ += fmt::format(
        "    {} [label={}, tooltip={}, pos=\"{:.1f},{:.1f}\", width={:.3f}, height={:.3f}, "
        "fillcolor=\"{}\", {}{}",
        node.name, quoted(node.label), quoted(node.tooltip), box.x, box.y, box.width / kInch,
        box.height / kInch, ink.fill,
        node.red ? std::string(kRed) : fmt::format("color=\"{}\"", ink.line),
        is_compute(node.kind) ? "" : ", fontsize=9");
    if (!node.note.empty()) {
      out_ += fmt::format(", xlabel={}, xlp=\"{:.1f},{:.1f}\"", quoted(node.note), box.x,
                          box.y + box.height / 2 + 8);
    }
    out_ += "];\n";
  }

  void write_line(const DrawnLine& line) {
    const Style& style = kStyles[as_index(line.of)];
    out_ +=
        fmt::format("  {} -> {} [class={}, {}, pos=\"{}\"", drawing_.nodes[line.from].name,
                    drawing_.nodes[line.to].name, style.name, style.attributes, lanes_.path(line));
    const bool far = lanes_.line_of(line.from) != lanes_.line_of(line.to);
    if (far && line.of == EdgeClass::Data) out_ += ", color=\"#1f4e8c66\"";
    if (!line.words.empty()) {
      const Box words = lanes_.place_words(line);
      out_ += fmt::format(", label={}, lp=\"{:.1f},{:.1f}\"", quoted(line.words), words.x, words.y);
    }
    out_ += "];\n";
  }

  const Drawing& drawing_;
  Lanes lanes_;
  std::string out_;
};

}  // namespace

std::string dot_text(const Drawing& drawing, std::size_t columns) {
  return DotText(drawing, columns).text();
}

}  // namespace capo
