// Sampled rows of quantised queries.
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/measure/sample.hpp"

namespace indexpool::verify::timing {

std::vector<Check> check_query_rows(kernels::Target& target, const kernels::QuantizeQueryArgs& args,
                                    const SampleOptions& options) {
  const IndexerConfig& config = args.shape.config;
  const std::int64_t elements = config.index_n_heads * config.index_head_dim;
  const std::int64_t row_bytes = elements * info(args.shape.mode.storage).bytes;
  const auto rows = sampled(args.rows, row_bytes, options.samples, options.seed);
  IndexerInputs inputs;
  inputs.config = config;
  inputs.mode = args.shape.mode;
  inputs.queries = Tensor(args.shape.mode.storage,
                          {std::ssize(rows), config.index_n_heads, config.index_head_dim});
  QueryOutput output;
  std::byte* to = inputs.queries.data();
  for (const std::int64_t row : rows) {
    target.download(to, static_cast<const std::byte*>(args.queries) + row * row_bytes, row_bytes);
    to += row_bytes;
    const auto codes = downloaded(
        target, reinterpret_cast<const std::byte*>(args.codes) + row * elements, elements);
    const auto scales =
        downloaded(target, args.scales + row * config.index_n_heads, config.index_n_heads);
    output.codes.insert(output.codes.end(), codes.begin(), codes.end());
    output.scales.insert(output.scales.end(), scales.begin(), scales.end());
  }
  return query_value_checks(inputs, output);
}

}  // namespace indexpool::verify::timing
