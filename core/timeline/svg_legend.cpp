#include "core/timeline/marks.h"
#include "core/timeline/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace capo {

namespace {

// Keys side by side, in as many lines as the page needs.
class Keys {
 public:
  Keys(const SvgLayout& layout, double y, Markup& out)
      : layout_(layout), out_(out), x_(layout.measures.margin), y_(y) {}

  void add(std::string_view swatch, std::string_view words) {
    const double size = layout_.measures.print;
    const double margin = layout_.measures.margin;
    const double wide = 2.6 * size + 0.52 * size * static_cast<double>(words.size());
    if (x_ > margin && x_ + wide > layout_.axis.width) {
      x_ = margin;
      y_ += 1.6 * size;
    }
    out_.add("<rect ", swatch, " x=\"", Length{x_}, "\" y=\"", Length{y_ - 0.85 * size},
             "\" width=\"", Length{1.5 * size}, "\" height=\"", Length{size}, "\"/>");
    write_text({x_ + 1.9 * size, y_}, size, "", words, out_);
    x_ += wide + 0.6 * size;
  }

  [[nodiscard]] double end() const { return y_ + 1.8 * layout_.measures.print; }

 private:
  const SvgLayout& layout_;
  Markup& out_;
  double x_ = 0;
  double y_ = 0;
};

bool has(const Timeline& timeline, bool (*wanted)(Kind)) {
  return std::any_of(timeline.tasks.begin(), timeline.tasks.end(),
                     [&](const TimedTask& task) { return wanted(task.kind); });
}

void add_kinds(const Timeline& timeline, Keys& keys) {
  struct Key {
    bool (*wanted)(Kind);
    std::string_view swatch;
    std::string_view words;
  };
  const Key all[] = {
      {[](Kind kind) { return kind == Kind::Forward; }, "class=\"key-F\"", "F forward"},
      {[](Kind kind) { return kind == Kind::Backward || kind == Kind::BackwardInput; },
       "class=\"key-B\"", "B backward"},
      {[](Kind kind) { return kind == Kind::BackwardWeight; }, "class=\"key-W\"",
       "W weight gradient"},
      {is_transfer, "class=\"key-transfer\"", "s send, r receive"},
      {[](Kind kind) { return is_exchange(kind) || kind >= Kind::Unshard; },
       "class=\"key-collective\"", "d dispatch, c combine, other collectives"},
      {[](Kind kind) { return letter_of(kind) == "t"; }, "class=\"key-transfer\"", "t wait"}};
  for (const Key& key : all) {
    if (has(timeline, key.wanted)) keys.add(key.swatch, key.words);
  }
}

}  // namespace

double write_legend(const SvgLayout& layout, double top, Markup& out) {
  const Timeline& timeline = layout.timeline;
  Keys keys(layout, top, out);
  add_kinds(timeline, keys);
  const bool together = std::any_of(timeline.tasks.begin(), timeline.tasks.end(),
                                    [](const TimedTask& task) { return task.members > 1; });
  if (together) keys.add("class=\"together\"", "run together");
  if (tells_quantization(timeline)) keys.add("class=\"quantize\"", "quantizing");
  if (!timeline.bubbles.empty()) keys.add("fill=\"url(#idle)\"", "idle");
  if (!timeline.memory.empty()) keys.add("class=\"held\"", "memory held");
  const std::string stroke =
      fmt::format("stroke-dasharray=\"{} 999\"", 1.5 * layout.measures.print);
  if (layout.options.path && !timeline.path.empty()) {
    keys.add("class=\"path\" " + stroke, "critical path");
  }
  if (layout.picture.chosen) {
    keys.add("class=\"chosen\" " + stroke, layout.picture.chosen_words);
  }
  if (!layout.picture.alarms.empty()) keys.add("class=\"alarm\"", "finding");
  return keys.end();
}

}  // namespace capo
