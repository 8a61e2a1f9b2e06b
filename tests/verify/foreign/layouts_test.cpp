// Outputs in every layout and form are the same outputs; names that nobody knows are refused.
#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/reference/indexer.hpp"
#include "indexpool/verify/random_problem.hpp"

#include "../../model/expect_error.hpp"
#include "answers.hpp"

namespace indexpool::verify {
namespace {

// Pools as the reference stores them: a row of codes, then the scale.
Tensor reference_rows(const IndexerInputs& inputs) {
  const reference::Pooled pooled = reference::pool(inputs);
  const std::int64_t dim = inputs.config.index_head_dim, code = info(inputs.mode.cache).bytes;
  const std::int64_t width = dim * code + (inputs.mode.quantised() ? 4 : 0);
  Tensor rows(DType::u8, {pooled.rotated.shape[0], width});
  for (std::int64_t p = 0; p < rows.dim(0); ++p) {
    std::byte* row = rows.data() + p * width;
    const auto values =
        std::span(pooled.rotated.value)
            .subspan(static_cast<std::size_t>(p * dim), static_cast<std::size_t>(dim));
    if (!inputs.mode.quantised()) {
      for (std::int64_t c = 0; c < dim; ++c) {
        store_element(inputs.mode.cache, row, c, values[static_cast<std::size_t>(c)]);
      }
      continue;
    }
    const reference::Quantised quantised = reference::quantise(values, inputs.mode);
    for (std::int64_t c = 0; c < dim; ++c) {
      store_element(inputs.mode.cache, row, c, quantised.codes[static_cast<std::size_t>(c)]);
    }
    const auto scale = static_cast<float>(quantised.scale);
    std::memcpy(row + dim * code, &scale, 4);
  }
  return rows;
}

// Where a layout puts a pool, from its description: page, and byte of codes and scale in it.
struct Place {
  std::int64_t page, codes, scale;
};
using Locate = Place (*)(const ForeignCase& foreign, std::int64_t sequence, std::int64_t pool,
                         std::int64_t code_bytes, std::int64_t scale_bytes);

std::int64_t entry(const Tensor& table, std::int64_t row, std::int64_t column) {
  return static_cast<std::int64_t>(table.at(row * table.dim(1) + column));
}
Place planar(const ForeignCase& f, std::int64_t s, std::int64_t p, std::int64_t codes,
             std::int64_t scale) {
  const std::int64_t states = f.paging.states_per_page, state = p % states;
  return {entry(f.paging.block_table, s, p / states), state * codes,
          states * codes + state * scale};
}
Place interleaved(const ForeignCase& f, std::int64_t s, std::int64_t p, std::int64_t codes,
                  std::int64_t scale) {
  const std::int64_t states = f.paging.states_per_page, row = p % states * (codes + scale);
  return {entry(f.paging.block_table, s, p / states), row, row + codes};
}
// page_table[(p // 64) * kpool] * 64 + p % 64, planar pages of 64.
Place token_pages(const ForeignCase& f, std::int64_t s, std::int64_t p, std::int64_t codes,
                  std::int64_t scale) {
  const std::int64_t kpool = f.test_case.inputs.config.index_kpool;
  return {entry(f.paging.token_page_table, s, p / 64 * kpool), p % 64 * codes,
          64 * codes + p % 64 * scale};
}

ForeignOutputs in_pages(const ForeignCase& foreign, const Tensor& rows, Locate locate,
                        std::int64_t pages, std::int64_t states) {
  const IndexerInputs& inputs = foreign.test_case.inputs;
  const std::int64_t scale = inputs.mode.quantised() ? 4 : 0, codes = rows.dim(1) - scale;
  Tensor out(DType::u8, {pages, states * rows.dim(1)});
  std::memset(out.data(), 0xff, static_cast<std::size_t>(out.bytes().value));
  std::int64_t row = 0;
  for (std::size_t s = 0; s < inputs.sequences.size(); ++s) {
    for (std::int64_t p = 0; p < inputs.sequences[s].length / inputs.config.index_kpool; ++p) {
      const Place at = locate(foreign, static_cast<std::int64_t>(s), p, codes, scale);
      std::byte* page = out.data() + at.page * out.dim(1);
      const std::byte* from = rows.data() + row++ * rows.dim(1);
      std::memcpy(page + at.codes, from, static_cast<std::size_t>(codes));
      if (scale > 0) std::memcpy(page + at.scale, from + codes, 4);
    }
  }
  return {"pages", {{"pages", out}}};
}

ForeignOutputs apart(const ForeignCase& foreign, const Tensor& rows) {
  const NumericMode& mode = foreign.test_case.inputs.mode;
  const std::int64_t pools = rows.dim(0), dim = foreign.test_case.inputs.config.index_head_dim;
  Tensor codes(mode.cache, {pools, dim}), scales(DType::f32, {pools});
  const auto bytes =
      static_cast<std::size_t>(codes.bytes().value / std::max<std::int64_t>(pools, 1));
  for (std::int64_t p = 0; p < pools; ++p) {
    const std::byte* row = rows.data() + p * rows.dim(1);
    std::memcpy(codes.data() + p * static_cast<std::int64_t>(bytes), row, bytes);
    if (mode.quantised()) std::memcpy(scales.data() + p * 4, row + bytes, 4);
  }
  ForeignOutputs outputs{"apart", {{"pool_codes", codes}}};
  if (mode.quantised()) outputs.tensors["pool_scales"] = scales;
  return outputs;
}

struct Layout {
  const char* name;
  ForeignOutputs (*store)(const ForeignCase& foreign, const Tensor& rows);
};
constexpr Layout layouts[] = {
    {"rows",
     [](const ForeignCase&, const Tensor& rows) {
       return ForeignOutputs{"rows", {{"pool_rows", rows}}};
     }},
    {"split", apart},
    {"planar",
     [](const ForeignCase& f, const Tensor& rows) {
       return in_pages(f, rows, planar, f.paging.pages, f.paging.states_per_page);
     }},
    {"interleaved",
     [](const ForeignCase& f, const Tensor& rows) {
       return in_pages(f, rows, interleaved, f.paging.pages, f.paging.states_per_page);
     }},
    {"token_pages", [](const ForeignCase& f, const Tensor& rows) {
       return in_pages(f, rows, token_pages, f.paging.token_pages, 64);
     }}};

ForeignCase prepared(const Problem& problem) {
  Options options;
  options.schedule = problem.schedule;
  options.states_per_page = problem.states_per_page;
  options.seed = problem.seed;
  return prepare_foreign(make_case(problem), options, about_ties(problem));
}

// No correct kernel is called wrong in any layout, whatever the problem.
RC_GTEST_PROP(Layouts, OfTheReferencesPoolsAreNeverRefused,
              (std::uint64_t seed, std::uint16_t number)) {
  const Problem problem = random_problem(seed, number);
  const ForeignCase foreign = prepared(problem);
  const Tensor rows = reference_rows(foreign.test_case.inputs);
  for (const Layout& layout : layouts) {
    ForeignContract contract;
    contract.layout = layout.name;
    contract.operations = {"pool"};
    const auto records = check_foreign(foreign, layout.store(foreign, rows), contract, {});
    RC_LOG() << layout.name << ": " << records[0].verdict.reason;
    RC_ASSERT(worst(records[0].verdict.status, Status::untrusted) != Status::failed);
  }
}

Problem long_problem() {
  Problem problem;
  problem.lengths = {700, 3, 0, 530};
  problem.indexer = {2, 32, 64, 4, true};
  problem.states_per_page = 32;
  return problem;
}

// At 175 pools the third group of token pages is in use.
TEST(Layouts, AllPassOverSeveralPages) {
  const ForeignCase foreign = prepared(long_problem());
  const Tensor rows = reference_rows(foreign.test_case.inputs);
  for (const Layout& layout : layouts) {
    ForeignContract contract;
    contract.layout = layout.name;
    const auto records = check_foreign(foreign, layout.store(foreign, rows), contract, {});
    EXPECT_EQ(to_string(records[0].verdict.status), "passed")
        << layout.name << ": " << records[0].verdict.reason;
  }
}

// Read in a layout of the same shape that it isn't in, it is refused.
TEST(Layouts, AreNotInterchangeable) {
  Problem problem = long_problem();
  problem.states_per_page = 64;
  const ForeignCase foreign = prepared(problem);
  const Tensor rows = reference_rows(foreign.test_case.inputs);
  for (const auto& [stored, read] : {std::pair{2, 3}, {3, 2}}) {
    ForeignContract contract;
    contract.layout = layouts[read].name;
    const auto records = check_foreign(foreign, layouts[stored].store(foreign, rows), contract, {});
    EXPECT_EQ(to_string(records[0].verdict.status), "failed") << layouts[stored].name;
  }
}

// A sequence's tokens in pages of 64: pool 64 is the first of token page 4 of the sequence.
TEST(Layouts, TokenPagesUseOnePageInFour) {
  const ForeignCase foreign = prepared(long_problem());
  EXPECT_EQ(token_pages(foreign, 0, 63, 32, 4).page, entry(foreign.paging.token_page_table, 0, 0));
  EXPECT_EQ(token_pages(foreign, 0, 64, 32, 4).page, entry(foreign.paging.token_page_table, 0, 4));
  EXPECT_EQ(foreign.paging.token_page_table.dim(1), 11 + 2);  // 700 / 64, and two past the end
}

TEST(Contract, NamesTheNearOnesOfAnUnknownName) {
  const Answered golden = answered("fp8_small");
  const auto refused = [&](const ForeignContract& contract, std::string_view text) {
    expect_parts(
        config_error_of([&] { check_foreign(golden.foreign, golden.outputs, contract, {}); }),
        {std::string(text)});
  };
  refused({.layout = "token_page"}, "unknown layout 'token_page': did you mean token_pages?");
  refused({.tail = "compact"}, "unknown tail 'compact': did you mean compacted?");
  refused({.order = "sideways"}, "unknown order 'sideways' (known: any, ascending)");
  refused({.accumulation = "mma_fp8"}, "unknown accumulation 'mma_fp8'");
  refused({.operations = {"top_k"}}, "unknown operation 'top_k': did you mean topk?");
  refused({.mode = "vllm_f8"}, "unknown numeric mode \"vllm_f8\"; did you mean \"vllm_fp8\"?");
  refused({.mode = "hf_f32"}, "mode hf_f32 takes inputs in f32, but the case holds bf16");
}

TEST(Outputs, AreRefusedByNameDtypeAndShape) {
  const Answered golden = answered("fp8_small");
  const auto refused = [&](const char* name, const Tensor& tensor, std::string_view text) {
    ForeignOutputs outputs{"out.safetensors", {{name, tensor}}};
    expect_parts(config_error_of([&] { check_foreign(golden.foreign, outputs, {}, {}); }),
                 {std::string(text)});
  };
  refused("logit", Tensor(DType::f32, {45, 11}),
          "out.safetensors: unknown tensor 'logit': did you mean logits?");
  refused(
      "logits", Tensor(DType::bf16, {45, 11}),
      R"(out.safetensors: tensor "logits": found bf16 [45, 11], expected f32 [45, 11 or more])");
  refused("logits", Tensor(DType::f32, {45, 10}), "found f32 [45, 10]");
  refused("selection", Tensor(DType::i32, {44, 19}),
          R"(tensor "selection": found i32 [44, 19], expected i32 or i64 [45, 19 or more])");
  refused("pool_rows", Tensor(DType::u8, {11, 128}), "expected u8 [11, 132]");
  refused("pages", Tensor(DType::u8, {3, 132 * 64}), "expected u8 [4, 8448]");
}

// A kernel that asserts less, or answers in i64 and with wider rows, is judged all the same.
TEST(Outputs, MayBeWiderAndOf64Bits) {
  Answered golden = answered("fp8_small");
  const Tensor narrow = golden.outputs.tensors.at("selection");
  Tensor wide(DType::i64, {45, 64});
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    wide.as<std::int64_t>()[static_cast<std::size_t>(i)] =
        i % 64 < 19 ? narrow.as<std::int32_t>()[static_cast<std::size_t>(i / 64 * 19 + i % 64)]
                    : -1;
  }
  golden.outputs.tensors["selection"] = wide;
  const auto records = check_foreign(golden.foreign, golden.outputs, {.tail = "compacted"}, {});
  EXPECT_EQ(to_string(record_of(records, Op::topk)->verdict.status), "passed");

  wide.as<std::int64_t>()[44 * 64 + 63] = (std::int64_t{1} << 32) + 3;  // 3 in 32 bits
  const auto wrong = check_foreign(golden.foreign, golden.outputs, {}, {});
  EXPECT_EQ(to_string(record_of(wrong, Op::topk)->verdict.status), "failed");
}

TEST(Outputs, ThatAreMissingAreSkippedWithTheReason) {
  const Answered golden = answered("fp8_small");
  const auto records = check_foreign(golden.foreign, {"nothing.safetensors", {}}, {}, {});
  ASSERT_EQ(records.size(), 4u);
  for (const Record& record : records) {
    EXPECT_EQ(to_string(record.verdict.status), "skipped");
    EXPECT_EQ(record.verdict.reason.find("nothing.safetensors: "), 0u) << record.verdict.reason;
  }
  EXPECT_EQ(to_string(overall_status(records)), "skipped");
}

}  // namespace
}  // namespace indexpool::verify
