#include <capo/testing/truth/lines_file.h>

#include <capo/core/base/error_text.h>
#include <capo/testing/truth/stream_error.h>

#include <fmt/format.h>

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

// The header is line 1.
std::string not_of_order(std::uint64_t number) {
  return fmt::format("line {} is not of order {}", number + 2, number);
}

// What of a file is kept: whole lines in the order of their numbers, up to one that disagrees and
// is the last.
struct Kept {
  Tally tally;
  std::uintmax_t bytes = 0;
  std::string error = {};
};

Kept kept_of(std::istream& in, std::string_view header) {
  Kept kept;
  std::string line;
  std::getline(in, line);
  const bool whole = !in.eof();  // at the end: no line break
  if (whole ? line != header : !header.starts_with(line)) {
    kept.error = "these are lines of another campaign";
    return kept;
  }
  if (!whole) return kept;
  kept.bytes = line.size() + 1;
  std::optional<TruthLine> waiting;  // until it is known not to be the last, or to agree
  std::uintmax_t bytes_of_waiting = 0;
  while (std::getline(in, line) && !in.eof()) {
    if (waiting) {
      kept.tally.add(*waiting);
      kept.bytes += bytes_of_waiting;
    }
    waiting = read_truth_line(line);
    bytes_of_waiting = line.size() + 1;
    if (!waiting || waiting->number != kept.tally.lines) {
      kept.error = not_of_order(kept.tally.lines);
      return kept;
    }
  }
  if (waiting && waiting->came != Came::Disagrees) {
    kept.tally.add(*waiting);
    kept.bytes += bytes_of_waiting;
  }
  return kept;
}

}  // namespace

Result<LinesFile, Error> LinesFile::open(const std::string& path, std::string_view header) {
  LinesFile file;
  if (path.empty()) return file;
  file.path_ = path;
  std::error_code failed;
  Kept kept;
  const bool exists = fs::exists(path, failed);
  if (failed) return refusal(error_text(failed.value()), path, "");
  if (exists) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return refusal(error_text(errno), path, "");
    try {
      in.exceptions(std::ios::badbit);
      kept = kept_of(in, header);
    } catch (const std::ios_base::failure& broken) {
      return refusal(stream_error(broken), path, "");
    }
    if (!kept.error.empty()) {
      return refusal(kept.error, path, "write to another file, or remove this one");
    }
    fs::resize_file(path, kept.bytes, failed);
    if (failed) return cannot_write(path);
  }
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
  ReadLines read;
  std::getline(in, read.header);
  for (std::string text; std::getline(in, text);) {
    const auto line = read_truth_line(text);
    if (!line || line->number != read.tally.lines) {
      return Error{
          .kind = ErrorKind::Unreadable, .message = not_of_order(read.tally.lines), .help = ""};
    }
    read.tally.add(*line);
  }
  return read;
} catch (const std::ios_base::failure& broken) {
  return Error{.kind = ErrorKind::Unreadable,
               .message = "the lines cannot be read to their end: " + stream_error(broken),
               .help = ""};
}

}  // namespace capo::testing
