// A page of HTML around the scripts of core/timeline/page/: what they read are columns of numbers,
// which browsers take over as they are, and what people read without scripts is text.

#include "core/base/assert.h"
#include "core/base/embedded_text.h"
#include "core/base/index.h"
#include "core/text/printable.h"
#include "core/timeline/marks.h"
#include "core/timeline/picture.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace capo {

namespace {

using PageJson = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "columns are little-endian");

// --- columns
// --------------------------------------------------------------------------------------

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[at + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[three >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

// The values as "u2:" and their bytes, each a Number.
template <typename Number, typename Values>
std::string column_of(std::string_view type, const Values& values) {
  std::string bytes(values.size() * sizeof(Number), '\0');
  std::size_t at = 0;
  for (const auto value : values) {
    const auto number = std::bit_cast<std::array<char, sizeof(Number)>>(static_cast<Number>(value));
    std::copy(number.begin(), number.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += sizeof(Number);
  }
  return fmt::format("{}:{}", type, base64(bytes));
}

// A column is as narrow as its largest value lets it be, and [count, value] if all are equal.
PageJson column(const std::vector<std::uint32_t>& values) {
  if (values.empty()) return PageJson::array({0, 0});
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const std::uint32_t most = *largest;
  if (*least == most) return PageJson::array({values.size(), most});
  if (most <= std::numeric_limits<std::uint8_t>::max())
    return column_of<std::uint8_t>("u1", values);
  if (most <= std::numeric_limits<std::uint16_t>::max()) {
    return column_of<std::uint16_t>("u2", values);
  }
  return column_of<std::uint32_t>("u4", values);
}

PageJson column(const std::vector<double>& values) {
  return column_of<double>("f8", values);
}

// 0, -1, 1, -2 as 0, 1, 2, 3, so that what is near stays small.
std::uint32_t doubled(std::int64_t number) {
  return static_cast<std::uint32_t>(number < 0 ? -2 * number - 1 : 2 * number);
}

// The way from a task to another, in tasks; 0 if there is none.
std::uint32_t distance(std::size_t from, std::uint32_t to) {
  return to == kNoPosition ? 0 : doubled(std::int64_t{to} - static_cast<std::int64_t>(from));
}

// A column of what each item has.
template <typename Items, typename Fact>
auto each_of(const Items& items, Fact fact) {
  std::vector<std::decay_t<decltype(fact(*items.begin()))>> values;
  values.reserve(items.size());
  for (const auto& item : items) values.push_back(fact(item));
  return values;
}

// Texts that repeat, each once, and which of them an item has.
class Shared {
 public:
  std::uint32_t add(const std::string& text) {
    const auto [at, is_new] = of_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }
  [[nodiscard]] PageJson take() { return std::exchange(texts_, {}); }

 private:
  std::map<std::string, std::uint32_t> of_;
  std::vector<std::string> texts_;
};

// --- a picture
// ------------------------------------------------------------------------------------

// The waits by task: how many each has, and what they are on.
void add_waits(const Timeline& timeline, PageJson& json) {
  std::vector<std::uint32_t> counts(timeline.tasks.size(), 0);
  for (const Waiting& waiting : timeline.waits) ++counts[waiting.task];
  json["waitCounts"] = column(counts);
  json["waits"] = column(each_of(
      timeline.waits, [](const Waiting& waiting) { return distance(waiting.task, waiting.on); }));
}

// How long each item is, to seven digits.
template <typename Items>
std::string lengths_of(const Items& items) {
  return column_of<float>("f4",
                          each_of(items, [](const auto& item) { return item.end - item.begin; }));
}

PageJson tasks_of(const Timeline& timeline, Shared& labels) {
  const auto fact = [&](auto get) { return column(each_of(timeline.tasks, get)); };
  using Task = const TimedTask&;
  PageJson json{{"count", timeline.tasks.size()}};
  json["begin"] = fact([](Task task) { return task.begin; });
  json["length"] = lengths_of(timeline.tasks);
  json["lane"] = fact([](Task task) { return task.lane; });
  json["kind"] = fact([](Task task) { return static_cast<std::uint32_t>(task.kind); });
  json["chunk"] = fact([](Task task) { return static_cast<std::uint32_t>(task.chunk); });
  json["microbatch"] = fact([](Task task) {
    return static_cast<std::uint32_t>(task.microbatch == kNoMicrobatch ? 0 : task.microbatch + 1);
  });
  json["entry"] = fact([](Task task) { return task.entry; });
  json["member"] = fact([](Task task) { return std::uint32_t{task.member}; });
  json["members"] = fact([](Task task) { return std::uint32_t{task.members}; });
  json["label"] = fact([&](Task task) { return labels.add(timeline.label(task.id)); });
  if (tells_quantization(timeline)) {
    json["quantizing"] =
        column_of<float>("f4", each_of(timeline.tasks, [](Task task) { return task.quantizing; }));
  }
  std::size_t at = 0;
  json["bound"] =
      column(each_of(timeline.bound_by, [&](std::uint32_t by) { return distance(at++, by); }));
  add_waits(timeline, json);
  return json;
}

PageJson memory_of(const Timeline& timeline) {
  std::vector<std::uint32_t> counts;
  std::vector<double> times;
  std::vector<double> held;
  for (const std::vector<HeldMemory>& rank : timeline.memory) {
    const std::size_t before = times.size();
    for (std::size_t at = 0; at < rank.size(); ++at) {
      // A task that ends makes room for one that begins at the same moment.
      if (at + 1 < rank.size() && rank[at + 1].time <= rank[at].time) continue;
      times.push_back(rank[at].time);
      held.push_back(rank[at].held);
    }
    counts.push_back(static_cast<std::uint32_t>(times.size() - before));
  }
  return {{"counts", column(counts)},
          {"time", column_of<float>("f4", times)},
          {"held", column_of<float>("f4", held)}};
}

PageJson bubbles_of(const Timeline& timeline) {
  std::vector<std::uint32_t> counts(timeline.bubbles.empty() ? 0 : timeline.ranks, 0);
  for (const Bubble& bubble : timeline.bubbles) ++counts[RankId(bubble.rank).index()];
  const auto fact = [&](auto get) { return column(each_of(timeline.bubbles, get)); };
  Shared causes;
  PageJson json{{"counts", column(counts)}};
  json["begin"] = fact([](const Bubble& bubble) { return bubble.begin; });
  json["length"] = lengths_of(timeline.bubbles);
  json["cause"] = fact([&](const Bubble& bubble) { return causes.add(std::string(bubble.cause)); });
  json["causes"] = causes.take();
  json["next"] = fact([](const Bubble& bubble) { return bubble.next + 1; });  // 0: none
  json["on"] = fact([](const Bubble& bubble) { return bubble.on + 1; });
  json["exposed"] = column_of<float>(
      "f4", each_of(timeline.bubbles, [](const Bubble& bubble) { return bubble.exposed; }));
  return json;
}

PageJson spot_json(const Spot& spot) {
  return PageJson::array({spot.lane, spot.begin, spot.end});
}

PageJson alarm_json(const Alarm& alarm) {
  PageJson json{{"rule", alarm.rule}, {"places", PageJson::array()}, {"arrows", PageJson::array()}};
  for (const Spot& spot : alarm.places) json["places"].push_back(spot_json(spot));
  for (const AlarmArrow& arrow : alarm.arrows) {
    json["arrows"].push_back(
        PageJson::array({spot_json(arrow.from), spot_json(arrow.to), printable(arrow.words, 60)}));
  }
  return json;
}

PageJson order_json(const OrderText& order) {
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> gaps;
  std::vector<std::uint32_t> lengths;
  std::int64_t end = 0;
  for (const auto& rank : order.entries) {
    counts.push_back(static_cast<std::uint32_t>(rank.size()));
    for (const OrderText::Stretch& stretch : rank) {
      gaps.push_back(doubled(stretch.offset - end));
      lengths.push_back(stretch.length);
      end = std::int64_t{stretch.offset} + stretch.length;
    }
  }
  return {{"text", order.text},
          {"counts", column(counts)},
          {"gaps", column(gaps)},
          {"length", column(lengths)}};
}

std::string_view unit_of(const Timeline& timeline) {
  if (timeline.origin == Timeline::Origin::Listed) return "place in the order";
  return timeline.unit == Timeline::Unit::Microseconds ? "microseconds" : "units of cost";
}

PageJson picture_json(const Picture& picture) {
  const Timeline& timeline = picture.timeline;
  Shared labels;
  PageJson json{{"title", picture.title},       {"verdict", picture.verdict},
                {"accepted", picture.accepted}, {"origin", name_of(timeline.origin)},
                {"unit", unit_of(timeline)},    {"makespan", timeline.makespan},
                {"ranks", timeline.ranks},      {"oneChunk", timeline.one_chunk},
                {"lanes", PageJson::array()},   {"alarms", PageJson::array()}};
  for (const Lane& lane : timeline.lanes) {
    json["lanes"].push_back(PageJson::array({lane.rank, lane.name}));
  }
  for (const Alarm& alarm : picture.alarms) json["alarms"].push_back(alarm_json(alarm));
  json["tasks"] = tasks_of(timeline, labels);
  json["labels"] = labels.take();
  json["path"] = column(timeline.path);
  json["memory"] = memory_of(timeline);
  json["bubbles"] = bubbles_of(timeline);
  json["order"] = order_json(picture.order);
  return json;
}

// Each kind has its class, its letter, the names that a reader may ask for, and whether it
// computes.
PageJson kinds_json() {
  PageJson kinds = PageJson::array();
  for (std::size_t at = 0; at <= as_index(Kind::Idle); ++at) {
    const auto kind = static_cast<Kind>(at);
    kinds.push_back({{"name", ink_of(kind)},
                     {"letter", letter_of(kind)},
                     {"names", PageJson::array({ink_of(kind), letter_of(kind)})},
                     {"computes", is_compute(kind)}});
  }
  return kinds;
}

// JSON inside of a <script>, which a "</script>" in a name must not end.
std::string script_json(const PageJson& json) {
  std::string text = json.dump(-1, ' ', false, PageJson::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

// --- what stands as text
// --------------------------------------------------------------------------

std::string findings_list(const Picture& picture) {
  std::string text = "<h3>Findings</h3>\n<ul class=\"findings\">\n";
  for (const Alarm& alarm : picture.alarms) {
    text += fmt::format("<li><button type=\"button\">{}</button></li>\n", escaped(alarm.words));
  }
  return picture.alarms.empty() ? "<ul class=\"findings\"></ul>\n" : text + "</ul>\n";
}

std::string section_of(const Picture& picture, std::size_t at) {
  std::string text = fmt::format(
      "<section data-picture=\"{}\">\n<h2>{}</h2>\n<p class=\"verdict {}\">{}</p>\n", at,
      escaped(picture.title), picture.accepted ? "accepted" : "rejected", escaped(picture.verdict));
  for (const std::string& line : picture.setting) {
    text += fmt::format("<p class=\"setting\">{}</p>\n", escaped(line));
  }
  return text + findings_list(picture) +
         "<div><h3>Idle, by cause</h3><ul class=\"bubbles\"></ul></div>\n"
         "<div><h3>Memory, by rank</h3><ul class=\"memory\"></ul></div>\n"
         "<details><summary>Order</summary><pre class=\"order\"></pre></details>\n</section>\n";
}

std::string legend(const std::vector<Picture>& pictures) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kWords{
      {{"F", "forward"},
       {"B", "backward (I: input half)"},
       {"W", "weight gradient"},
       {"s r t", "send, receive, wait"},
       {"d c", "dispatch, combine, collectives"}}};
  std::string text = "<section class=\"legend\"><h3>Legend</h3>\n";
  for (std::size_t at = 0; at < kInks.size(); ++at) {
    text += fmt::format(
        "<p><span style=\"background:var(--{0});border-color:var(--{0}-line)\">{1}"
        "</span>{2}</p>\n",
        kInks[at].name, kWords[at].first, kWords[at].second);
  }
  const bool quantizes = std::any_of(pictures.begin(), pictures.end(), [](const Picture& picture) {
    return tells_quantization(picture.timeline);
  });
  if (quantizes) {
    text +=
        "<p><span style=\"background:linear-gradient(transparent 80%,var(--text) 80%)\">&nbsp;"
        "</span>quantizing</p>\n";
  }
  return text + "</section>\n";
}

// --- the page
// -------------------------------------------------------------------------------------

std::string_view part(std::string_view name) {
  const auto parts = embedded_page();
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const EmbeddedText& each) { return each.name == name; });
  CAPO_ASSERT(found != parts.end(), "the parts of the page are compiled in");
  return found->text;
}

std::string style() {
  std::string light;
  std::string dark;
  for (const Ink& ink : kInks) {
    light += fmt::format("--{0}:{1};--{0}-line:{2};", ink.name, ink.fill, ink.line);
    dark += fmt::format("--{0}:{1};--{0}-line:{2};", ink.name, ink.dark_fill, ink.dark_line);
  }
  return fmt::format(":root{{{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n{}", light,
                     dark, part("style"));
}

std::string script() {
  std::string text;
  for (const char* name : {"columns", "picture", "rows", "view", "crowds", "signs", "paint",
                           "panels", "page", "input"}) {
    text += part(name);
  }
  return text;
}

std::string title_of(const std::vector<Picture>& pictures) {
  std::string title;
  for (const Picture& picture : pictures) {
    title += fmt::format("{}{}: {}", title.empty() ? "" : " | ", picture.title, picture.verdict);
  }
  return escaped(title);
}

}  // namespace

std::string html(const std::vector<Picture>& pictures) {
  std::string sections;
  PageJson data{{"kinds", kinds_json()}, {"pictures", PageJson::array()}};
  for (std::size_t at = 0; at < pictures.size(); ++at) {
    sections += section_of(pictures[at], at);
    data["pictures"].push_back(picture_json(pictures[at]));
  }
  const std::map<std::string_view, std::string> parts{{"title", title_of(pictures)},
                                                      {"style", style()},
                                                      {"sections", sections + legend(pictures)},
                                                      {"data", script_json(data)},
                                                      {"script", script()}};
  std::string text;
  std::string_view frame = part("frame");
  for (std::size_t at = frame.find("[["); at != std::string_view::npos; at = frame.find("[[")) {
    const std::size_t end = frame.find("]]");
    text.append(frame.substr(0, at)).append(parts.at(frame.substr(at + 2, end - at - 2)));
    frame.remove_prefix(end + 2);
  }
  return text.append(frame);
}

}  // namespace capo
