#include "python/take.h"

#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/frameworks/te/version.h"
#include "core/text/model_reader.h"
#include "core/text/number.h"
#include "core/text/stated_transfers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace nb = nanobind;

namespace capo::python {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

std::string shown(nb::handle object) {
  return nb::cast<std::string>(nb::repr(object));
}

// Arrays of any number of dimensions have the methods of numbers.
bool is_number(nb::handle item) {
  if (PyFloat_Check(item.ptr()) || PyLong_Check(item.ptr())) return true;
  if (!PyIndex_Check(item.ptr()) && !nb::hasattr(item, "__float__")) return false;
  return !nb::hasattr(item, "ndim") || nb::cast<int>(item.attr("ndim")) == 0;
}

// An int beyond a double's range is as large as can be said.
double largest_like(nb::handle whole) {
  PyErr_Clear();
  const bool negative = PyObject_RichCompareBool(whole.ptr(), nb::int_(0).ptr(), Py_LT) == 1;
  const double most = std::numeric_limits<double>::max();
  return negative ? -most : most;
}

double value_of_int(nb::handle whole) {
  const double value = PyLong_AsDouble(whole.ptr());
  return value == -1.0 && PyErr_Occurred() != nullptr ? largest_like(whole) : value;
}

// What nearly every item is.
std::optional<Number> plain_number(nb::handle item) {
  if (PyLong_CheckExact(item.ptr()))
    return Number{.value = value_of_int(item), .type = NumberType::Integer};
  if (PyFloat_Check(item.ptr()))
    return Number{.value = PyFloat_AsDouble(item.ptr()), .type = NumberType::Float};
  return std::nullopt;
}

Number number_of(nb::handle item) {
  if (const auto plain = plain_number(item)) return *plain;
  if (PyIndex_Check(item.ptr())) {
    const auto whole = nb::steal(PyNumber_Index(item.ptr()));
    if (whole.is_valid()) return {.value = value_of_int(whole), .type = NumberType::Integer};
    PyErr_Clear();  // an array of one float has the method, and refuses
  }
  const auto real = nb::steal(PyNumber_Float(item.ptr()));
  if (!real.is_valid()) nb::raise_python_error();
  return {.value = PyFloat_AsDouble(real.ptr()), .type = NumberType::Float};
}

// A text that grows by small words, with room ahead of what is written: a string's append() would
// take longer than all else that is done with an item.
class Text {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] char back() const { return text_[size_ - 1]; }

  void expect(std::size_t bytes) {
    if (text_.size() - size_ < bytes) text_.resize(2 * text_.size() + bytes);
  }
  void append(std::string_view word) {
    expect(word.size());
    std::copy(word.begin(), word.end(), text_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += word.size();
  }
  // Nearly all are small ints, of which to_text() would make a string of each.
  void append(const Number& number) {
    constexpr double kSmall = 1e9;
    constexpr std::size_t kMostDigits = 11;
    if (number.type != NumberType::Integer || std::abs(number.value) > kSmall) {
      append(to_text(number));
      return;
    }
    expect(kMostDigits);
    char* const at = text_.data() + size_;
    const auto end = std::to_chars(at, at + kMostDigits, static_cast<std::int32_t>(number.value));
    size_ += static_cast<std::size_t>(end.ptr - at);
  }
  [[nodiscard]] std::string taken() && {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  std::string text_;
  std::size_t size_ = 0;  // of what is written
};

// Prints each entry as it is taken, so that it has a place in a text.
class Lists {
 public:
  explicit Lists(const std::string& name) { taken_.source.name = name; }

  // A list of a production job has a hundred thousand entries, of some four characters each.
  void expect(std::size_t entries) {
    taken_.list.entries.reserve(entries);
    text_.expect(entries * 5);
  }
  void open() { text_.append("["); }
  void close() { text_.append("]"); }
  void begin_rank() {
    if (!taken_.begins.empty()) text_.append(", ");
    taken_.begins.push_back(static_cast<std::uint32_t>(taken_.list.entries.size()));
    open();
  }
  void add(const Number& number) {
    if (text_.back() != '[') text_.append(", ");
    const std::size_t offset = text_.size();
    if (offset > std::numeric_limits<std::uint32_t>::max() - 64) refuse("order: it is too long");
    text_.append(number);
    taken_.list.entries.push_back({.value = number.value,
                                   .offset = static_cast<std::uint32_t>(offset),
                                   .length = static_cast<std::uint16_t>(text_.size() - offset),
                                   .type = number.type});
  }
  [[nodiscard]] TakenLists taken() && {
    taken_.source.text = std::move(text_).taken();
    return std::move(taken_);
  }

 private:
  Text text_;
  TakenLists taken_;
};

nb::object items_of(nb::handle sequence, const std::string& what) {
  auto items = nb::steal(PySequence_List(sequence.ptr()));
  if (items.is_valid()) return items;
  PyErr_Clear();
  throw nb::type_error(fmt::format("{} is {}, no list of numbers", what, shown(sequence)).c_str());
}

void take_rank(nb::handle list, const std::string& what, Lists& lists) {
  lists.begin_rank();
  std::size_t index = 0;
  for (nb::handle item : nb::borrow<nb::list>(items_of(list, what))) {
    const auto plain = plain_number(item);
    if (!plain && !is_number(item)) {
      throw nb::type_error(
          fmt::format("{}[{}] is {}, no number", what, index, shown(item)).c_str());
    }
    lists.add(plain ? *plain : number_of(item));
    ++index;
  }
  lists.close();
}

// Those of lists, whose lengths are true; what else has a length is not asked.
std::size_t entries_of(const nb::list& ranks) {
  std::size_t entries = 0;
  for (nb::handle rank : ranks) {
    if (nb::isinstance<nb::list>(rank)) entries += nb::len(rank);
  }
  return entries;
}

TakenLists take_lists(nb::handle order, const std::string& name) {
  Lists lists(name);
  const auto items = nb::borrow<nb::list>(items_of(order, "order"));
  const bool ranks = items.size() > 0 && !is_number(items[0]) && !nb::isinstance<nb::str>(items[0]);
  if (!ranks) {
    take_rank(items, "order", lists);
    return std::move(lists).taken();
  }
  lists.expect(entries_of(items));
  lists.open();
  for (std::size_t rank = 0; rank < items.size(); ++rank) {
    take_rank(items[rank], fmt::format("order[{}]", rank), lists);
  }
  lists.close();
  return std::move(lists).taken();
}

std::vector<std::string> words_of(nb::handle given, const char* argument) {
  if (nb::isinstance<nb::str>(given)) return {nb::cast<std::string>(given)};
  std::vector<std::string> words;
  for (nb::handle item : nb::borrow<nb::list>(items_of(given, argument))) {
    if (!nb::isinstance<nb::str>(item)) {
      throw nb::type_error(fmt::format("{}: {} is no name", argument, shown(item)).c_str());
    }
    words.push_back(nb::cast<std::string>(item));
  }
  return words;
}

// A whole number within int32, of at least `least`.
std::int32_t count_of(nb::handle item, const char* argument, std::int32_t least) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  const double value = PyIndex_Check(item.ptr()) ? number_of(item).value : -kMost;
  if (value < least || value > kMost) {
    refuse(fmt::format("{}: {} is no whole number from {}", argument, shown(item), least));
  }
  return static_cast<std::int32_t>(value);
}

Layers layers_of(nb::handle given) {
  if (given.is_none()) return {};
  const char* argument = "num_layers_per_chunk";
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min() + 1;
  if (is_number(given)) {
    return {.form = Layers::Form::Count, .values = {count_of(given, argument, kLeast)}};
  }
  Layers layers{.form = Layers::Form::List};
  for (nb::handle item : nb::borrow<nb::list>(items_of(given, argument))) {
    layers.values.push_back(count_of(item, argument, kLeast));
  }
  return layers;
}

std::optional<DelayedChunks> delayed_of(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  if (nb::isinstance<nb::str>(given)) {
    if (nb::cast<std::string>(given) == "all") return DelayedChunks{.all = true};
    refuse(fmt::format("delayed: {} is neither \"all\" nor a list of chunks", shown(given)));
  }
  DelayedChunks delayed;
  for (nb::handle item : nb::borrow<nb::list>(items_of(given, "delayed"))) {
    delayed.chunks.push_back(count_of(item, "delayed", 1));
  }
  return delayed;
}

// The value of a word by its name, such as a plan's or a topology's.
template <typename Named>
auto value_named(nb::handle given, const char* argument, Named named,
                 std::span<const std::string_view> names) {
  using Value = decltype(named(std::string_view{}));
  if (given.is_none()) return Value{};
  const std::string word = nb::isinstance<nb::str>(given) ? nb::cast<std::string>(given) : "";
  const Value value = named(std::string_view(word));
  if (value) return value;
  refuse(fmt::format("{}: {} is none; {}", argument, shown(given),
                     did_you_mean(word, names, "there are " + listed(names))));
}

ModuleTable modules_of(nb::handle given) {
  std::array<std::string_view, kModuleKinds.size()> names;
  std::transform(kModuleKinds.begin(), kModuleKinds.end(), names.begin(),
                 [](ModuleKind kind) { return name_of(kind); });
  std::vector<ModuleKind> kinds;
  for (const std::string& word : words_of(given, "modules")) {
    kinds.push_back(*value_named(nb::cast(word), "modules", module_kind_named, names));
  }
  if (kinds.empty()) refuse("modules: it names none");
  return modules_of_kinds(kinds);
}

// Members of model.json, as a dict's JSON has them.
Model model_of_json(nb::handle members) {
  const auto json = nb::module_::import_("json").attr("dumps")(members);
  auto model = read_model(nb::cast<std::string>(json), {});
  if (!model) refuse("modules: " + model.error().finding.message);
  return *std::move(model);
}

// A channel's bytes are counted in messages, so these need a size.
void size_messages(Model& model) {
  Environment& environment = model.environment;
  if (!environment.channel_bytes) return;
  environment.message_bytes = model.transfer.bytes;
  if (environment.message_bytes.value_or(0) > 0) return;
  refuse(fmt::format("modules: transfers {} needs `transfer` with `bytes`",
                     transfers_text(environment)));
}

// An argument and the members of a dict may both declare something, if they agree.
template <typename Value>
void state(std::optional<Value>& slot, const std::optional<Value>& given, const char* argument) {
  if (!given) return;
  if (slot && *slot != *given)
    refuse(fmt::format("{}: the members of `modules` say otherwise", argument));
  slot = given;
}

// Whose plan te is, by its release: up to 2.19 its passes before capture keep all outputs.
void take_te_version(nb::handle given, PlanOptions& plan) {
  if (given.is_none()) return;
  std::array<std::string_view, te::kVersions.size()> releases;
  std::transform(te::kVersions.begin(), te::kVersions.end(), releases.begin(),
                 [](const te::Version& version) { return version.release; });
  const auto keeps_outputs = [](std::string_view release) -> std::optional<bool> {
    const auto* const version =
        std::find_if(te::kVersions.begin(), te::kVersions.end(),
                     [&](const te::Version& each) { return each.release == release; });
    if (version == te::kVersions.end()) return std::nullopt;
    return version->warm_up_keeps_outputs;
  };
  const bool keeps = *value_named(given, "te_version", keeps_outputs, releases);
  if (plan.kind != PlanKind::Te)
    refuse("te_version: it needs plan \"te\", since no other plan is that one's");
  if (plan.warm_up_keeps_outputs && !keeps)
    refuse("te_version: the members of `modules` say otherwise");
  plan.warm_up_keeps_outputs = keeps;
}

Model placed_model(nb::handle given) {
  Model model;
  if (nb::isinstance<nb::str>(given)) {
    constexpr std::array<std::string_view, 5> kNames{"independent", "chain", "loop", "v",
                                                     "bidirectional"};
    const auto placed = [](std::string_view word) {
      const auto named = topology_named(word);
      return named == Topology::Custom ? std::nullopt : named;
    };
    model.topology = value_named(given, "topology", placed, kNames);
    return model;
  }
  std::vector<std::vector<std::int32_t>> ranks;
  for (nb::handle rank : nb::borrow<nb::list>(items_of(given, "topology"))) {
    auto& held = ranks.emplace_back();
    for (nb::handle stage : nb::borrow<nb::list>(items_of(rank, "topology"))) {
      held.push_back(count_of(stage, "topology", 0));
    }
  }
  auto stages = read_topology(fmt::format("{{\"schema\": 1, \"stages\": {}}}", ranks), {});
  if (!stages) refuse("topology: " + stages.error().finding.message);
  model.topology = Topology::Custom;
  model.stages = *std::move(stages);
  return model;
}

void take_topology(nb::handle given, Model& model) {
  if (given.is_none()) return;
  Model placed = placed_model(given);
  state(model.topology, placed.topology, "topology");
  if (!model.stages.empty() && model.stages != placed.stages)
    refuse("topology: the members of `modules` say otherwise");
  model.stages = std::move(placed.stages);
}

std::optional<bool> weight_stream_of(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  if (nb::isinstance<nb::bool_>(given)) return nb::cast<bool>(given);
  refuse(fmt::format("weight_stream: {} is neither true nor false", shown(given)));
}

}  // namespace

Taken take(nb::handle order, const std::string& name) {
  if (nb::isinstance<nb::str>(order)) {
    return Source{.name = name, .text = nb::cast<std::string>(order)};
  }
  if (nb::isinstance<HeldSchedule>(order)) {
    return nb::cast<std::shared_ptr<HeldSchedule>>(order);
  }
  return take_lists(order, name);
}

Result<Input, RefusedInput> read(Taken taken, const LoadOptions& options) {
  if (auto* text = std::get_if<Source>(&taken)) return load(std::move(*text), options);
  if (const auto* held = std::get_if<std::shared_ptr<const HeldSchedule>>(&taken)) {
    return (*held)->input;
  }
  auto& lists = std::get<TakenLists>(taken);
  Input input{.source = std::move(lists.source), .form = Form::TeList};
  take_te_lists(input, std::move(lists.list), std::move(lists.begins), options.te);
  return input;
}

Declared declared_of(const Arguments& arguments) {
  Declared declared;
  declared.load.te.layers = layers_of(arguments.num_layers_per_chunk);
  declared.load.te.delayed = delayed_of(arguments.delayed);
  Model& model = declared.model;
  if (nb::isinstance<nb::dict>(arguments.modules)) {
    model = model_of_json(arguments.modules);
  } else if (!arguments.modules.is_none()) {
    model.modules = modules_of(arguments.modules);
  }
  size_messages(model);
  constexpr std::array<std::string_view, 3> kPlans{"te", "safe", "mcore-local"};
  state(model.plan.kind, value_named(arguments.plan, "plan", plan_named, kPlans), "plan");
  take_te_version(arguments.te_version, model.plan);
  take_topology(arguments.topology, model);
  constexpr std::array<std::string_view, 5> kLayouts{"per-rank", "per-pair", "per-edge",
                                                     "per-direction", "lazy-hybrid"};
  Environment& environment = model.environment;
  state(environment.communicators,
        value_named(arguments.comm, "comm", communicators_named, kLayouts), "comm");
  state(environment.weight_stream, weight_stream_of(arguments.weight_stream), "weight_stream");
  return declared;
}

}  // namespace capo::python
