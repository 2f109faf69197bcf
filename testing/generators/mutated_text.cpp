#include "testing/generators/mutated_text.h"

#include "core/frameworks/torch/csv_printer.h"
#include "core/text/json_printer.h"
#include "core/text/json_value.h"
#include "core/text/order_text.h"
#include "testing/generators/arbitrary_numbers.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/arbitrary_table.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>

namespace capo::testing {

namespace {

constexpr std::array<std::string_view, 49> kWords{
    "[",           "]",      "(",        ")",           "{",         "}",
    ",",           ":",      ";",        "\n",          "\n ",       "\r\n",
    "\"",          "#",      ".",        "-",           "0",         "1",
    "-1.5",        "1000",   "1001",     "2147483648",  "1e999",     "nan",
    "null",        "none",   "all",      "capo 1\n",    "rank 0:",   "rank 1:",
    "replay",      "chunks", "layers",   "stages",      "placement", "custom",
    "delayed",     "mixed",  "F1",       "B1.0",        "I1.0",      "send-F1",
    "dispatch-F1", "0F0",    "0UNSHARD", "OVERLAP_F_B", "\"order\"", "\xef\xbb\xbf",
    "\xc3\xa9"};

std::string json_of_numbers(const NumberCase& numbers) {
  std::string list = numbers.text();
  for (const auto& [python, json] : {std::pair("nan", "\"NaN\""), std::pair("inf", "Infinity")}) {
    for (std::size_t at = list.find(python); at != std::string::npos;
         at = list.find(python, at + 8)) {
      list.replace(at, 3, json);
    }
  }
  for (std::size_t at = list.find("Infinity"); at != std::string::npos;
       at = list.find("Infinity", at + 10)) {
    const std::size_t begin = at > 0 && list[at - 1] == '-' ? at - 1 : at;
    list.insert(at + 8, "\"").insert(begin, "\"");
  }
  list.pop_back();
  std::string out = "{\"order\": " + list;
  if (numbers.layers.form == Layers::Form::Null) out += ", \"num_layers_per_chunk\": null";
  if (numbers.layers.form == Layers::Form::Count) {
    out += ", \"num_layers_per_chunk\": " + std::to_string(numbers.layers.values.front());
  }
  if (numbers.layers.form == Layers::Form::List) {
    out += ", \"num_layers_per_chunk\": [";
    for (std::size_t i = 0; i < numbers.layers.values.size(); ++i) {
      out += (i > 0 ? ", " : "") + std::to_string(numbers.layers.values[i]);
    }
    out += "]";
  }
  if (numbers.need_wgrad) {
    out += ", \"need_wgrad\": [";
    for (std::size_t i = 0; i < numbers.need_wgrad->size(); ++i) {
      out += std::string(i > 0 ? ", " : "") + ((*numbers.need_wgrad)[i] ? "true" : "false");
    }
    out += "]";
  }
  return out + "}";
}

std::string json_of_table(const std::string& csv) {
  std::string out = "{\"csv\": [";
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    out += (out.back() == '[' ? "" : ", ") + json_quoted(line);
  }
  return out + "], \"microbatches\": 4}";
}

MutatedText draw_text(Dice& dice) {
  switch (dice.below(6)) {
    case 0:
      return {TextForm::TeList, draw_arbitrary_numbers(dice).text()};
    case 1:
      return {TextForm::OrderFile, print_order_file(draw_arbitrary_schedule(dice))};
    case 2:
      return {TextForm::Json, print_json(draw_arbitrary_schedule(dice))};
    case 3:
      return {TextForm::TorchCsv, print_torch_csv(draw_arbitrary_table(dice).schedule).value()};
    case 4:
      return {TextForm::Json, json_of_numbers(draw_arbitrary_numbers(dice))};
    default:
      return {TextForm::Json,
              json_of_table(print_torch_csv(draw_arbitrary_table(dice).schedule).value())};
  }
}

void mutate(Dice& dice, std::string& text) {
  const std::size_t at = dice.below(text.size() + 1);
  switch (dice.below(5)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
      break;
    case 1:
      text.erase(at, 1 + dice.below(8));
      break;
    case 2:
      text.insert(at, dice.pick(std::span<const std::string_view>(kWords)));
      break;
    case 3:
      text.insert(dice.below(text.size() + 1), text.substr(at, 1 + dice.below(16)));
      break;
    default:
      text.resize(at);
      break;
  }
}

}  // namespace

rc::Gen<MutatedText> mutated_text() {
  return generator(
      [](Dice& dice) {
        MutatedText text = draw_text(dice);
        for (std::size_t i = dice.below(5); i > 0; --i) mutate(dice, text.text);
        return text;
      },
      [](const MutatedText& text) {
        std::vector<MutatedText> out;
        for (std::size_t size = text.text.size(); size > 0; size /= 2) {
          for (std::size_t at = 0; at < text.text.size(); at += size) {
            out.push_back(text);
            out.back().text.erase(at, size);
          }
        }
        return out;
      });
}

void showValue(const MutatedText& text, std::ostream& out) {
  out << json_quoted(text.text);
}

}  // namespace capo::testing
