#include <algorithm>
#include <set>

#include "indexpool/reference/indexer.hpp"

#include "corruptions.hpp"

namespace indexpool::verify {
namespace {

std::span<std::int32_t> row_of(Answered& answers, std::int64_t row) {
  Tensor& selection = output(answers, "selection");
  const auto width = static_cast<std::size_t>(selection.dim(1));
  return selection.as<std::int32_t>().subspan(static_cast<std::size_t>(row) * width, width);
}

void replace(std::span<std::int32_t> row, std::int32_t token, std::int32_t by) {
  const auto found = std::ranges::find(row, token);
  if (found == row.end()) throw std::logic_error("the row has no such token");
  *found = by;
}

// Pools of a row of one sequence without padding, kpool 4.
std::set<std::int32_t> pools_of(std::span<const std::int32_t> row, std::int32_t visible) {
  std::set<std::int32_t> pools;
  for (const std::int32_t token : row) {
    if (token != -1 && token / 4 < visible) pools.insert(token / 4);
  }
  return pools;
}

void swap_pool(std::span<std::int32_t> row, std::int32_t out, std::int32_t in) {
  for (std::int32_t j = 0; j < 4; ++j) replace(row, 4 * out + j, 4 * in + j);
}

// Takes the visible pool with the smallest logit that was left out, instead of the largest taken.
void take_the_worst(Answered& answers, std::int64_t token) {
  const auto row = row_of(answers, token);
  const Tensor& logits = output(answers, "logits");
  const auto visible = static_cast<std::int32_t>((token + 1) / 4);
  const auto taken = pools_of(row, visible);
  const auto score = [&](std::int32_t p) { return logits.at(token * logits.dim(1) + p); };
  std::int32_t best = *taken.begin(), worst = -1;
  for (std::int32_t p = 0; p < visible; ++p) {
    if (taken.contains(p)) {
      if (score(p) > score(best)) best = p;
    } else if (worst < 0 || score(p) < score(worst)) {
      worst = p;
    }
  }
  swap_pool(row, best, worst);
}

const Corruption table[] = {
    {"one_pool_swapped", "fp8_small", Op::topk, "selection", "sequence 0, token 44: pool",
     [](Answered& a) { take_the_worst(a, 44); }},
    {"one_pool_swapped_unquantised", "prefill_f32", Op::topk, "selection",
     "sequence 0, token 511: pool", [](Answered& a) { take_the_worst(a, 511); }},
    {"one_pool_swapped_no_logits", "prefill_f32", Op::topk, "selection",
     "sequence 0, token 511: pool",
     [](Answered& a) {
       take_the_worst(a, 511);
       a.outputs.tensors.erase("logits");
     }},
    {"lowest_instead_of_highest", "glm53_small_f32", Op::topk, "selection",
     "sequence 0, token 36: pool",
     [](Answered& a) {
       for (int i = 0; i < 4; ++i) take_the_worst(a, 36);
     }},
    {"causal_off_by_one", "fp8_small", Op::topk, "structure",
     "sequence 0, token 41: token 42 of pool 10 lies after the query at 41",
     [](Answered& a) {  // admits the pool in progress, as in visible iff p <= t / 4
       const auto row = row_of(a, 41);
       const std::int32_t out = *pools_of(row, 10).begin();
       for (const std::int32_t tail : {40, 41}) replace(row, tail, -1);
       swap_pool(row, out, 10);
     }},
    {"newest_pool_not_a_candidate", "glm53_small_f32", Op::topk, "structure",
     "sequence 0, token 11: 2 pools selected, expected 3; pool 2 is the first left out",
     [](Answered& a) {
       for (std::int32_t t = 8; t < 12; ++t) replace(row_of(a, 11), t, -1);
     }},
    {"duplicated_token", "fp8_small", Op::topk, "structure",
     "sequence 0, token 44: token 44 of pool 11 is selected twice",
     [](Answered& a) {
       const auto row = row_of(a, 44);
       *std::ranges::find(row, -1) = 44;
     }},
    {"unused_is_zero", "fp8_small", Op::topk, "structure", "sequence 0, token 0: token 0 of pool 0",
     [](Answered& a) {
       for (std::int32_t& token : output(a, "selection").as<std::int32_t>()) {
         if (token == -1) token = 0;
       }
     }},
    {"uninitialised_buffer", "short_context_f32", Op::topk, "structure",
     "sequence 0, token 0: token 2143289344 of pool",
     [](Answered& a) {  // vllm-project/vllm#49896: 0x7fc00000, bits of a NaN
       for (std::int32_t& token : output(a, "selection").as<std::int32_t>()) {
         if (token == -1) token = 0x7fc00000;
       }
     }},
    {"no_tail", "fp8_small", Op::topk, "structure",
     "sequence 0, token 42: 0 tokens of the tail (pool 10) selected, expected 3",
     [](Answered& a) {
       for (const std::int32_t tail : {40, 41, 42}) replace(row_of(a, 42), tail, -1);
     }},
    {"tail_shifted", "fp8_small", Op::topk, "structure",
     "sequence 0, token 42: pool 9: 1 of its 4 tokens selected",
     [](Answered& a) {  // the three tokens before the query instead of those up to it
       const auto row = row_of(a, 42);
       const auto taken = pools_of(row, 10);
       if (taken.contains(9)) {
         std::int32_t free = 0;
         while (taken.contains(free)) ++free;
         swap_pool(row, 9, free);
       }
       replace(row, 42, 39);
     }},
    {"tail_forced_where_not_wanted", "notail_f32", Op::topk, "structure",
     "sequence 0, token 8: 1 tokens of the tail (pool 2) selected, expected 0",
     [](Answered& a) { *std::ranges::find(row_of(a, 8), -1) = 8; }},
    {"own_token_always_selected", "fp8_small", Op::topk, "structure",
     "sequence 0, token 43: pool 10: 1 of its 4 tokens selected",
     [](Answered& a) {  // the tail is empty when the query closes a pool
       const auto row = row_of(a, 43);
       const auto taken = pools_of(row, 11);
       if (taken.contains(10)) {
         std::int32_t free = 0;
         while (taken.contains(free)) ++free;
         swap_pool(row, 10, free);
       }
       *std::ranges::find(row, -1) = 43;
     }},
    {"truncated_topk", "fp8_small", Op::topk, "structure",
     "sequence 0, token 40: 3 pools selected, expected 4; pool",
     [](Answered& a) {
       const auto row = row_of(a, 40);
       const std::int32_t out = *pools_of(row, 10).begin();
       for (std::int32_t j = 0; j < 4; ++j) replace(row, 4 * out + j, -1);
     }},
    {"half_a_pool", "fp8_small", Op::topk, "structure", "sequence 0, token 40: pool",
     [](Answered& a) {
       const auto row = row_of(a, 40);
       const std::int32_t out = *pools_of(row, 10).begin();
       for (std::int32_t j = 2; j < 4; ++j) replace(row, 4 * out + j, -1);
     }},
    {"padding_not_honoured", "leftpad_batch_f32", Op::topk, "structure",
     "lies before the first token",
     [](Answered& a) {
       const IndexerInputs& inputs = a.foreign.test_case.inputs;
       for (const Sequence& sequence : inputs.sequences) {
         for (std::int64_t i = 0; i < sequence.length; ++i) {
           for (std::int32_t& token : row_of(a, sequence.first_row + i)) {
             if (token != -1) token -= static_cast<std::int32_t>(sequence.first_key);
           }
         }
       }
     }},
    {"two_rows_exchanged", "fp8_small", Op::topk, "structure",
     "sequence 0, token 20: token 21 of pool 5",
     [](Answered& a) { exchange_rows(output(a, "selection"), 20, 21); }},
    {"rows_shifted", "fp8_small", Op::topk, "structure",
     "sequence 0, token 1: 1 tokens of the tail",
     [](Answered& a) {
       for (std::int64_t row = 44; row > 0; --row) copy_row(output(a, "selection"), row, row - 1);
     }},
    {"rows_of_the_neighbour_sequence", "rightpad_batch_f32", Op::topk, "selection",
     "sequence 1, token",
     [](Answered& a) {
       const IndexerInputs& inputs = a.foreign.test_case.inputs;
       const Sequence &first = inputs.sequences[0], &second = inputs.sequences[1];
       for (std::int64_t i = 0; i < std::min(first.length, second.length); ++i) {
         copy_row(output(a, "selection"), second.first_row + i, first.first_row + i);
       }
     }},
    {"tail_before_the_history",
     "fp8_small",
     Op::topk,
     "structure",
     "sequence 0, token 44, column",
     [](Answered& a) {
       const auto row = row_of(a, 44);
       const auto tail = std::ranges::find(row, 44);
       std::rotate(row.begin(), tail, tail + 1);
     },
     {.tail = "compacted"}},
    {"tail_compacted_where_fixed_is_claimed",
     "fp8_small",
     Op::topk,
     "structure",
     "sequence 0, token 0, column 0: token 0 of pool 0",
     [](Answered&) {},
     {.tail = "fixed"}},
    {"unordered_where_ascending_is_claimed",
     "fp8_small",
     Op::topk,
     "structure",
     "sequence 0, token 8, column 0: token 4 of pool 1, expected token 0 of pool 0",
     [](Answered&) {},
     {.order = "ascending"}},
    {"higher_pool_wins_a_tie",
     "glm53_small_f32",
     Op::topk,
     "tie_rule",
     "sequence 0, token 35: 4 of 9 visible pools; token 20 of pool 5 selected where the rule says "
     "token 0 of pool 0",
     [](Answered& a) {
       const auto logits = output(a, "logits").as<float>().subspan(35 * 9, 9);
       std::ranges::fill(logits, 1.0f);
       const auto row = row_of(a, 35);
       for (std::int32_t c = 0; c < 16; ++c) row[static_cast<std::size_t>(c)] = 20 + c;
     },
     {.deterministic = true}},
};

}  // namespace

std::span<const Corruption> selection_corruptions() { return table; }

}  // namespace indexpool::verify
