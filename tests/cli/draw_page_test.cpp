// The page of `capo draw -o out.html`: as text, and in headless Chromium as a reader uses it.
//
// A script before the page's own makes frames happen at once and keeps what they paint; one behind
// it does what a reader would and leaves what it saw as JSON, so that no test waits for a clock.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

constexpr const char* kBefore = R"(<script>
window.requestAnimationFrame = (frame) => { painted.length = 0; operations = 0; frame(0); };
let painted = [];
let operations = 0;
const pen = CanvasRenderingContext2D.prototype;
for (const name of ["fillRect", "strokeRect", "fillText", "drawImage", "fill", "stroke"]) {
  const original = pen[name];
  pen[name] = function (...values) {
    ++operations;
    if (name === "fillText") painted.push(values[0]);
    return original.apply(this, values);
  };
}
</script>
)";

// Functions for what a reader does, before a test's own lines, which fill `seen`.
constexpr const char* kReader = R"(
const seen = {};
const canvas = document.querySelector("canvas");
const box = canvas.getBoundingClientRect();
const hint = document.getElementById("hint");
const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", { key: name, cancelable: true }));
const pointer = (type, x, y, id = 1) => canvas.dispatchEvent(
  new PointerEvent(type, { clientX: box.left + x, clientY: box.top + y, pointerId: id, bubbles: true }));
const wheel = (options) => canvas.dispatchEvent(
  new WheelEvent("wheel", { clientX: box.left + 600, clientY: 300, cancelable: true, ...options }));
const search = (words) => {
  const field = document.getElementById("search");
  field.value = words;
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  return document.getElementById("found").textContent;
};
// The hint that has these words, with the pointer in the middle of the times at any height.
const hover = (words) => {
  const x = 128 + (box.width - 128) / 2;
  for (let y = 4; y < box.height - 24; y += 4) {
    pointer("pointermove", x, y);
    if (!hint.hidden && hint.textContent.startsWith(words)) return [...hint.children].map((line) => line.textContent);
  }
  return [];
};
const ticks = () => painted.filter((word) => /^[\d.]+(e[+-]?\d+)?$/.test(word)).slice(-5).join(" ");
)";

class DrawPage : public ::testing::Test {
 protected:
  // The page that `capo draw` makes of the words of its command line, split at blanks.
  [[nodiscard]] std::string page_of(const std::string& line, int exit_code = 0) const {
    std::vector<std::string> arguments{"draw"};
    std::istringstream in(line);
    for (std::string word; in >> word;) arguments.push_back(word);
    arguments.insert(arguments.end(), {"-o", "page.html"});
    const Outcome outcome = run_capo(arguments, {.directory = folder_.path()});
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    return folder_.read("page.html");
  }

  void generate(const std::string& name, const std::string& file, int ranks = 4,
                int microbatches = 8) const {
    const Outcome made = run_capo({"generate", name, "--ranks", std::to_string(ranks),
                                   "--microbatches", std::to_string(microbatches), "-o", file},
                                  {.directory = folder_.path()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  // Runs a reader's lines in the page and returns what they leave in `seen`.
  [[nodiscard]] json seen_by(std::string page, const std::string& reader) const {
    const std::string scripts = "<script>\"use strict\";";
    page.insert(page.find(scripts), kBefore);
    const std::string leave =
        "document.body.replaceChildren(Object.assign(document.createElement('pre'), "
        "{ id: 'seen', textContent: JSON.stringify(seen) }));";
    page.insert(page.rfind("</body>"), "<script>{" + (kReader + reader) + leave + "}</script>\n");
    folder_.write("driven.html", page);
    const std::string dom = dom_of("driven.html");
    const std::string begin = "<pre id=\"seen\">";
    const std::size_t at = dom.find(begin);
    if (at == std::string::npos) {
      ADD_FAILURE() << "the scripts did not run to their end: " << dom.substr(0, 200);
      return {};
    }
    return json::parse(
        plain(dom.substr(at + begin.size(), dom.find("</pre>", at) - at - begin.size())));
  }

  // The document once its scripts have run.
  [[nodiscard]] std::string dom_of(const std::string& file) const {
    const std::string command =
        "HOME='" + folder_.path().string() +
        "' chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
        "--force-device-scale-factor=1 --window-size=1400,900 --dump-dom 'file://" +
        (folder_.path() / file).string() + "' >'" + (folder_.path() / "dom").string() +
        "' 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return folder_.read("dom");
  }

  [[nodiscard]] static std::string plain(std::string text) {
    for (const auto& [from, to] : {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&amp;", "&"}}) {
      for (std::size_t at = text.find(from); at != std::string::npos;
           at = text.find(from, at + 1)) {
        text.replace(at, std::string_view(from).size(), to);
      }
    }
    return text;
  }

  ScratchFolder folder_;
};

// Tests that need the browser, which a machine may not have.
class DrawPageInChromium : public DrawPage {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "chromium is not installed";
    }
  }
};

TEST_F(DrawPage, IsOneFileThatHoldsVerdictAndFindingsAsText) {
  const std::string page = page_of("--order 1,-1,1,-1.5,-1,-1.5 --plan te --modules linear", 1);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(holds(page, ">rejected: "));
  EXPECT_TRUE(holds(page, "error[B01]: `-1.5` at index 3 reads the static input"));
  for (const char* outside : {"http:", "https:", "src=", "@import", "fetch("}) {
    EXPECT_FALSE(holds(page, outside)) << outside;
  }
}

TEST_F(DrawPage, NamesWithMarkupAreText) {
  folder_.write("x<b>&.te", "[1, -1]");
  const std::string page = page_of("x<b>&.te");
  EXPECT_FALSE(holds(page, "<b>"));
  EXPECT_TRUE(holds(page, "<h2>x&lt;b&gt;&amp;.te</h2>"));
}

TEST_F(DrawPage, TwoSchedulesHaveTheWorseVerdictsCode) {
  folder_.write("good.te", "[1, -1]");
  folder_.write("bad.te", "[1, -1, -1]");
  const std::string page = page_of("good.te --against bad.te", 1);
  EXPECT_TRUE(holds(page, "<h2>good.te</h2>"));
  EXPECT_TRUE(holds(page, "<h2>bad.te</h2>"));
  EXPECT_EQ(page_of("bad.te --against good.te", 1).find("<h2>bad.te"),
            page_of("bad.te --against good.te", 1).find("<h2>"));
}

TEST_F(DrawPageInChromium, ZoomsAndPans) {
  generate("zbv", "s.order");
  const json seen = seen_by(page_of("s.order --cost f=12,b=13,w=9,comm=1"), R"(
    seen.tasks = capo.tasks;
    key("Home");
    const all = painted.join(" ");
    seen.bars = painted.filter((word) => /^[FBW]?\d+$/.test(word)).length;
    seen.ranks = painted.filter((word) => word.startsWith("▾ rank")).length;
    capo.zoom(100);
    seen.closeBars = painted.filter((word) => /^[FBW]\d\.\d+$/.test(word)).length;
    const close = ticks();
    key("ArrowRight");
    seen.keyPans = ticks() !== close;
    pointer("pointerdown", 700, 100);
    pointer("pointermove", 500, 100);
    const dragged = ticks();
    pointer("pointerup", 500, 100);
    pointer("pointermove", 300, 100);
    seen.releaseEndsDrag = ticks() === dragged;
    key("Home");
    seen.homeIsAll = painted.join(" ") === all;
    wheel({ deltaY: -400, ctrlKey: true });
    seen.wheelZooms = painted.join(" ") !== all;
    key("Home");
    pointer("pointerdown", 400, 100, 1);
    pointer("pointerdown", 500, 100, 2);
    pointer("pointermove", 800, 100, 2);
    seen.pinchZooms = painted.join(" ") !== all;
    seen.frames = capo.frameTimes().length > 5 && capo.frameTimes().every((time) => time >= 0);)");
  EXPECT_EQ(seen["tasks"], 192);
  EXPECT_GE(seen["bars"], 150);
  EXPECT_EQ(seen["ranks"], 4);
  EXPECT_GE(seen["closeBars"], 1) << "close by, a bar says its chunk";
  EXPECT_LE(seen["closeBars"], 12);
  for (const char* fact :
       {"keyPans", "releaseEndsDrag", "homeIsAll", "wheelZooms", "pinchZooms", "frames"}) {
    EXPECT_EQ(seen[fact], true) << fact;
  }
}

TEST_F(DrawPageInChromium, HoverSaysWhyATaskStarted) {
  generate("1f1b", "s.order");
  const json seen = seen_by(page_of("s.order --cost f=1,b=2,comm=0.5"), R"(
    seen.found = capo.goto(1, 1, 0, "F");
    seen.task = hover("F1.0 of rank 1");
    seen.lit = operations;
    pointer("pointerleave", 0, 0);
    seen.hidden = hint.hidden;
    seen.dark = operations < seen.lit;
    capo.goto(0, 1, 0, "B");
    key("Home");
    capo.goto(0, 1, 4, "F");
    seen.missing = capo.goto(0, 1, 99, "F");)");
  EXPECT_EQ(seen["found"], true);
  EXPECT_EQ(seen["missing"], false);
  EXPECT_EQ(seen["task"],
            json({"F1.0 of rank 1", "from 1.5 to 2.5, 1 long", "began when F1.0 of rank 0 let it",
                  "waited for F1.0 of rank 0", "is waited for by F1.0 of rank 2"}));
  EXPECT_EQ(seen["hidden"], true);
  EXPECT_EQ(seen["dark"], true);
}

TEST_F(DrawPageInChromium, SearchesAndFolds) {
  generate("1f1b", "s.order");
  const json seen = seen_by(page_of("s.order"), R"(
    seen.first = search("F1.3");
    seen.second = search("F1.3");
    seen.ofRank = search("rank 2 f1.3");
    seen.none = search("Q");
    key("Home");
    const lanes = () => painted.filter((word) => word === "compute").length;
    seen.lanes = lanes();
    key("f");
    seen.folded = lanes();
    const name = (mark) => painted.filter((word) => word.startsWith(mark)).length;
    seen.marks = name("▸ rank");
    pointer("pointerdown", 10, 60);
    pointer("pointerup", 10, 60);
    seen.unfolded = name("▾ rank");)");
  EXPECT_EQ(seen["first"], "1 of 4");
  EXPECT_EQ(seen["second"], "2 of 4");
  EXPECT_EQ(seen["ofRank"], "1 of 1");
  EXPECT_EQ(seen["none"], "no task begins so");
  EXPECT_EQ(seen["lanes"], 4);
  EXPECT_EQ(seen["folded"], 0);
  EXPECT_EQ(seen["marks"], 4);
  EXPECT_EQ(seen["unfolded"], 1);
}

TEST_F(DrawPageInChromium, FindingsJumpToTheirPlaces) {
  std::string order = "[";
  for (int at = 0; at < 200; ++at) order += "1, -1, ";
  folder_.write("late.te", order + "-1]");
  const json seen = seen_by(page_of("late.te", 1), R"(
    key("Home");
    seen.before = painted.filter((word) => word === "S15").length;
    const far = ticks();
    document.querySelector(".findings button").click();
    seen.moved = ticks() !== far;
    seen.marks = painted.filter((word) => word === "S15").length;
    seen.words = document.querySelector(".findings button").textContent;)");
  EXPECT_EQ(seen["moved"], true);
  EXPECT_GE(seen["marks"], 1);
  EXPECT_TRUE(holds(seen["words"], "error[S15]"));
}

TEST_F(DrawPageInChromium, ADeadlocksArrowsHaveWords) {
  folder_.write("deadlock.csv",
                "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  const json seen = seen_by(page_of("deadlock.csv", 1), R"(
    key("Home");
    seen.words = painted.filter((word) => word.startsWith("T09 ")).length;)");
  EXPECT_EQ(seen["words"], 4);
}

// Words and curves as the pen got them: no point of a curve and no other words lie in the box of
// any, and no bar does, wherever the view is.
TEST_F(DrawPageInChromium, WordsOfFindingsLieOnNothing) {
  folder_.write("deadlock.csv",
                "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
  constexpr const char* kLook = R"(
    let curves = [], begin = [], words = [], bars = [];
    const taught = (name, learn) => {
      const original = pen[name];
      pen[name] = function (...values) { learn(...values); return original.apply(this, values); };
    };
    taught("moveTo", (...at) => { begin = at; });
    taught("quadraticCurveTo", (...by) => curves.push([...begin, ...by]));
    taught("fillRect", (left, top, width, height) => {
      if (height > 9 && width < 400) bars.push({ left, top, right: left + width, bottom: top + height });
    });
    taught("fillText", (text, x, y) => {
      if (!/^[TB]0\d /.test(text)) return;
      const width = canvas.getContext("2d").measureText(text).width;
      words.push({ left: x, right: x + width, top: y - 4, bottom: y + 4 });
    });
    const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const on = (box, [x0, y0, x, y, x1, y1]) => Array.from({ length: 101 }, (_, step) => step / 100).some((t) => {
      const at = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
      const [px, py] = [at[0] * x0 + at[1] * x + at[2] * x1, at[0] * y0 + at[1] * y + at[2] * y1];
      return px > box.left && px < box.right && py > box.top && py < box.bottom;
    });
    seen.words = [];
    seen.faults = 0;
    for (const step of ["Home", "+", "+", "ArrowLeft", "-", "f"]) {
      curves = []; words = []; bars = [];
      key(step);
      seen.words.push(words.length);
      words.forEach((box, at) => {
        seen.faults += curves.filter((curve) => on(box, curve)).length;
        seen.faults += words.filter((other, index) => index !== at && meets(box, other)).length;
        seen.faults += bars.filter((bar) => meets(box, bar)).length;
      });
    })";
  const json deadlock = seen_by(page_of("deadlock.csv", 1), kLook);
  EXPECT_EQ(deadlock["words"][0], 4);
  EXPECT_EQ(deadlock["faults"], 0);
  const json hazard =
      seen_by(page_of("--order 1,-1,1,-1.5,-1,-1.5 --plan te --modules linear", 1), kLook);
  EXPECT_EQ(hazard["words"][0], 2);
  EXPECT_EQ(hazard["faults"], 0);
}

TEST_F(DrawPageInChromium, ThereIsAnEdgeAroundWhatRunsTogether) {
  constexpr const char* kLook = R"(
    let edges = 0;
    const original = pen.strokeRect;
    pen.strokeRect = function (...values) { edges += this.lineWidth > 1.35 && this.lineWidth < 1.45; return original.apply(this, values); };
    key("Home");
    seen.edges = edges;)";
  generate("dualpipev", "together.order");
  generate("1f1b", "alone.order");
  const json together = seen_by(page_of("together.order --cost f=2,b=2,w=2"), kLook);
  EXPECT_GT(together["edges"], 10);
  EXPECT_EQ(seen_by(page_of("alone.order"), kLook)["edges"], 0);
}

TEST_F(DrawPageInChromium, EntriesOfTheOrderAreBars) {
  folder_.write("one.te", "[1, 1, -1, -1.5, -1, -1.5]  ");
  const json seen = seen_by(page_of("one.te"), R"(
    const pane = document.querySelector(".order");
    pane.parentElement.open = true;
    capo.goto(0, 1, 1, "W");
    const selection = getSelection();
    seen.entry = selection.toString();
    seen.offset = selection.anchorOffset;
    const range = document.createRange();
    range.setStart(pane.firstChild, 7);
    range.setEnd(pane.firstChild, 9);
    const place = range.getBoundingClientRect();
    pane.dispatchEvent(new MouseEvent("click", { clientX: place.left + 3, clientY: place.top + 4 }));
    seen.clicked = [selection.toString(), selection.anchorOffset];)");
  EXPECT_EQ(seen["entry"], "-1.5");
  EXPECT_EQ(seen["offset"], 21);
  EXPECT_EQ(seen["clicked"], json({"-1", 7}));
}

TEST_F(DrawPageInChromium, TwoSchedulesShareAnAxis) {
  generate("1f1b", "a.order");
  generate("zbv", "b.order");
  const json seen = seen_by(page_of("a.order --against b.order"), R"(
    key("Home");
    seen.tasks = capo.tasks;
    seen.titles = painted.filter((word) => word.endsWith(".order"));
    seen.ranks = painted.filter((word) => word.startsWith("▾ rank")).length;)");
  EXPECT_EQ(seen["tasks"], 64 + 192);
  EXPECT_EQ(seen["titles"], json({"a.order", "b.order"}));
  EXPECT_EQ(seen["ranks"], 8);
}

// A frame costs what the window has of pixels, and not what the step has of tasks.
TEST_F(DrawPageInChromium, ManyTasksArePaintedWithFewOperations) {
  generate("1f1b", "s.order", 8, 2000);
  const json seen = seen_by(page_of("s.order --cost f=1,b=2,comm=0.1"), R"(
    key("Home");
    seen.tasks = capo.tasks;
    seen.all = operations;
    capo.zoom(100);
    seen.close = operations;)");
  EXPECT_EQ(seen["tasks"], 32000);
  EXPECT_LE(seen["all"], 300);
  EXPECT_LE(seen["close"], 3000);
  EXPECT_GE(seen["close"], 300) << "tasks are bars of their own there";
}

TEST_F(DrawPageInChromium, TimesOfAnySizeAreShown) {
  folder_.write("one.te", "[1]");
  folder_.write("none.te", "[]");
  for (const char* line : {"one.te --cost f=1e-9,b=1e-9,w=1e-9", "one.te --cost f=1e9,b=1e9,w=1e9",
                           "one.te --cost f=0,b=0,w=0", "none.te"}) {
    const json seen = seen_by(page_of(line, 1), R"(
      key("Home");
      capo.zoom(3);
      seen.tasks = capo.tasks;)");
    EXPECT_EQ(seen["tasks"], holds(line, "none") ? 0 : 1) << line;
  }
}

TEST_F(DrawPageInChromium, WhatIsAtTheEdgeIsShown) {
  folder_.write("idle.order", "capo 1\nranks 2\nrank 0: F1.0 B1.0\nrank 1:\n");
  generate("1f1b", "many.order", 4096, 1);
  struct Case {
    std::string line;
    int exit_code;
    int tasks;
    std::string name;  // of a rank that is painted
  };
  for (const Case& each : {Case{"idle.order", 1, 2, "rank 1"},
                           Case{"many.order --max-tasks 100000", 0, 8192, "rank 0"}}) {
    const json seen = seen_by(page_of(each.line, each.exit_code), R"(
      key("Home");
      seen.all = painted.join(" ");
      capo.zoom(10);
      key("f");
      seen.close = painted.join(" ");
      seen.tasks = capo.tasks;)");
    EXPECT_EQ(seen["tasks"], each.tasks) << each.line;
    EXPECT_TRUE(holds(seen["all"].get<std::string>(), each.name)) << seen["all"];
    for (const char* view : {"all", "close"}) {
      EXPECT_FALSE(holds(seen[view].get<std::string>(), "NaN")) << each.line;
    }
  }
}

}  // namespace
}  // namespace capo
