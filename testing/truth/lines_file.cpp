#include "testing/truth/lines_file.h"

#include "core/base/error.h"
#include "testing/truth/stream_error.h"
#include "testing/truth/truth_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <ios>
#include <istream>
#include <utility>

namespace capo::testing {

namespace {

namespace fs = std::filesystem;

Error refusal(std::string what, const std::string& path, std::string help) {
  return {.kind = ErrorKind::Unreadable,
          .message = fmt::format("{}: {}", path, std::move(what)),
          .help = std::move(help)};
}

Error cannot_write(const std::string& path) {
  return {.kind = ErrorKind::Environment,
          .message = fmt::format("cannot write {}: {}", path, error_text(errno)),
          .help = ""};
}

constexpr mode_t kForAll = 0666;  // the umask takes its bits away

Error cannot_lock(const std::string& path) {
  if (errno == EWOULDBLOCK) {
    return {.kind = ErrorKind::Environment,
            .message = path + ": another capo-fuzz adds lines to it",
            .help = "wait for it, or write to another file"};
  }
  return cannot_write(path);
}

// A device or a pipe has no end that could be known.
std::optional<Error> no_regular_file(const std::string& path) {
  std::error_code failed;
  const fs::file_type type = fs::status(path, failed).type();
  if (type == fs::file_type::none) return refusal(error_text(failed.value()), path, "");
  if (type == fs::file_type::regular || type == fs::file_type::not_found) return std::nullopt;
  return refusal("this is no regular file", path, "");
}

// Says what is wrong with the line of an order; empty if it is right. The header is line 1.
std::string fault_of(const std::optional<TruthLine>& line, std::uint64_t number) {
  if (!line) return fmt::format("line {} is none of a campaign's", number + 2);
  if (line->number == number) return {};
  return fmt::format("line {} is not of order {}", number + 2, number);
}

// The part of a file that is kept: whole lines in the order of their numbers, without a last one
// that disagrees.
struct Kept {
  Tally tally;
  std::uintmax_t bytes = 0;
  std::string error = {};
};

Kept kept_of(std::istream& in, std::string_view header) {
  Kept kept;
  std::string line;
  std::getline(in, line);
  const bool whole = !in.eof();  // the last line has no line break
  if (whole ? line != header : !header.starts_with(line)) {
    kept.error = "these are lines of another campaign";
    return kept;
  }
  if (!whole) return kept;
  kept.bytes = line.size() + 1;
  std::optional<TruthLine> waiting;  // waits until it is known not to be the last, or to agree
  std::uintmax_t bytes_of_waiting = 0;
  while (std::getline(in, line) && !in.eof()) {
    if (waiting) {
      kept.tally.add(*waiting);
      kept.bytes += bytes_of_waiting;
    }
    waiting = read_truth_line(line);
    bytes_of_waiting = line.size() + 1;
    kept.error = fault_of(waiting, kept.tally.lines);
    if (!kept.error.empty()) return kept;
  }
  if (waiting && waiting->came != Came::Disagrees) {
    kept.tally.add(*waiting);
    kept.bytes += bytes_of_waiting;
  }
  return kept;
}

}  // namespace

Result<FileLock, Error> FileLock::take(const std::string& path) {
  FileLock lock;
  lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
  if (lock.file_ < 0 || ::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) return cannot_lock(path);
  return lock;
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

Result<LinesFile, Error> LinesFile::open(const std::string& path, std::string_view header) {
  LinesFile file;
  if (path.empty()) return file;
  file.path_ = path;
  if (auto other = no_regular_file(path)) return *std::move(other);
  auto lock = FileLock::take(path);
  if (!lock) return lock.error();
  file.lock_ = *std::move(lock);
  // From here on nobody else adds to it.
  std::ifstream in(path, std::ios::binary);
  if (!in) return refusal(error_text(errno), path, "");
  Kept kept;
  try {
    in.exceptions(std::ios::badbit);
    kept = kept_of(in, header);
  } catch (const std::ios_base::failure& broken) {
    return refusal(stream_error(broken), path, "");
  }
  if (!kept.error.empty()) {
    return refusal(kept.error, path, "write to another file, or remove this one");
  }
  std::error_code failed;
  fs::resize_file(path, kept.bytes, failed);
  if (failed) return cannot_write(path);
  file.resumed_ = std::move(kept.tally);
  file.out_.open(path, std::ios::binary | std::ios::app);
  if (!file.out_) return cannot_write(path);
  if (kept.bytes == 0) {
    if (auto refused = file.write(header)) return *std::move(refused);
  }
  return file;
}

std::optional<Error> LinesFile::write(std::string_view line) {
  if (!out_.is_open()) return std::nullopt;
  out_ << line << '\n' << std::flush;
  if (!out_) return cannot_write(path_);
  return std::nullopt;
}

Result<ReadLines, Error> read_lines(std::istream& in) try {
  in.exceptions(std::ios::badbit);
  const auto refused = [](std::string why) {
    return Error{.kind = ErrorKind::Unreadable, .message = std::move(why), .help = ""};
  };
  // So much first, since what is no campaign's may have no line break and no end.
  ReadLines read{.header = std::string(kHeaderBegin.size(), ' ')};
  in.read(read.header.data(), static_cast<std::streamsize>(kHeaderBegin.size()));
  if (!in || read.header != kHeaderBegin) return refused("line 1 is not the header of a campaign");
  std::string text;
  std::getline(in, text);
  read.header += text;
  while (std::getline(in, text)) {
    const auto line = read_truth_line(text);
    if (std::string why = fault_of(line, read.tally.lines); !why.empty()) return refused(why);
    read.tally.add(*line);
  }
  return read;
} catch (const std::ios_base::failure& broken) {
  return Error{.kind = ErrorKind::Unreadable,
               .message = "the lines cannot be read to their end: " + stream_error(broken),
               .help = ""};
}

}  // namespace capo::testing
