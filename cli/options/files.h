// Files as capo treats them: reading says what failed; writing is whole or absent.
//
// A FIFO is read to the end of its writer, which may come later, and so is the pipe of a shell's
// process substitution: `mkfifo f; (sleep 1; echo "[1, -1]" >f) & capo check f`. Output to a file
// goes to a temporary file in the same directory and is renamed, and an interrupt waits until that
// is done; output to standard output is checked to its last byte, so that a full disk is never a
// success. Tested by tests/cli/options/files_test.cpp, and by tests/failing/ with each call failing
// in turn.

#pragma once

#include "core/base/result.h"
#include "core/diag/source.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capo::cli {

/// Reads a file's text; `-` is standard input. More than `max_bytes` is an error of kind Limit.
[[nodiscard]] Result<Source> read_source(const std::string& path, std::uint64_t max_bytes);

/// Writes a file whole. Returns the reason why it could not be written; nullopt if it was.
[[nodiscard]] std::optional<Error> write_file(const std::string& path, std::string_view text);
[[nodiscard]] std::optional<Error> write_stdout(std::string_view text);
/// Writes to a file or, if the path is `-`, to standard output, as --output says.
[[nodiscard]] std::optional<Error> write_output(const std::string& path, std::string_view text);

/// The ending of a file's name in small letters and without its dot, "svg"; empty if it has none.
[[nodiscard]] std::string ending_of(std::string_view path);

/// Writes to standard error; if that takes nothing, nothing happens.
void print_stderr(std::string_view text);
/// Writes an error and its help to standard error.
void print_error(const Error& error);
/// Prints an error; returns the exit code that it means.
[[nodiscard]] int fail(const Error& error);
/// The exit code after an output was written: `code`, unless that failed.
[[nodiscard]] int exit_code_after(const std::optional<Error>& failed, int code = 0);

}  // namespace capo::cli
