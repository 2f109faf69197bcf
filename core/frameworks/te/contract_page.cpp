#include "core/frameworks/te/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

namespace capo::gradients {

namespace {

constexpr std::size_t kWidth = 100;

constexpr std::string_view kIntroduction =
    "The gradient contract: what a module's backward owes its weight\n"
    "\n"
    "  delay  the weight gradient is an action of its own, W (delay_wgrad)\n"
    "  fuse   its product writes main_grad (fuse_wgrad_accumulation)\n"
    "  attr   the parameter has the flag grad_added_to_main_grad\n"
    "\n"
    "`by` is the action that writes the gradient, `flag` the one that sets the flag.\n";

constexpr std::array<std::string_view, 6> kFacts{
    "A reader as Megatron-LM's DDP adds .grad to main_grad where the flag is not set or "
    "zero_out_wgrad is, and clears .grad. With overlapped reduction it asserts that .grad is not "
    "None, which is why there are dummies.",
    "The parameter is found by a weak handle to the parameter object, made in F where fuse is on "
    "and the weight is trained: what saved the tensor may bring back another one. A parameter that "
    "is gone is an error in both contracts.",
    "A second backward of a microbatch is refused in both contracts: in TransformerEngine with an "
    "AttributeError, since the first drops the state, and in 2.20's warm-up with a KeyError.",
    "A backward that hands no gradient to anyone (weight: nothing, input: needs none, no bias, no "
    "norm) cannot be captured with PyTorch 2.11: cudaErrorStreamCaptureIsolation.",
    "TransformerEngine's grouped-linear-op needs main_grad at F already. Before "
    "TransformerEngine's "
    "pull request 2923 it handed autograd nothing where the table says a dummy with delay.",
    "main_grad of a single weight for all groups must be viewable as (groups, out, in) without a "
    "copy and lie in one piece; else it is refused, with its shape and strides.",
};

// Breaks `text` into lines of kWidth; all but the first are indented by the width of the mark.
std::string paragraph(std::string_view mark, std::string_view text) {
  std::string out(mark);
  std::size_t column = mark.size();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > mark.size() && column + 1 + end > kWidth) {
      out += "\n" + std::string(mark.size(), ' ');
      column = mark.size();
    }
    if (column > mark.size()) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\n";
}

std::string with_source(std::string_view text, std::string_view source) {
  return source.empty() ? std::string(text) : fmt::format("{} ({})", text, source);
}

using Row = std::array<std::string, 8>;  // mark, mode, module, ..., notes

Row row_of(GradientMode mode, ModuleKind kind, const Cell& cell) {
  const std::vector<Defect> defects = defects_of(cell);
  std::string notes;
  for (const Defect& defect : defects)
    notes += (notes.empty() ? "" : " ") + std::string(1, defect.mark);
  return {defects.empty() ? " " : "!",
          std::string(name_of(mode)),
          std::string(name_of(kind)),
          std::string(name_of(cell.returned)),
          std::string(name_of(cell.destination)),
          std::string(name_of(cell.written)),
          std::string(name_of(cell.flagged)),
          notes};
}

std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}{}", row[i], widths[i], i == 0 ? " " : "  ");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string table(Contract whose, const te::Version& version) {
  std::vector<Row> rows{{" ", "", "module", "autograd gets", "the gradient", "by", "flag", ""}};
  for (const GradientMode mode : kGradientModes) {
    for (const ModuleKind kind : kColumns) {
      rows.push_back(row_of(mode, kind, contract(kind, mode, whose, version).value()));
    }
  }
  return aligned(rows);
}

std::string notes_of_te(const te::Version& version) {
  std::map<char, Defect> used;
  for (const GradientMode mode : kGradientModes) {
    for (const ModuleKind kind : kColumns) {
      const Cell cell = contract(kind, mode, Contract::Te, version).value();
      for (const Defect& defect : defects_of(cell)) used.emplace(defect.mark, defect);
    }
  }
  std::string out;
  for (const auto& [mark, defect] : used) {
    out += paragraph(fmt::format("  {}  ", mark), with_source(defect.text, defect.source));
  }
  return out;
}

}  // namespace

std::string contract_page(const te::Version& version) {
  std::string out(kIntroduction);
  out += "\nThe sound contract, which capo's modules keep:\n\n" + table(Contract::Sound, version);
  out +=
      "\n" + paragraph("",
                       "With overwrite_main_grad or is_first_microbatch, what is written first in "
                       "a step overwrites main_grad. With zero_out_wgrad, dummies are zeros. A "
                       "frozen weight gets nothing and queues nothing.");
  out += fmt::format(
      "\nTransformerEngine {}, where `!` marks a defect and letters say which:\n\n{}\n{}",
      version.commit, table(Contract::Te, version), notes_of_te(version));
  out +=
      "\n" + paragraph("",
                       "Its basic-linear-op is as the rows of grouped-linear-op without delay. An "
                       "attention is two linears. A transformer-layer is made of these.");
  out += "\nWhat goes wrong in TransformerEngine under some flag or circumstance:\n\n";
  for (const ConditionalDefect& defect : conditional_defects()) {
    out += paragraph("  - ",
                     fmt::format("{}: {}", defect.under, with_source(defect.text, defect.source)));
  }
  out += "\nAlso:\n\n";
  for (const std::string_view fact : kFacts) out += paragraph("  - ", fact);
  return out;
}

}  // namespace capo::gradients
