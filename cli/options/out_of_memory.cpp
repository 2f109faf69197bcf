#include "cli/options/out_of_memory.h"

#include "cli/options/exit_code.h"
#include "cli/options/files.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

namespace capo::cli {

namespace {

[[noreturn]] void terminated() {
  try {
    if (const auto why = std::current_exception()) std::rethrow_exception(why);
  } catch (const std::bad_alloc&) {
    std::_Exit(fail_out_of_memory());
  } catch (...) {
    // A bug, which the core shows.
  }
  std::abort();
}

std::atomic<bool> ran_out = false;

[[noreturn]] void ran_out_of_memory() {
  ran_out = true;
  throw std::bad_alloc();
}

// Before CLI11's own objects, which have no priority.
struct Installed {
  Installed() {
    std::set_terminate(terminated);
    std::set_new_handler(ran_out_of_memory);
  }
};
[[gnu::init_priority(101)]] const Installed kInstalled;

}  // namespace

int fail_out_of_memory() {
  print_stderr("error: out of memory\n");
  return kEnvironment;
}

bool has_run_out_of_memory() {
  return ran_out;
}

}  // namespace capo::cli
