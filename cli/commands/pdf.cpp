#include "cli/commands/drawn.h"

#include "core/base/error.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace capo::cli {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Error failed(std::string_view what, int code) {
  return Error{.kind = ErrorKind::Environment,
               .message = fmt::format("{}: {}", what, std::generic_category().message(code))};
}

Error missing() {
  return Error{.kind = ErrorKind::Environment,
               .message = "PDF is made by `rsvg-convert`, which is not installed",
               .help = "install the package librsvg2-bin, or write .svg"};
}

// Runs rsvg-convert from one file to the other. Returns its exit status, or -1 with errno set.
int convert(int from, int to) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, from, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
  std::array<std::string, 2> words{"rsvg-convert", "--format=pdf"};
  const std::array<char*, 3> arguments{words[0].data(), words[1].data(), nullptr};
  pid_t child = 0;
  errno = posix_spawnp(&child, "rsvg-convert", &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (errno != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::array<char, 65536> part{};
  std::rewind(file);
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), file)) > 0;) {
    text.append(part.data(), got);
  }
  return text;
}

}  // namespace

Result<std::string> pdf_of(std::string_view svg) {
  const File from(std::tmpfile(), std::fclose);
  const File to(std::tmpfile(), std::fclose);
  if (!from || !to) return failed("no temporary file could be made", errno);
  const bool written = std::fwrite(svg.data(), 1, svg.size(), from.get()) == svg.size();
  if (!written || std::fflush(from.get()) != 0) return failed("a temporary file", errno);
  ::lseek(fileno(from.get()), 0, SEEK_SET);
  const int status = convert(fileno(from.get()), fileno(to.get()));
  if (status < 0 && errno == ENOENT) return missing();
  if (status < 0) return failed("rsvg-convert", errno);
  // A shell's and an old C library's answer where there is no such program.
  if (status == 127) return missing();
  if (status != 0) {
    return Error{.kind = ErrorKind::Environment,
                 .message = fmt::format("rsvg-convert ended with code {}", status)};
  }
  return read_all(to.get());
}

}  // namespace capo::cli
