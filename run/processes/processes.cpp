#include "run/processes/processes.h"

#include <dlfcn.h>

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <thread>
#include <utility>

namespace capo::run {

namespace {

// Folders in which the library may lie, seen from that of the program: as it is built, and as it is
// installed.
constexpr std::array kFolders{"../run/mpi", "../lib/capo", "../" CAPO_LIBRARY_FOLDER "/capo"};

Error missing(std::string why) {
  return {.kind = ErrorKind::Environment,
          .message = "the library of MPI cannot be loaded: " + std::move(why),
          .help =
              "build capo where MPI is found (openmpi-bin and libopenmpi-dev of Debian), or run "
              "all ranks in one process: --transport in-process"};
}

Result<MessageLibrary*> load() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* folder : kFolders) {
    const auto path = program / folder / "libcapo_mpi.so";
    if (!std::filesystem::exists(path, ignored)) continue;
    // MPI loads parts of its own, which look for its names among those that all may see.
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) return missing(dlerror());
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym knows no types
    const auto library =
        reinterpret_cast<MessageLibrary* (*)()>(dlsym(module, "capo_message_library"));
    return library();
  }
  return missing("this capo was built without it");
}

}  // namespace

Result<std::unique_ptr<Processes>> Processes::start(Duration timeout) {
  const auto library = load();
  if (!library) return library.error();
  MessageLibrary& started = **library;
  started.start();
  if (const char* why = started.error(); why != nullptr) return missing(why);
  return std::make_unique<Processes>(started, timeout);
}

// Processors may be fewer than processes, so whoever waits lets others go on.
bool Processes::wait_until(int request, Clock::time_point end) {
  constexpr int kTries = 200;
  for (int tries = 0; !library_.over(request); ++tries) {
    if (library_.error() != nullptr) {
      library_.cancel(request);  // what it would write to may be gone soon
      return false;
    }
    if (tries < kTries) {
      std::this_thread::yield();
      continue;
    }
    if (Clock::now() > end) {
      library_.cancel(request);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

namespace {

std::chrono::steady_clock::time_point after(Processes::Duration span) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(span);
}

}  // namespace

bool Processes::wait(int request, Duration more) {
  return wait_until(request, after(timeout_ + more));
}

bool Processes::meet(Duration more) {
  return wait(library_.meet(), more);
}

// A text comes behind its length.
std::optional<std::string> Processes::text_of(int rank, Clock::time_point end) {
  std::uint64_t length = 0;
  if (!wait_until(library_.receive(gathering_, rank, 0, {{&length, sizeof length}, {}}), end)) {
    return std::nullopt;
  }
  std::string text(length, '\0');
  const Piece piece{text.data(), static_cast<std::int64_t>(length)};
  if (!wait_until(library_.receive(gathering_, rank, 0, {piece, {}}), end)) return std::nullopt;
  return text;
}

bool Processes::tell(int rank, std::string& text, Clock::time_point end) {
  std::uint64_t length = text.size();
  const Piece piece{text.data(), static_cast<std::int64_t>(length)};
  using enum MessageLibrary::Mode;
  return wait_until(library_.send(gathering_, rank, 0, {{&length, sizeof length}, {}}, Rendezvous),
                    end) &&
         wait_until(library_.send(gathering_, rank, 0, {piece, {}}, Rendezvous), end);
}

std::vector<std::optional<std::string>> Processes::gather(std::string text, Duration more) {
  const Clock::time_point end = after(timeout_ + more);
  std::vector<std::optional<std::string>> texts;
  if (rank() == 0) {
    texts.emplace_back(std::move(text));
    for (int from = 1; from < size(); ++from) texts.push_back(text_of(from, end));
    return texts;
  }
  texts.push_back(tell(0, text, end) ? std::optional<std::string>("") : std::nullopt);
  return texts;
}

std::optional<std::string> Processes::spread(std::string text) {
  const Clock::time_point end = after(timeout_);
  if (rank() != 0) return text_of(0, end);
  for (int to = 1; to < size(); ++to) {
    if (!tell(to, text, end)) return std::nullopt;
  }
  return text;
}

}  // namespace capo::run
