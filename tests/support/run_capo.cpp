#include "tests/support/run_capo.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace capo::testing_support {

namespace {

std::pair<int, int> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  return {ends[0], ends[1]};
}

[[noreturn]] void become_capo(const std::vector<std::string>& arguments, const RunOptions& options,
                              int in, int out, int err) {
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) std::_Exit(126);
  if (!options.stdout_path.empty()) out = ::open(options.stdout_path.c_str(), O_WRONLY);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  for (int fd = 3; fd < 256; ++fd) ::close(fd);
  ::signal(SIGPIPE, SIG_DFL);
  for (const std::string& setting : options.environment)
    ::putenv(const_cast<char*>(setting.c_str()));
  std::vector<char*> argv{const_cast<char*>(options.program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(options.program.c_str(), argv.data());
  std::_Exit(127);
}

}  // namespace

const char* program_under_test() {
  const char* named = std::getenv("CAPO_UNDER_TEST");
  return named != nullptr ? named : CAPO_EXECUTABLE;
}

Outcome run_capo(const std::vector<std::string>& arguments, const RunOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a program that stops reading its input is no fault of the test
  const auto [in_read, in_write] = make_pipe();
  const auto [out_read, out_write] = make_pipe();
  const auto [err_read, err_write] = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) become_capo(arguments, options, in_read, out_write, err_write);
  ::close(in_read);
  ::close(out_write);
  ::close(err_write);

  Outcome outcome;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  std::string_view input = options.input;
  std::array<pollfd, 3> ends{{{.fd = in_write, .events = POLLOUT, .revents = 0},
                              {.fd = out_read, .events = POLLIN, .revents = 0},
                              {.fd = err_read, .events = POLLIN, .revents = 0}}};
  while (ends[1].fd >= 0 || ends[2].fd >= 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(child, SIGKILL);
      break;
    }
    if (ends[0].fd >= 0 && input.empty()) {
      ::close(std::exchange(ends[0].fd, -1));
    }
    ::poll(ends.data(), ends.size(), 200);
    if (ends[0].fd >= 0 && ends[0].revents != 0) {
      const ssize_t count =
          ::write(ends[0].fd, input.data(), std::min<std::size_t>(input.size(), 4096));
      input = count > 0 ? input.substr(static_cast<std::size_t>(count)) : std::string_view{};
    }
    for (const std::size_t i : {1, 2}) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 1 << 16> buffer;
      const ssize_t count = ::read(ends[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        (i == 1 ? outcome.out : outcome.err).append(buffer.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        ::close(std::exchange(ends[i].fd, -1));
      }
    }
  }
  for (const pollfd& end : ends) {
    if (end.fd >= 0) ::close(end.fd);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool holds(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace capo::testing_support
