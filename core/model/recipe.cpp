#include "core/model/recipe.h"

#include "core/base/index.h"

#include <array>
#include <cstddef>
#include <limits>

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

// Products of two counts fit.
using Wide = __int128;

constexpr Wide parts(Wide count, std::int64_t size) {
  return (count + size - 1) / size;
}

constexpr Wide up_to(Wide count, std::int64_t multiple) {
  return parts(count, multiple) * multiple;
}

constexpr std::int64_t clamped(Wide bytes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return bytes > kMost ? kMost : static_cast<std::int64_t>(bytes);
}

Wide elements(const RecipeFacts& facts, const QuantizedCopy& copy) {
  if (facts.element_bits == 0) return 0;
  return parts(Wide{copy.rows} * copy.columns, 8 / facts.element_bits);
}

Wide scales(const RecipeFacts& facts, const QuantizedCopy& copy) {
  if (facts.block == 0) return facts.scale_bytes;
  const bool rows = copy.lines == CopyLines::Rows;
  const Wide lines = rows ? copy.rows : copy.columns;
  const Wide blocks = parts(rows ? copy.columns : copy.rows, facts.block);
  // The squares of a weight are padded along its lines, and blocks of a line across them.
  const Wide count = copy.weight && facts.square_weights
                         ? parts(lines, facts.block) * up_to(blocks, facts.lines_to)
                         : up_to(lines, facts.lines_to) * up_to(blocks, facts.blocks_to);
  return count * facts.scale_bytes + (facts.recipe == Recipe::Nvfp4 ? kWholeTensor : 0);
}

}  // namespace

const RecipeFacts& facts_of(Recipe recipe) {
  return kRecipes[as_index(recipe)];
}

std::string_view name_of(Recipe recipe) {
  return facts_of(recipe).name;
}

std::string_view name_of(WeightCache cache) {
  return cache == WeightCache::Device ? "device" : "python";
}

bool quantizes(Recipe recipe) {
  return facts_of(recipe).copies != QuantizedCopies::None;
}

std::int64_t element_bytes_of(Recipe recipe, const QuantizedCopy& copy) {
  return clamped(elements(facts_of(recipe), copy));
}

std::int64_t scale_bytes_of(Recipe recipe, const QuantizedCopy& copy) {
  return clamped(scales(facts_of(recipe), copy));
}

std::int64_t copy_bytes(Recipe recipe, const QuantizedCopy& copy) {
  return clamped(elements(facts_of(recipe), copy) + scales(facts_of(recipe), copy));
}

}  // namespace capo
