// The C++ calls that bench/python/check.py holds capo.check against, in its own process: the same
// order in the same form, judged with nothing declared.
//
// Each function returns the processor's seconds of one call, or a negative number if the order was
// not accepted. What Python holds beforehand, C++ holds beforehand too: a schedule that was read,
// or the numbers of each rank's list.

#include "core/frameworks/te/from_te_list.h"
#include "core/input/load.h"
#include "core/order/declare.h"
#include "core/profiles/consult.h"

#include <ctime>
#include <string>
#include <utility>

namespace {

// Seconds of the processor, which other programs on the machine change little.
double now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double judged(const capo::Input& input, double start) {
  const bool accepted = check_planned(input, {}).verdict == capo::Verdict::Accepted;
  return accepted ? now() - start : -1;
}

capo::Input& held() {
  static capo::Input input;
  return input;
}

}  // namespace

extern "C" {

/// Reads the order that the functions below judge. Returns whether it can be read.
[[gnu::visibility("default")]] bool hold(const char* name, const char* text) {
  auto input = capo::load({.name = name, .text = text}, {});
  if (input) held() = *std::move(input);
  return input.has_value();
}

[[gnu::visibility("default")]] double check_schedule() {
  return judged(held(), now());
}

/// The numbers of the lists are at hand, and become a schedule in a loop within the call.
[[gnu::visibility("default")]] double check_lists() {
  capo::TeList list(held().te_list);
  auto begins = held().te_begins;
  const double start = now();
  capo::Input input{.source = {.name = held().source.name, .text = {}}, .form = capo::Form::TeList};
  take_te_lists(input, std::move(list), std::move(begins), {});
  if (declare_topology(input.schedule, capo::Topology::Loop, {})) return -1;
  return judged(input, start);
}

[[gnu::visibility("default")]] double check_text(const char* text) {
  const double start = now();
  const auto input = capo::load({.name = "<order>", .text = text}, {});
  return input ? judged(*input, start) : -1;
}
}
