#include <capo/cli/out_of_memory.h>

#include <capo/cli/exit_code.h>
#include <capo/cli/files.h>

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

// Before CLI11's own objects, which have no priority.
struct Installed {
  Installed() { std::set_terminate(terminated); }
};
[[gnu::init_priority(101)]] const Installed kInstalled;

}  // namespace

int fail_out_of_memory() {
  print_stderr("error: out of memory\n");
  return kEnvironment;
}

}  // namespace capo::cli
