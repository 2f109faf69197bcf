#include "cli/options/memory_limit.h"

#include "core/text/number.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace capo::cli {

namespace {

std::string& report() {
  static std::string text;
  return text;
}

}  // namespace

void limit_memory(std::int64_t bytes) {
  if (kSanitized) return;
  report() = fmt::format(
      "error: more memory is needed than {}\n  help: raise the limit with --max-memory\n",
      byte_words(bytes));
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = std::min(static_cast<rlim_t>(bytes), limit.rlim_max);  // a lower one is kept too
  setrlimit(RLIMIT_DATA, &limit);
}

const std::string& over_memory_limit() {
  return report();
}

}  // namespace capo::cli
