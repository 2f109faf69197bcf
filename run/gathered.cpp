#include "run/divided.h"

#include "core/base/assert.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <type_traits>

namespace capo::run {

namespace {

// Both sides are one program on one machine, so values are as they lie in memory.
class Packer {
 public:
  template <typename T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: its bytes
  }
  void operator()(const std::string& value) { all(value); }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    all(values);
  }
  template <typename T>
  void operator()(const std::set<T>& values) {
    all(values);
  }

  std::string text;

 private:
  template <typename Values>
  void all(const Values& values) {
    (*this)(values.size());
    for (const auto& value : values) (*this)(value);
  }
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view text) : text_(text) {}

  template <typename T>
  void operator()(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    CAPO_ASSERT(text_.size() >= sizeof value, "a packed report is whole");
    std::memcpy(&value, text_.data(), sizeof value);
    text_.remove_prefix(sizeof value);
  }
  void operator()(std::string& value) {
    all<char>([&](char letter) { value += letter; });
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    all<T>([&](T value) { values.push_back(std::move(value)); });
  }
  template <typename T>
  void operator()(std::set<T>& values) {
    all<T>([&](T value) { values.insert(value); });
  }

 private:
  template <typename T, typename Keep>
  void all(Keep keep) {
    std::size_t count = 0;
    (*this)(count);
    while (count-- > 0) {
      T value{};
      (*this)(value);
      keep(std::move(value));
    }
  }

  std::string_view text_;
};

// A gradient that differs, at its place among the tensors of the report.
struct Differing {
  std::size_t at = 0;
  std::uint32_t replay = 0;
  Difference difference;
};

std::vector<Differing> differing_in(const std::vector<TensorReport>& tensors) {
  std::vector<Differing> all;
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const TensorReport& tensor = tensors[at];
    if (tensor.difference) all.push_back({at, tensor.replay, *tensor.difference});
  }
  return all;
}

void put(std::vector<TensorReport>& tensors, const std::vector<Differing>& all) {
  for (const Differing& one : all) {
    tensors[one.at].difference = one.difference;
    tensors[one.at].replay = one.replay;
  }
}

// A process tells this of its own rank.
struct Told {
  bool bit_equal = true;
  std::vector<Differing> parameters;
  std::vector<Differing> input_gradients;
  Victims victims;
  std::set<Victim> wrong_gradients;
  std::vector<std::string> stories;
  std::size_t graphs = 0;
  std::size_t nodes = 0;
  RunBytes bytes;
  RunTimes times;
  std::string machine;
  std::vector<Measured> timeline;
  StepTimes steps;
};

// One list of fields, for both directions.
template <typename Visit, typename OfTold>
void visit_all(Visit& visit, OfTold& told) {
  visit(told.bit_equal);
  visit(told.parameters);
  visit(told.input_gradients);
  visit(told.victims.static_input);
  visit(told.victims.grad_output);
  visit(told.victims.grad_input);
  visit(told.victims.other);
  visit(told.wrong_gradients);
  visit(told.stories);
  visit(told.graphs);
  visit(told.nodes);
  visit(told.bytes);
  visit(told.times);
  visit(told.machine);
  visit(told.timeline);
  visit(told.steps.replay);
  visit(told.steps.begin);
  visit(told.steps.end);
  visit(told.steps.busy);
  visit(told.steps.launch);
  visit(told.steps.beginning);
}

void unite(Victims& all, Victims& more) {
  all.static_input.merge(more.static_input);
  all.grad_output.merge(more.grad_output);
  all.grad_input.merge(more.grad_input);
  all.other.merge(more.other);
}

template <typename Join>
void join(std::vector<double>& all, const std::vector<double>& more, Join both) {
  for (std::size_t i = 0; i < all.size() && i < more.size(); ++i) all[i] = both(all[i], more[i]);
}

double longer(double a, double b) {
  return std::max(a, b);
}

void unite(RunTimes& all, const RunTimes& more) {
  all.capture = longer(all.capture, more.capture);
  all.instantiate = longer(all.instantiate, more.instantiate);
  all.upload = longer(all.upload, more.upload);
}

void unite(StepTimes& all, const StepTimes& more) {
  join(all.replay, more.replay, longer);
  join(all.launch, more.launch, longer);
}

// A name that the system gives each start of a machine.
std::string this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  std::getline(file, name);
  return name;
}

// Microseconds that a process began after another.
double after(const Beginning& one, const Beginning& other) {
  return static_cast<double>(one.nanoseconds - other.nanoseconds) / 1000;
}

// Puts the times of another process of this machine on the axis of this one.
void add_times(RunReport& report, StepTimes& times, Told& told) {
  const std::size_t steps = std::min(times.beginning.size(), told.steps.beginning.size());
  for (std::size_t i = 0; i < steps; ++i) {
    const Beginning& mine = times.beginning[i];
    const Beginning& its = told.steps.beginning[i];
    const double later = after(its, mine);
    times.begin[i] = std::min(times.begin[i], told.steps.begin[i] + later);
    times.end[i] = std::max(times.end[i], told.steps.end[i] + later);
    times.busy[i] += told.steps.busy[i];
    // Two processes may be off to opposite sides.
    const double doubt = 2 * std::max(mine.doubt, its.doubt);
    report.clock_doubt = std::max(report.clock_doubt.value_or(0), doubt);
    if (i + 1 < steps) continue;
    for (Measured& measured : told.timeline) {
      measured.begin += later;
      measured.end += later;
    }
  }
  report.timeline.insert(report.timeline.end(), told.timeline.begin(), told.timeline.end());
  std::sort(report.timeline.begin(), report.timeline.end(),
            [](const Measured& a, const Measured& b) { return a.op < b.op; });
}

}  // namespace

std::string packed(const RunReport& report, const StepTimes& times) {
  const Told told{.bit_equal = report.bit_equal,
                  .parameters = differing_in(report.parameters),
                  .input_gradients = differing_in(report.input_gradients),
                  .victims = report.victims,
                  .wrong_gradients = report.wrong_gradients,
                  .stories = report.stories,
                  .graphs = report.graphs,
                  .nodes = report.nodes,
                  .bytes = report.bytes,
                  .times = report.times,
                  .machine = this_machine(),
                  .timeline = report.timeline,
                  .steps = times};
  Packer write;
  visit_all(write, told);
  return std::move(write.text);
}

void add(RunReport& report, StepTimes& times, std::string_view text) {
  Told told;
  Unpacker read(text);
  visit_all(read, told);
  report.bit_equal = report.bit_equal && told.bit_equal;
  put(report.parameters, told.parameters);
  put(report.input_gradients, told.input_gradients);
  unite(report.victims, told.victims);
  report.wrong_gradients.merge(told.wrong_gradients);
  report.stories.insert(report.stories.end(), told.stories.begin(), told.stories.end());
  report.graphs += told.graphs;
  report.nodes += told.nodes;
  report.bytes.planned += told.bytes.planned;
  report.bytes.allocated += told.bytes.allocated;
  unite(report.times, told.times);
  unite(times, told.steps);
  const std::string here = this_machine();
  if (!here.empty() && told.machine == here) return add_times(report, times, told);
  report.other_clocks = true;
}

}  // namespace capo::run
