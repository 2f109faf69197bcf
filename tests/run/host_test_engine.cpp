// The host engine, which every machine has, and on which everything is run.

#include "run/host/host_engine.h"
#include "tests/run/test_engine.h"

namespace capo::run {

std::unique_ptr<Engine> test_engine() {
  return std::make_unique<host::HostEngine>();
}

std::string_view test_device() {
  return "host";
}

std::size_t every_nth() {
  return 1;
}

}  // namespace capo::run
