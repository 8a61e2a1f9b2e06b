// Logits inputs as plain numbers, the kernels run over them on the executor, and the same logits by
// plain loops.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"

namespace indexpool::kernels {

// `integers`: every number is a small integer or a power of two, so that any order of summation is
// exact. `normals`: N(0, 1) rounded to the cache's dtype, scales and head weights at random.
enum class LogitsFill { integers, normals };

struct LogitsRequest {
  std::int64_t first_position = 0, rows = 1;
};

struct LogitsInputs {
  Shape shape;
  std::int64_t states_per_page = 64;
  std::int64_t logits_stride = 0;
  std::vector<QueryRow> rows;
  std::vector<float> queries;       // [N, H, D]
  std::vector<float> query_scales;  // [N, H]
  std::vector<float> head_weights;  // [N, H]
  float logit_scale = 1;
  std::vector<std::vector<float>> pools;        // by request: [P, D]
  std::vector<std::vector<float>> pool_scales;  // by request: [P]
  std::vector<std::int32_t> block_table;        // unused entries alternate -1 and 2^31 - 1
  std::int64_t block_table_width = 0, pages = 0;

  std::int64_t heads() const { return shape.config.index_n_heads; }
  std::int64_t head_dim() const { return shape.config.index_head_dim; }
  std::int64_t visible(std::int64_t row) const {
    return (rows[static_cast<std::size_t>(row)].position + 1) / shape.config.index_kpool;
  }
};

Shape logits_shape(const std::string& mode, std::int64_t heads, std::int64_t head_dim,
                   std::int64_t index_kpool);
LogitsInputs random_logits_inputs(const Shape& shape, const std::vector<LogitsRequest>& requests,
                                  std::int64_t states_per_page, LogitsFill fill,
                                  std::uint64_t seed);

// A logit by plain loops in binary64, and how far a correct kernel may be from it.
struct HostLogit {
  double value = 0, bound = 0;
};
HostLogit host_logit(const LogitsInputs& inputs, std::int64_t row, std::int64_t pool,
                     double dot_error_per_product);
// Largest error of q . k over sum |q k|, by how it is accumulated: see the definition.
double dot_error(Accumulation accumulation, std::int64_t head_dim);

// Element as stored, appended to `bytes`.
void append_element(DType dtype, float value, std::vector<std::byte>& bytes);

inline constexpr std::uint32_t untouched_logit = 0x7f7f7f7f;

struct LogitsRun {
  std::vector<float> logits;  // [N, logits_stride], untouched_logit where nothing was written
  Traffic declared, counted;
  Work work;
};
// Throws when guards are damaged.
LogitsRun run_logits(std::string_view kernel, const LogitsInputs& inputs,
                     sim::simt::Options options = {});

}  // namespace indexpool::kernels
