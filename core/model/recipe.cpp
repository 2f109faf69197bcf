#include "core/model/recipe.h"

#include "core/base/index.h"
#include "core/model/configuration.h"

#include <array>

namespace capo {

namespace {

// They are read in transformer_engine/pytorch/tensor: float8_tensor.py, get_scale_shape() of
// float8_blockwise_tensor.py:162, mxfp8_tensor.py:139 and nvfp4_tensor.py:273. For what outlives a
// graph see quantization.py:1397.
constexpr std::array kRecipes{
    RecipeFacts{.recipe = Recipe::None, .name = "none"},
    RecipeFacts{.recipe = Recipe::Delayed,
                .name = "delayed",
                .element_bits = 8,
                .scale_bytes = 4,
                .copies = QuantizedCopies::Transposed,
                .state_outside = true},
    RecipeFacts{.recipe = Recipe::Current,
                .name = "current",
                .element_bits = 8,
                .scale_bytes = 4,
                .copies = QuantizedCopies::Transposed},
    RecipeFacts{.recipe = Recipe::Block,
                .name = "block",
                .element_bits = 8,
                .block = 128,
                .square_weights = true,
                .scale_bytes = 4,
                .lines_to = 4,
                .copies = QuantizedCopies::EachDirection},
    RecipeFacts{.recipe = Recipe::Mxfp8,
                .name = "mxfp8",
                .element_bits = 8,
                .block = 32,
                .scale_bytes = 1,
                .lines_to = 128,
                .blocks_to = 4,
                .copies = QuantizedCopies::EachDirection},
    // Its square blocks of a weight repeat their scale on every line.
    RecipeFacts{.recipe = Recipe::Nvfp4,
                .name = "nvfp4",
                .element_bits = 4,
                .block = 16,
                .scale_bytes = 1,
                .lines_to = 128,
                .blocks_to = 4,
                .copies = QuantizedCopies::EachDirection,
                .runs = false},
};

static_assert([] {
  for (std::size_t i = 0; i < kRecipes.size(); ++i) {
    if (kRecipes[i].recipe != static_cast<Recipe>(i)) return false;
  }
  return true;
}());

constexpr std::int64_t kWholeTensor = 4;  // bytes of a number in fp32 for a tensor

constexpr std::int64_t parts(std::int64_t count, std::int64_t size) {
  return count / size + (count % size == 0 ? 0 : 1);
}

constexpr std::int64_t up_to(std::int64_t count, std::int64_t multiple) {
  return saturated_product(parts(count, multiple), multiple);
}

}  // namespace

const RecipeFacts& facts_of(Recipe recipe) {
  return kRecipes[as_index(recipe)];
}

std::string_view name_of(Recipe recipe) {
  return facts_of(recipe).name;
}

bool quantizes(Recipe recipe) {
  return facts_of(recipe).copies != QuantizedCopies::None;
}

std::int64_t element_bytes_of(Recipe recipe, const QuantizedCopy& copy) {
  const std::int64_t elements = saturated_product(copy.rows, copy.columns);
  return facts_of(recipe).element_bits == 4
             ? parts(elements, 2)
             : saturated_product(elements, facts_of(recipe).element_bits / 8);
}

std::int64_t scale_bytes_of(Recipe recipe, const QuantizedCopy& copy) {
  const RecipeFacts& facts = facts_of(recipe);
  if (facts.block == 0) return facts.scale_bytes;
  const bool rows = copy.lines == CopyLines::Rows;
  const std::int64_t lines = rows ? copy.rows : copy.columns;
  const std::int64_t blocks = parts(rows ? copy.columns : copy.rows, facts.block);
  // The squares of a weight are padded along its lines, and blocks of a line across them.
  const std::int64_t scales =
      copy.weight && facts.square_weights
          ? saturated_product(parts(lines, facts.block), up_to(blocks, facts.lines_to))
          : saturated_product(up_to(lines, facts.lines_to), up_to(blocks, facts.blocks_to));
  const std::int64_t of_tensor = recipe == Recipe::Nvfp4 ? kWholeTensor : 0;
  return saturated_sum(saturated_product(scales, facts.scale_bytes), of_tensor);
}

std::int64_t copy_bytes(Recipe recipe, const QuantizedCopy& copy) {
  return saturated_sum(element_bytes_of(recipe, copy), scale_bytes_of(recipe, copy));
}

}  // namespace capo
