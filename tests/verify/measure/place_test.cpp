// Random memory: the same bytes everywhere, numbers of ordinary size, room for what a launch needs.
#include "indexpool/verify/measure/place.hpp"

#include <cmath>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/measure/sample.hpp"

namespace indexpool::verify::timing {
namespace {

using kernels::RandomFill;

RC_GTEST_PROP(RandomMemory, ATargetsBytesAreTheHostsWhereverTheFillBegins, ()) {
  RandomFill fill;
  fill.seed = *rc::gen::arbitrary<std::uint64_t>();
  fill.words = {*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::arbitrary<std::uint32_t>()};
  fill.other = {*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::arbitrary<std::uint32_t>()};
  fill.period = *rc::gen::inRange(0, 9);
  fill.other_from = *rc::gen::inRange(0, 9);
  fill.first_word = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
  const auto words = *rc::gen::inRange<std::int64_t>(1, 100);
  const auto target = kernels::make_simt_target();
  const TargetBuffer buffer(*target, "words", words * 4);
  target->fill_random(buffer.data(), words * 4, fill);
  const auto found = downloaded(*target, buffer.as<std::uint32_t>(), words);
  for (std::int64_t i = 0; i < words; ++i) {
    const std::int64_t index = fill.first_word + i;
    const std::uint32_t word = found[static_cast<std::size_t>(i)];
    RC_ASSERT(word == kernels::random_word(fill, index));
    const bool other = fill.period > 0 && index % fill.period >= fill.other_from;
    const auto& pattern = other ? fill.other : fill.words;
    RC_ASSERT((word & ~(pattern.keep | pattern.set)) == 0u);
    RC_ASSERT((word & pattern.set) == pattern.set);
  }
}

TEST(RandomMemory, PiecesOfALongFillContinueEachOther) {
  constexpr std::int64_t words = (std::int64_t{1} << 20) + 5;  // more than one upload
  const RandomFill fill{7, {}};
  const auto target = kernels::make_simt_target();
  const TargetBuffer buffer(*target, "words", words * 4);
  target->fill_random(buffer.data(), words * 4, fill);
  const auto tail = downloaded(*target, buffer.as<std::uint32_t>() + words - 8, 8);
  for (std::int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(tail[static_cast<std::size_t>(i)], kernels::random_word(fill, words - 8 + i));
}

TEST(RandomMemory, AGpusBytesAreTheHosts) {
  std::unique_ptr<kernels::Target> target;
  try {
    target = kernels::make_cuda_target();
  } catch (const EnvironmentError& error) {
    GTEST_SKIP() << error.what();
  }
  constexpr std::int64_t words = 3'000'001;  // no multiple of the grid
  const RandomFill fill{9, {0x81ff81ffu, 0x3e003e00u}, {0x01800000u, 0x3e000000u}, 2112, 2048, 77};
  const TargetBuffer buffer(*target, "words", words * 4);
  target->fill_random(buffer.data(), words * 4, fill);
  const auto found = downloaded(*target, buffer.as<std::uint32_t>(), words);
  std::vector<std::uint32_t> expected(static_cast<std::size_t>(words));
  kernels::fill_on_host(expected.data(), words, fill);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(target->check_guards(), "");
}

TEST(RandomMemory, EveryPatternMakesFiniteNumbersOfBothSignsAndNoTwoWordsAlike) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::e4m3, DType::i8}) {
    const RandomFill fill{3, number_pattern(dtype)};
    std::vector<std::uint32_t> words(256);
    kernels::fill_on_host(words.data(), std::ssize(words), fill);
    const auto* const bytes = reinterpret_cast<const std::byte*>(words.data());
    int negative = 0;
    const std::int64_t count = std::int64_t{1024} / static_cast<std::int64_t>(info(dtype).bytes);
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = load_element(dtype, bytes, i);
      ASSERT_TRUE(std::isfinite(value)) << info(dtype).name;
      const double least = dtype == DType::i8 ? 1 : 0.125, most = dtype == DType::i8 ? 127 : 2;
      ASSERT_GE(std::abs(value), least) << info(dtype).name;
      ASSERT_LE(std::abs(value), most) << info(dtype).name;
      negative += value < 0 ? 1 : 0;
    }
    EXPECT_GT(negative, count / 3) << info(dtype).name;
    EXPECT_LT(negative, 2 * count / 3) << info(dtype).name;
    EXPECT_NE(words[0], words[1]);
  }
}

TEST(Arguments, PagesOfABatchAreAPermutation) {
  const Geometry geometry;
  for (const std::int64_t tokens : {4, 256, 1024, 4100, 65536}) {
    for (const std::int64_t batch : {1, 3, 16}) {
      const HostArguments host =
          host_arguments({"logits", "logits_mma", "vllm_fp8", tokens, batch, 1}, geometry);
      std::vector<char> seen(static_cast<std::size_t>(host.pages), 0);
      ASSERT_EQ(std::ssize(host.block_table), host.pages);
      for (const std::int32_t page : host.block_table) {
        ASSERT_EQ(seen.at(static_cast<std::size_t>(page)), 0) << tokens << " x " << batch;
        seen[static_cast<std::size_t>(page)] = 1;
      }
    }
  }
}

TEST(Arguments, OneRequestInIndexKpoolClosesAPool) {
  const HostArguments host =
      host_arguments({"append", "append", "vllm_fp8", 1030, 9, 1}, Geometry());
  EXPECT_EQ(host.append.pools_closed, 3);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(host.append.slots[i] >= 0, i % 4 == 0) << i;
}

}  // namespace
}  // namespace indexpool::verify::timing
