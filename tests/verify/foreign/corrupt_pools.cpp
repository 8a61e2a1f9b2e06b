#include <cstring>

#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/stages.hpp"

#include "corruptions.hpp"

namespace indexpool::verify {
namespace {

using Bytes = std::span<std::uint8_t>;

Bytes pool_row(Answered& answers, std::int64_t pool) {
  Tensor& rows = output(answers, "pool_rows");
  const auto width = static_cast<std::size_t>(rows.dim(1));
  return rows.as<std::uint8_t>().subspan(static_cast<std::size_t>(pool) * width, width);
}

float scale_of(Bytes row) {
  float scale = 0;
  std::memcpy(&scale, row.data() + row.size() - 4, 4);
  return scale;
}
void set_scale(Bytes row, float scale) { std::memcpy(row.data() + row.size() - 4, &scale, 4); }

// The pools as a kernel would store them that computed from other inputs, or rounded otherwise.
using Change = void (*)(IndexerInputs& inputs);
using ToCode = std::uint8_t (*)(double scaled);

std::uint8_t nearest(double scaled) { return e4m3_from_float(static_cast<float>(scaled)); }
// Towards zero.
std::uint8_t truncated(double scaled) {
  const std::uint8_t code = nearest(scaled);
  return std::abs(float_from_e4m3(code)) > std::abs(scaled) ? static_cast<std::uint8_t>(code - 1)
                                                            : code;
}

void recompute_rows(Answered& answers, Change change, ToCode to_code = nearest) {
  IndexerInputs inputs = answers.foreign.test_case.inputs;
  inputs.gate_scores = inputs.gate_scores.clone();
  inputs.ape = inputs.ape.clone();
  inputs.keys = inputs.keys.clone();
  change(inputs);
  const reference::Pooled pooled = reference::pool(inputs);
  const auto dim = static_cast<std::size_t>(inputs.config.index_head_dim);
  for (std::size_t first = 0; first < pooled.rotated.value.size(); first += dim) {
    const auto values = std::span(pooled.rotated.value).subspan(first, dim);
    const double scale = reference::quantise(values, inputs.mode).scale;
    const Bytes row = pool_row(answers, static_cast<std::int64_t>(first / dim));
    for (std::size_t c = 0; c < dim; ++c) row[c] = to_code(values[c] / scale);
    set_scale(row, static_cast<float>(scale));
  }
}

void recompute_pooled(Answered& answers, Change change) {
  IndexerInputs inputs = answers.foreign.test_case.inputs;
  inputs.gate_scores = inputs.gate_scores.clone();
  inputs.ape = inputs.ape.clone();
  change(inputs);
  const reference::Pooled pooled = reference::pool(inputs);
  Tensor& out = output(answers, "pooled");
  for (std::int64_t i = 0; i < out.size(); ++i) {
    out.set(i, pooled.pooled.value[static_cast<std::size_t>(i)]);
  }
}

void fill(Tensor& tensor, double value) {
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value);
}

void rotate_ape(IndexerInputs& inputs) {
  const Tensor ape = inputs.ape.clone();
  const std::int64_t dim = ape.dim(1), rows = ape.dim(0);
  for (std::int64_t i = 0; i < ape.size(); ++i) {
    inputs.ape.set(i, ape.at((i / dim + 1) % rows * dim + i % dim));
  }
}

// Moves the rows into planar pages of pages that start poisoned; `slot` may be wrong.
using Slot = std::int64_t (*)(const ForeignCase& foreign, std::int64_t pool);
std::int64_t right_slot(const ForeignCase& foreign, std::int64_t pool) {
  const std::int64_t kpool = foreign.test_case.inputs.config.index_kpool;
  return foreign.paging.slot_mapping
      .as<std::int64_t>()[static_cast<std::size_t>(pool * kpool + kpool - 1)];
}
void into_pages(Answered& answers, Slot slot = right_slot) {
  const ForeignCase& foreign = answers.foreign;
  const Tensor rows = output(answers, "pool_rows");
  const std::int64_t states = foreign.paging.states_per_page, width = rows.dim(1);
  Tensor pages(DType::u8, {foreign.paging.pages, states * width});
  std::memset(pages.data(), 0xff, static_cast<std::size_t>(pages.bytes().value));
  for (std::int64_t p = 0; p < rows.dim(0); ++p) {
    const std::int64_t at = slot(foreign, p), page = at / states, state = at % states;
    std::byte* first = pages.data() + page * states * width;
    const auto codes = static_cast<std::size_t>(width - 4);
    std::memcpy(first + state * (width - 4), rows.data() + p * width, codes);
    std::memcpy(first + states * (width - 4) + state * 4, rows.data() + p * width + width - 4, 4);
  }
  answers.outputs.tensors.erase("pool_rows");
  answers.outputs.tensors["pages"] = pages;
}

const Corruption table[] = {
    {"scale_doubled", "fp8_small", Op::pool, "scale",
     "pool 3:", [](Answered& a) { set_scale(pool_row(a, 3), 2 * scale_of(pool_row(a, 3))); }},
    {"half_scale", "fp8_small", Op::pool, "scale",
     "pool 9:", [](Answered& a) { set_scale(pool_row(a, 9), scale_of(pool_row(a, 9)) / 2); }},
    {"scale_not_a_power_of_two", "fp8_small", Op::pool, "scale", "pool 0:",
     [](Answered& a) {
       recompute_rows(a, [](IndexerInputs& i) { i.mode = numeric_mode("sglang_fp8"); });
     }},
    {"one_code_plus_one", "fp8_small", Op::pool, "quantiser",
     "pool 5, channel 17:", [](Answered& a) { pool_row(a, 5)[17] ^= 1; }},
    {"codes_truncated", "fp8_glm53", Op::pool, "quantiser", "pool 0, channel",
     [](Answered& a) {
       recompute_rows(
           a, [](IndexerInputs&) {}, truncated);
     }},
    {"nan_code", "fp8_small", Op::pool, "quantiser",
     "pool 4, channel 100:", [](Answered& a) { pool_row(a, 4)[100] = 0x7f; }},
    {"channels_shifted", "fp8_small", Op::pool, "quantiser", "pool 7, channel",
     [](Answered& a) {
       const Bytes row = pool_row(a, 7);
       std::memmove(row.data() + 1, row.data(), row.size() - 5);
     }},
    {"two_rows_exchanged", "fp8_glm53", Op::pool, "quantiser", "pool 2, channel",
     [](Answered& a) { exchange_rows(output(a, "pool_rows"), 2, 61); }},
    {"stale_row", "fp8_small", Op::pool, "quantiser", "pool 6, channel",
     [](Answered& a) { copy_row(output(a, "pool_rows"), 6, 5); }},
    {"rows_shifted", "fp8_glm53", Op::pool, "quantiser", "pool 1, channel",
     [](Answered& a) {
       for (std::int64_t p = 63; p > 0; --p) copy_row(output(a, "pool_rows"), p, p - 1);
     }},
    {"wrong_ape_index", "fp8_small", Op::pool, "quantiser", "pool 0, channel",
     [](Answered& a) { recompute_rows(a, rotate_ape); }},
    {"softmax_without_the_bias", "fp8_small", Op::pool, "quantiser", "pool 0, channel",
     [](Answered& a) { recompute_rows(a, [](IndexerInputs& i) { fill(i.ape, 0); }); }},
    {"mean_pooling", "fp8_small", Op::pool, "quantiser", "pool 0, channel",
     [](Answered& a) {
       recompute_rows(a, [](IndexerInputs& i) { fill(i.ape, 0), fill(i.gate_scores, 0); });
     }},
    {"no_hadamard", "fp8_small", Op::pool, "quantiser", "pool 0, channel",
     [](Answered& a) { recompute_rows(a, [](IndexerInputs& i) { i.mode.hadamard = false; }); }},
    {"one_token_of_four_stale", "fp8_small", Op::pool, "quantiser", "pool 1, channel",
     [](Answered& a) { recompute_rows(a, [](IndexerInputs& i) { copy_row(i.keys, 6, 2); }); }},
    {"bf16_key_truncated", "glm53_bf16", Op::pool, "bound", "pool 0, channel",
     [](Answered& a) {
       IndexerInputs inputs = a.foreign.test_case.inputs;
       inputs.mode.pooled = inputs.mode.cache = DType::f32;
       const reference::Pooled pooled = reference::pool(inputs);
       auto out = output(a, "pooled").as<std::uint16_t>();
       for (std::size_t i = 0; i < out.size(); ++i) {
         const auto value = static_cast<float>(pooled.pooled.value[i]);
         std::uint32_t bits = 0;
         std::memcpy(&bits, &value, 4);
         out[i] = static_cast<std::uint16_t>(bits >> 16);
       }
     }},
    {"mean_pooling_unquantised", "glm53_small_f32", Op::pool, "bound",
     "sequence 0, pool 0, channel",
     [](Answered& a) {
       recompute_pooled(a, [](IndexerInputs& i) { fill(i.ape, 0), fill(i.gate_scores, 0); });
     }},
    {"pool_of_the_neighbour_sequence", "rightpad_batch_f32", Op::pool, "bound",
     "sequence 1, pool 3, channel 0:",
     [](Answered& a) {
       copy_row(output(a, "pooled"), first_pools(a.foreign.test_case.inputs)[1] + 3, 3);
     }},
    {"pools_counted_from_the_padding", "leftpad_batch_f32", Op::pool, "bound", "pool 0, channel 0:",
     [](Answered& a) {
       // Pools aligned to the padded position: of a sequence that starts at an odd place they hold
       // its tokens one late.
       Tensor& out = output(a, "pooled");
       IndexerInputs inputs = a.foreign.test_case.inputs;
       Tensor keys = inputs.keys.clone();
       for (std::int64_t row = 0; row + 1 < keys.dim(0); ++row) copy_row(keys, row, row + 1);
       inputs.keys = keys;
       const reference::Pooled pooled = reference::pool(inputs);
       for (std::int64_t i = 0; i < out.size(); ++i) {
         out.set(i, pooled.pooled.value[static_cast<std::size_t>(i)]);
       }
     }},
    {"last_pool_never_written", "fp8_small", Op::pool, "quantiser", "pool 10: no codes",
     [](Answered& a) {
       for (std::uint8_t& byte : pool_row(a, 10)) byte = 0xff;
       into_pages(a);
     }},
    {"slot_off_by_one", "fp8_small", Op::pool, "scale", "pool 0:",
     [](Answered& a) {
       into_pages(a, [](const ForeignCase& f, std::int64_t p) { return right_slot(f, p) + 1; });
     }},
    {"two_pools_in_one_slot", "fp8_small", Op::pool, "quantiser", "pool 8,",
     [](Answered& a) {
       into_pages(
           a, [](const ForeignCase& f, std::int64_t p) { return right_slot(f, p == 9 ? 8 : p); });
     }},
    {"stray_write_in_a_page", "fp8_small", Op::pool, "untouched", "page ",
     [](Answered& a) {
       into_pages(a);
       const std::int64_t own = right_slot(a.foreign, 0) / a.foreign.paging.states_per_page;
       Tensor& pages = output(a, "pages");
       const std::int64_t other = (own + 1) % a.foreign.paging.pages;
       pages.data()[other * pages.dim(1) + 77] = std::byte{0};
     }},
    {"planar_read_as_interleaved",
     "fp8_small",
     Op::pool,
     "quantiser",
     "pool 0, channel",
     [](Answered& a) { into_pages(a); },
     {.layout = "interleaved"}},
};

}  // namespace

std::span<const Corruption> pool_corruptions() { return table; }

}  // namespace indexpool::verify
