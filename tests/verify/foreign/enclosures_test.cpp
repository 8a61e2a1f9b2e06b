// Logits and selections that come back alone are judged by enclosures. Whatever a correct kernel
// may have stored on the way, they hold its logits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/checks/checks.hpp"
#include "indexpool/verify/judging.hpp"
#include "indexpool/verify/random.hpp"
#include "indexpool/verify/random_problem.hpp"

#include "answers.hpp"

namespace indexpool::verify {
namespace {

struct Vectors {
  std::vector<double> codes, scales;
};

// One of the answers that the enclosure allows, by coin: the scale first, then each code.
Vectors admissible(const reference::Bounded& bounds, std::int64_t dim, const NumericMode& mode,
                   const Random& random) {
  Vectors vectors;
  const auto width = static_cast<std::size_t>(dim);
  for (std::size_t first = 0; first < bounds.value.size(); first += width) {
    const auto low = std::span(bounds.low).subspan(first, width);
    const auto high = std::span(bounds.high).subspan(first, width);
    const auto pick = [&](double a, double b, std::size_t c) {
      return random.coin(static_cast<std::int64_t>(first + c)) ? a : b;
    };
    if (!mode.quantised()) {
      for (std::size_t c = 0; c < width; ++c) vectors.codes.push_back(pick(low[c], high[c], c));
      continue;
    }
    const reference::Range scale = reference::scale_enclosure(low, high, mode);
    vectors.scales.push_back(static_cast<float>(pick(scale.low, scale.high, 0)));
    for (std::size_t c = 0; c < width; ++c) {
      const reference::Range code =
          reference::code_enclosure(low[c], high[c], vectors.scales.back(), mode);
      vectors.codes.push_back(pick(code.low, code.high, c));
    }
  }
  return vectors;
}

// The logits of such a kernel, and what it selects from them.
ForeignOutputs logits_of_a_correct_kernel(const IndexerInputs& inputs, std::uint64_t seed) {
  const std::int64_t dim = inputs.config.index_head_dim;
  const Vectors pools =
      admissible(reference::pool(inputs).rotated, dim, inputs.mode, Random(seed, 1));
  Operands operands;
  if (inputs.mode.quantised()) {
    const Vectors queries =
        admissible(reference::rotate_queries(inputs), dim, inputs.mode, Random(seed, 2));
    operands.queries = queries.codes;
    operands.query_scales = queries.scales;
  } else {
    operands.queries = reference::rotate_queries(inputs).value;
  }
  operands.pools.codes = pools.codes;
  operands.pools.scales = pools.scales;
  const LogitBounds exact = logit_bounds(inputs, operands, reference::f32_any_order());
  std::int64_t columns = 1;
  for (const auto& sequence : exact.sequences) columns = std::max(columns, sequence.shape[1]);
  Tensor logits(DType::f32, {inputs.rows(), columns});
  const std::int64_t width = inputs.config.selection_width();
  Tensor selection(DType::i32, {inputs.rows(), width});
  std::int64_t row = 0;
  for (const auto& query : query_rows(inputs)) {
    const auto& of = exact.sequences[static_cast<std::size_t>(query.request)];
    const std::int64_t visible =
        reference::visible_pools(query.position, inputs.config.index_kpool);
    std::vector<double> scores;
    for (std::int64_t p = 0; p < visible; ++p) {
      scores.push_back(of.value[static_cast<std::size_t>(query.position * of.shape[1] + p)]);
      logits.set(row * columns + p, scores.back());
    }
    const auto tokens = reference::expand(reference::select(scores, inputs.config.topk_pools()),
                                          query.position, query.first_key, inputs.config);
    std::ranges::copy(tokens,
                      selection.as<std::int32_t>().begin() + static_cast<long>(row * width));
    ++row;
  }
  return {"logits alone", {{"logits", logits}, {"selection", selection}}};
}

RC_GTEST_PROP(Enclosures, HoldTheLogitsOfAnyCorrectKernel,
              (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  Options options;
  options.seed = problem.seed;
  const ForeignCase foreign = prepare_foreign(make_case(problem), options, about_ties(problem));
  const ForeignOutputs both = logits_of_a_correct_kernel(foreign.test_case.inputs, seed);
  const ForeignOutputs selection{"selection alone", {{"selection", both.tensors.at("selection")}}};
  for (const ForeignOutputs& outputs : {both, selection}) {
    for (const Record& record : check_foreign(foreign, outputs, {}, options)) {
      RC_LOG() << outputs.where << ", " << record.op << ": " << record.verdict.reason << "\n";
      RC_ASSERT(worst(record.verdict.status, Status::untrusted) != Status::failed);
    }
  }
}

}  // namespace
}  // namespace indexpool::verify
