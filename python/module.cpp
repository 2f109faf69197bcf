// The module capo._capo, which python/capo makes the package of: judging, schedules, timelines.
//
// Each call takes what it needs out of Python's objects, and then judges, reads or simulates
// without the interpreter's lock, so that other threads run.

#include "core/convert/written.h"
#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/text/order_text.h"
#include "python/judge.h"
#include "python/make.h"
#include "python/not_accepted.h"
#include "python/ran.h"
#include "python/simulated.h"
#include "python/take.h"
#include "python/wired.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace capo::python {

namespace {

using Schedules = std::shared_ptr<HeldSchedule>;

// The facts that a schedule object of torch's knows beside its table.
struct TorchFacts {
  std::optional<std::int32_t> microbatches;
  std::optional<std::int32_t> stages;
  std::optional<std::vector<std::int32_t>> stage_to_rank;
};

void declare(const TorchFacts& facts, Declared& declared) {
  declared.load.form = TextForm::TorchCsv;
  declared.load.torch.microbatches = facts.microbatches;
  declared.load.torch.stages = facts.stages;
  declared.load.torch.stage_to_rank = facts.stage_to_rank;
}

std::unique_ptr<Judgement> judged(nb::handle order, const std::string& name,
                                  const Arguments& arguments, std::vector<std::string> profiles,
                                  const std::optional<TorchFacts>& torch,
                                  const std::optional<ProjectText>& project,
                                  std::optional<Source> plan) {
  for (const std::string& profile : profiles) refuse_unknown_profile(profile);
  Declared declared = declared_of(arguments);
  if (torch) declare(*torch, declared);
  declared.profiles = std::move(profiles);
  Taken taken = take(order, name);
  const nb::gil_scoped_release free;
  auto input = read(std::move(taken), declared.load);
  if (!input) return std::make_unique<Judgement>(input.error());
  auto suppressions = suppressions_of(*input, project);
  if (!suppressions) return std::make_unique<Judgement>(suppressions.error());
  declared.suppressions = *std::move(suppressions);
  if (plan) {
    auto planned = with_plan(std::move(declared), *std::move(plan));
    if (!planned) return std::make_unique<Judgement>(planned.error());
    declared = *std::move(planned);
  }
  return std::make_unique<Judgement>(*std::move(input), std::move(declared));
}

// An order read and placed; a text that is none is a ValueError with the diagnostic.
Input placed(Taken taken, const Declared& declared) {
  auto input = read(std::move(taken), declared.load);
  if (!input) {
    throw std::invalid_argument(to_text(report_of(input.error().source, input.error().refusal)));
  }
  place(*input, declared);
  return *std::move(input);
}

Schedules schedule_of(nb::handle order, const std::string& name, const Arguments& arguments) {
  const Declared declared = declared_of(arguments);
  Taken taken = take(order, name);
  const nb::gil_scoped_release free;
  return std::make_shared<HeldSchedule>(HeldSchedule{placed(std::move(taken), declared)});
}

std::string text_of(const HeldSchedule& held, const std::string& form) {
  constexpr std::array<std::pair<std::string_view, TextForm>, 4> kForms{
      {{"te", TextForm::TeList},
       {"order", TextForm::OrderFile},
       {"csv", TextForm::TorchCsv},
       {"json", TextForm::Json}}};
  for (const auto& [name, text_form] : kForms) {
    if (name != form) continue;
    auto text = written(held.input.schedule, text_form);
    if (!text)
      throw std::invalid_argument(fmt::format("{} cannot say it: {}", form, text.error().reason));
    return *std::move(text);
  }
  throw std::invalid_argument("form: there are te, order, csv and json");
}

// The list of each rank as Python's numbers.
nb::list lists_of(const HeldSchedule& held) {
  std::vector<TeList> lists;
  for (const RankOrder& rank : held.input.schedule.ranks) {
    auto list = to_te_list(rank, rank.order);
    if (!list) throw std::invalid_argument("a TE list cannot say it: " + list.error().reason);
    lists.push_back(*std::move(list));
  }
  return numbers_of(lists);
}

std::unique_ptr<SimulatedStep> simulated(nb::handle order, const std::string& name,
                                         const Arguments& arguments, const std::string& cost,
                                         const std::string& memory) {
  const Declared declared = declared_of(arguments);
  Taken taken = take(order, name);
  const nb::gil_scoped_release free;
  return std::make_unique<SimulatedStep>(placed(std::move(taken), declared), declared.model, cost,
                                         memory);
}

std::string drawn_order(nb::handle order, const std::string& name, const Arguments& arguments,
                        const std::string& cost, const std::string& memory,
                        const std::string& format, const SvgOptions& options, nb::handle against,
                        const std::string& against_name) {
  const Declared declared = declared_of(arguments);
  std::vector<Taken> taken;
  taken.push_back(take(order, name));
  if (!against.is_none()) taken.push_back(take(against, against_name));
  const nb::gil_scoped_release free;
  std::vector<Input> inputs;
  for (Taken& each : taken) inputs.push_back(placed(std::move(each), declared));
  return drawn(inputs, declared.model, cost, memory, format, options);
}

// A view of an array that Python reads without a copy; the step lives as long as the view.
template <typename Number>
auto view(const std::vector<Number>& numbers, nb::handle owner) {
  return nb::ndarray<nb::memview, const Number, nb::ndim<1>>(numbers.data(), {numbers.size()},
                                                             owner);
}

template <typename Owner, typename Column>
const Column& column_of(nb::handle self, Column Owner::*member) {
  return nb::cast<const Owner&>(self).*member;
}

template <auto kColumn>
nb::object column(nb::handle self) {
  return nb::cast(view(column_of(self, kColumn), self));
}

// A value made of an order and what is declared beside it, without the interpreter's lock.
template <typename Made>
std::unique_ptr<Made> made_of(nb::handle order, const std::string& name, nb::object layers,
                              nb::object delayed, nb::object modules, nb::object plan,
                              nb::object topology, nb::object comm, nb::object te_version) {
  const Declared declared = declared_of({.num_layers_per_chunk = std::move(layers),
                                         .delayed = std::move(delayed),
                                         .modules = std::move(modules),
                                         .plan = std::move(plan),
                                         .topology = std::move(topology),
                                         .comm = std::move(comm),
                                         .te_version = std::move(te_version)});
  Taken taken = take(order, name);
  const nb::gil_scoped_release free;
  const Model& model = declared.model;
  return std::make_unique<Made>(placed(std::move(taken), declared),
                                CheckOptions{.environment = model.environment,
                                             .groups = model.groups,
                                             .modules = model.modules,
                                             .plan = model.plan});
}

template <typename Made>
void bind_made(nb::module_& m, const char* name) {
  m.def(name, &made_of<Made>, nb::arg("order").none(), nb::arg("name"),
        nb::arg("num_layers_per_chunk").none(), nb::arg("delayed").none(),
        nb::arg("modules").none(), nb::arg("plan").none(), nb::arg("topology").none(),
        nb::arg("comm").none(), nb::arg("te_version").none() = nb::none());
}

void bind_judgement(nb::module_& m) {
  nb::class_<Judgement>(m, "Judgement")
      .def_prop_ro("verdict", [](const Judgement& self) { return name_of(self.verdict()); })
      .def("text", &Judgement::text, nb::call_guard<nb::gil_scoped_release>())
      .def("json", &Judgement::json, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "minimised",
          [](const Judgement& self, const std::string& rule) { return held(self.minimised(rule)); },
          nb::arg("rule"), nb::call_guard<nb::gil_scoped_release>());
  m.def("page", &page_of, nb::arg("name"));
  nb::class_<TorchFacts>(m, "TorchFacts")
      .def(nb::init<std::optional<std::int32_t>, std::optional<std::int32_t>,
                    std::optional<std::vector<std::int32_t>>>(),
           nb::arg("microbatches").none(), nb::arg("stages").none(),
           nb::arg("stage_to_rank").none());
  nb::class_<ProjectText>(m, "ProjectText")
      .def(
          "__init__",
          [](ProjectText* self, std::string name, std::string text, std::string file) {
            new (self) ProjectText{.source = {.name = std::move(name), .text = std::move(text)},
                                   .file = std::move(file)};
          },
          nb::arg("name"), nb::arg("text"), nb::arg("file"));
  m.def(
      "check",
      [](nb::handle order, const std::string& name, nb::object layers, nb::object delayed,
         nb::object modules, nb::object plan, nb::object topology, nb::object comm,
         nb::object weight_stream, std::vector<std::string> profiles, const TorchFacts* torch,
         const ProjectText* project,
         const std::optional<std::pair<std::string, std::string>>& plan_in, nb::object te_version) {
        return judged(
            order, name,
            {std::move(layers), std::move(delayed), std::move(modules), std::move(plan),
             std::move(topology), std::move(comm), std::move(weight_stream), std::move(te_version)},
            std::move(profiles), torch ? std::optional(*torch) : std::nullopt,
            project ? std::optional(*project) : std::nullopt,
            plan_in ? std::optional(Source{.name = plan_in->second, .text = plan_in->first})
                    : std::nullopt);
      },
      nb::arg("order").none(), nb::arg("name"), nb::arg("num_layers_per_chunk").none(),
      nb::arg("delayed").none(), nb::arg("modules").none(), nb::arg("plan").none(),
      nb::arg("topology").none(), nb::arg("comm").none(), nb::arg("weight_stream").none(),
      nb::arg("profiles"), nb::arg("torch").none() = nb::none(),
      nb::arg("project").none() = nb::none(), nb::arg("plan_in").none() = nb::none(),
      nb::arg("te_version").none() = nb::none());
}

void bind_schedule(nb::module_& m) {
  nb::class_<HeldSchedule>(m, "Schedule")
      .def("text", &text_of, nb::arg("form"))
      .def("lists", &lists_of)
      .def_prop_ro("ranks",
                   [](const HeldSchedule& self) { return self.input.schedule.ranks.size(); })
      .def_prop_ro("chunks",
                   [](const HeldSchedule& self) {
                     std::vector<std::int32_t> chunks;
                     for (const RankOrder& rank : self.input.schedule.ranks) {
                       chunks.push_back(rank.chunks);
                     }
                     return chunks;
                   })
      .def_prop_ro("topology",
                   [](const HeldSchedule& self) { return name_of(self.input.schedule.topology); })
      .def("same_as", [](const HeldSchedule& self, const HeldSchedule& other) {
        return same_meaning(self.input.schedule, other.input.schedule);
      });
  m.def(
      "schedule",
      [](nb::handle order, const std::string& name, nb::object layers, nb::object delayed,
         nb::object topology) {
        return schedule_of(order, name,
                           {.num_layers_per_chunk = std::move(layers),
                            .delayed = std::move(delayed),
                            .modules = nb::none(),
                            .plan = nb::none(),
                            .topology = std::move(topology),
                            .comm = nb::none()});
      },
      nb::arg("order").none(), nb::arg("name"), nb::arg("num_layers_per_chunk").none(),
      nb::arg("delayed").none(), nb::arg("topology").none());
}

void bind_makers(nb::module_& m) {
  m.def("generate", &generate, nb::arg("name"), nb::arg("ranks"), nb::arg("microbatches"),
        nb::arg("chunks").none(), nb::arg("group").none(), nb::arg("memory_limit").none(),
        nb::call_guard<nb::gil_scoped_release>());
  m.def("schedule_names", &schedule_names);
  nb::class_<MegatronOrders>(m, "MegatronOrders")
      .def("lists", [](const MegatronOrders& self) { return numbers_of(self.generated.orders); })
      .def("schedule", &MegatronOrders::schedule, nb::arg("calls").none())
      .def_prop_ro("refusal", &MegatronOrders::refusal)
      .def_prop_ro("nonsense", &MegatronOrders::nonsense);
  m.def("megatron_orders", &megatron_orders, nb::arg("pp"), nb::arg("vp").none(),
        nb::arg("microbatches"), nb::arg("group_size").none(), nb::arg("overlap"),
        nb::arg("delayed_wgrad"), nb::arg("layers"), nb::arg("rank").none(), nb::arg("runtime"),
        nb::call_guard<nb::gil_scoped_release>());
}

// The package makes the error, which holds a capo.Report.
void raise_order_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const NotAccepted& refused) {
    const auto package = nb::module_::import_("capo._report");
    const nb::object error = package.attr("order_error")(refused.report(), refused.what());
    PyErr_SetObject(error.type().ptr(), error.ptr());
  }
}

void bind_refusals(nb::module_& m) {
  nb::class_<ToldReport>(m, "ToldReport")
      .def_prop_ro("verdict", [](const ToldReport& self) { return name_of(self.verdict); })
      .def("text", [](const ToldReport& self) { return self.text; })
      .def("json", [](const ToldReport& self) { return self.json; });
  nb::register_exception_translator(raise_order_error);
}

void bind_run(nb::module_& m) {
  nb::class_<Ran>(m, "Ran")
      .def_ro("accepted", &Ran::accepted)
      .def_ro("bit_equal", &Ran::bit_equal)
      .def_ro("within_bounds", &Ran::within_bounds)
      .def_ro("text", &Ran::text)
      .def_ro("json", &Ran::json);
  m.def(
      "run",
      [](nb::handle order, const std::string& name, nb::object layers, nb::object delayed,
         nb::object modules, nb::object plan, nb::object topology, nb::object comm,
         std::uint32_t replays, std::uint64_t seed, std::string sizes, bool unchecked,
         nb::object te_version) {
        const bool fused = !modules.is_none() && !nb::isinstance<nb::dict>(modules);
        const Declared declared = declared_of({.num_layers_per_chunk = std::move(layers),
                                               .delayed = std::move(delayed),
                                               .modules = std::move(modules),
                                               .plan = std::move(plan),
                                               .topology = std::move(topology),
                                               .comm = std::move(comm),
                                               .te_version = std::move(te_version)});
        Taken taken = take(order, name);
        const nb::gil_scoped_release free;
        return ran(placed(std::move(taken), declared), declared,
                   {.replays = replays,
                    .seed = seed,
                    .sizes = std::move(sizes),
                    .unchecked = unchecked,
                    .fused = fused});
      },
      nb::arg("order").none(), nb::arg("name"), nb::arg("num_layers_per_chunk").none(),
      nb::arg("delayed").none(), nb::arg("modules").none(), nb::arg("plan").none(),
      nb::arg("topology").none(), nb::arg("comm").none(), nb::arg("replays"), nb::arg("seed"),
      nb::arg("sizes"), nb::arg("unchecked"), nb::arg("te_version").none() = nb::none());
}

void bind_timeline(nb::module_& m) {
  nb::class_<RankTimes>(m, "RankTimes")
      .def_ro("busy", &RankTimes::busy)
      .def_ro("bubble", &RankTimes::bubble)
      .def_ro("exposed", &RankTimes::exposed)
      .def_ro("first", &RankTimes::first)
      .def_ro("last", &RankTimes::last);
  nb::class_<SimulatedStep>(m, "Timeline")
      .def_prop_ro("makespan", [](const SimulatedStep& self) { return self.times().makespan(); })
      .def_prop_ro("span", [](const SimulatedStep& self) { return self.times().span(); })
      .def_prop_ro("bubble_rate",
                   [](const SimulatedStep& self) { return self.times().bubble_rate(); })
      .def_prop_ro("peak", [](const SimulatedStep& self) { return self.times().peak(); })
      .def_prop_ro("ranks", [](const SimulatedStep& self) { return self.times().ranks(); })
      .def_prop_ro("begin", &column<&SimulatedStep::begin>)
      .def_prop_ro("end", &column<&SimulatedStep::end>)
      .def_prop_ro("rank", &column<&SimulatedStep::rank>)
      .def_prop_ro("microbatch", &column<&SimulatedStep::microbatch>)
      .def_prop_ro("stage", &column<&SimulatedStep::stage>)
      .def_prop_ro("kind", &column<&SimulatedStep::kind>)
      .def("label", &SimulatedStep::label, nb::arg("task"))
      .def("text", &SimulatedStep::text)
      .def("json", &SimulatedStep::json)
      .def("grid", &SimulatedStep::grid, nb::arg("width"))
      .def("trace", &SimulatedStep::trace);
  m.def("kind_names", &kind_names);
  m.def(
      "simulate",
      [](nb::handle order, const std::string& name, nb::object layers, nb::object delayed,
         nb::object modules, nb::object topology, nb::object comm, const std::string& cost,
         const std::string& memory) {
        return simulated(order, name,
                         {std::move(layers), std::move(delayed), std::move(modules), nb::none(),
                          std::move(topology), std::move(comm)},
                         cost, memory);
      },
      nb::arg("order").none(), nb::arg("name"), nb::arg("num_layers_per_chunk").none(),
      nb::arg("delayed").none(), nb::arg("modules").none(), nb::arg("topology").none(),
      nb::arg("comm").none(), nb::arg("cost"), nb::arg("mem"));
  m.def(
      "draw",
      [](nb::handle order, const std::string& name, nb::object layers, nb::object delayed,
         nb::object modules, nb::object plan, nb::object topology, nb::object comm,
         const std::string& cost, const std::string& memory, const std::string& format, bool paper,
         bool fold, bool path, nb::handle against, const std::string& against_name,
         nb::object te_version) {
        return drawn_order(
            order, name,
            {std::move(layers), std::move(delayed), std::move(modules), std::move(plan),
             std::move(topology), std::move(comm), nb::none(), std::move(te_version)},
            cost, memory, format,
            {.page = paper ? Page::Column : Page::Screen, .path = path, .fold = fold}, against,
            against_name);
      },
      nb::arg("order").none(), nb::arg("name"), nb::arg("num_layers_per_chunk").none(),
      nb::arg("delayed").none(), nb::arg("modules").none(), nb::arg("plan").none(),
      nb::arg("topology").none(), nb::arg("comm").none(), nb::arg("cost"), nb::arg("mem"),
      nb::arg("format"), nb::arg("paper"), nb::arg("fold"), nb::arg("path"),
      nb::arg("against").none(), nb::arg("against_name"),
      nb::arg("te_version").none() = nb::none());
}

void bind_wired(nb::module_& m) {
  nb::class_<WiredStep>(m, "Graph")
      .def_ro("vertices", &WiredStep::vertices)
      .def_ro("streams", &WiredStep::streams)
      .def_prop_ro("rank", &column<&WiredStep::rank>)
      .def_prop_ro("stage", &column<&WiredStep::stage>)
      .def_prop_ro("microbatch", &column<&WiredStep::microbatch>)
      .def_prop_ro("kind", &column<&WiredStep::kind>)
      .def_prop_ro("entry", &column<&WiredStep::entry>)
      .def_prop_ro("stream", &column<&WiredStep::stream>)
      .def_prop_ro("start", &column<&WiredStep::start>)
      .def_prop_ro("end", &column<&WiredStep::end>)
      .def_prop_ro("before", &column<&WiredStep::before>)
      .def_prop_ro("after", &column<&WiredStep::after>)
      .def_prop_ro("edge_kind", &column<&WiredStep::edge_kind>)
      .def("dot", &WiredStep::dot, nb::call_guard<nb::gil_scoped_release>());
  bind_made<WiredStep>(m, "graph");
  nb::class_<PlannedStep>(m, "Plan")
      .def_ro("kind_of_plan", &PlannedStep::kind_of_plan)
      .def_ro("sized", &PlannedStep::sized)
      .def_ro("peaks", &PlannedStep::peaks)
      .def_ro("lower_bounds", &PlannedStep::lower_bounds)
      .def_prop_ro("rank", &column<&PlannedStep::rank>)
      .def_prop_ro("chunk", &column<&PlannedStep::chunk>)
      .def_prop_ro("layer", &column<&PlannedStep::layer>)
      .def_prop_ro("microbatch", &column<&PlannedStep::microbatch>)
      .def_prop_ro("kind", &column<&PlannedStep::kind>)
      .def_prop_ro("region", &column<&PlannedStep::region>)
      .def_prop_ro("offset", &column<&PlannedStep::offset>)
      .def_prop_ro("bytes", &column<&PlannedStep::bytes>)
      .def_prop_ro("birth", &column<&PlannedStep::birth>)
      .def_prop_ro("death", &column<&PlannedStep::death>);
  bind_made<PlannedStep>(m, "plan");
  m.def("edge_kind_names", &edge_kind_names);
  m.def("buffer_kind_names", &buffer_kind_names);
  m.def("region_names", &region_names);
}

}  // namespace

}  // namespace capo::python

NB_MODULE(_capo, m) {
  m.attr("__version__") = CAPO_VERSION;
  capo::python::bind_judgement(m);
  capo::python::bind_schedule(m);
  capo::python::bind_makers(m);
  capo::python::bind_refusals(m);
  capo::python::bind_run(m);
  capo::python::bind_timeline(m);
  capo::python::bind_wired(m);
}
