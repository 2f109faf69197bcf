// Takes Python's objects as capo's values: an order in any form in which Python holds one, and what
// is declared beside it.
//
//   [1, 1, -1, -1.5]              a list as TransformerEngine takes it: ints, floats, NumPy scalars
//   [[1, -1], [1, -1]]            one for each rank
//   "0F0,0B0\n1F0,1B0\n"          a text in any form
//   capo.Schedule                 a schedule that was read or made before
//
// A list goes straight to the numbers that Python holds: the text that messages quote is printed
// from them and never read. An item that is no number is a TypeError that names its index. Reading
// a text needs nothing of Python's, and is left until others may run. Tested by
// python/tests/test_forms.py.

#pragma once

#include "core/base/result.h"
#include "core/input/load.h"
#include "core/order/input.h"
#include "core/order/te_list.h"
#include "python/judge.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace capo::python {

/// A schedule that Python holds.
struct HeldSchedule {
  Input input;
};

struct TakenLists {
  Source source;
  TeList list;
  std::vector<std::uint32_t> begins;  ///< where each rank's entries begin
};

/// An order out of Python's hands.
using Taken = std::variant<Source, TakenLists, std::shared_ptr<const HeldSchedule>>;

/// `name` is the one that messages use.
[[nodiscard]] Taken take(nanobind::handle order, const std::string& name);

/// Reads what was taken under `options`.
[[nodiscard]] Result<Input, RefusedInput> read(Taken taken, const LoadOptions& options);

/// The arguments of capo.check and its kin; each may be None.
struct Arguments {
  nanobind::object num_layers_per_chunk;
  nanobind::object delayed;
  nanobind::object modules;
  nanobind::object plan;
  nanobind::object topology;
  nanobind::object comm;
  nanobind::object weight_stream = nanobind::none();
  nanobind::object te_version = nanobind::none();
};
[[nodiscard]] Declared declared_of(const Arguments& arguments);

}  // namespace capo::python
