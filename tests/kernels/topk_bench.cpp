#include "topk_bench.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>

namespace indexpool::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

using Bits = std::mt19937_64;
float normal(Bits& bits) { return std::normal_distribution<float>()(bits); }
bool one_in(Bits& bits, unsigned n) { return bits() % n == 0; }

struct Fill {
  const char* name;
  std::function<float(Bits&, std::int64_t pool, std::int64_t pools)> value;
};
const std::vector<Fill>& fills() {
  static const std::vector<Fill> rows = {
      {"normal", [](Bits& b, std::int64_t, std::int64_t) { return normal(b); }},
      // One plateau: only the tie rule decides.
      {"all_equal", [](Bits&, std::int64_t, std::int64_t) { return 1.25f; }},
      {"all_zero", [](Bits&, std::int64_t, std::int64_t) { return 0.0f; }},
      {"two_values",
       [](Bits& b, std::int64_t, std::int64_t) { return one_in(b, 2) ? 1.0f : -1.0f; }},
      // What relu leaves: fewer positive values than places, the rest exactly zero.
      {"relu_plateau",
       [](Bits& b, std::int64_t, std::int64_t) { return std::max(0.0f, normal(b) - 1.9f); }},
      {"signed_zeros",
       [](Bits& b, std::int64_t, std::int64_t) { return one_in(b, 2) ? 0.0f : -0.0f; }},
      // Coarse keys collapse: the digits that differ are the last ones.
      {"narrow_range",
       [](Bits&, std::int64_t p, std::int64_t) {
         return 100 + 1e-3f * static_cast<float>(p * 7919 % 1000);
       }},
      {"last_bit",
       [](Bits& b, std::int64_t, std::int64_t) {
         return std::bit_cast<float>(0x42c80000u | static_cast<std::uint32_t>(b() & 3u));
       }},
      {"rising", [](Bits&, std::int64_t p, std::int64_t) { return static_cast<float>(p); }},
      {"falling", [](Bits&, std::int64_t p, std::int64_t n) { return static_cast<float>(n - p); }},
      {"sawtooth", [](Bits&, std::int64_t p, std::int64_t) { return static_cast<float>(p % 64); }},
      {"minus_infinity",
       [](Bits& b, std::int64_t, std::int64_t) { return one_in(b, 2) ? -infinity : normal(b); }},
      {"infinities",
       [](Bits& b, std::int64_t, std::int64_t) {
         return one_in(b, 3) ? infinity : one_in(b, 2) ? -infinity : 0.0f;
       }},
      {"some_nan",
       [](Bits& b, std::int64_t, std::int64_t) { return one_in(b, 8) ? nan : normal(b); }},
      {"mostly_nan",
       [](Bits& b, std::int64_t, std::int64_t) { return one_in(b, 16) ? normal(b) : nan; }},
      {"all_nan", [](Bits& b, std::int64_t, std::int64_t) { return one_in(b, 2) ? nan : -nan; }},
      {"subnormal",
       [](Bits& b, std::int64_t, std::int64_t) {
         return std::bit_cast<float>(static_cast<std::uint32_t>(b() & 0x800000ffu));
       }},
      // Any bits at all: every exponent, NaN with every payload and sign.
      {"any_bits",
       [](Bits& b, std::int64_t, std::int64_t) {
         return std::bit_cast<float>(static_cast<std::uint32_t>(b()));
       }},
      {"negative", [](Bits& b, std::int64_t, std::int64_t) { return -std::abs(normal(b)); }},
      {"one_needle",
       [](Bits&, std::int64_t p, std::int64_t n) { return p == n - 1 ? 1.0f : 0.0f; }},
  };
  return rows;
}

}  // namespace

std::vector<std::string> topk_fill_names() {
  std::vector<std::string> names;
  for (const Fill& fill : fills()) names.emplace_back(fill.name);
  return names;
}

std::vector<float> topk_fill(const std::string& name, std::int64_t pools, std::uint64_t seed) {
  const auto fill =
      std::find_if(fills().begin(), fills().end(), [&](const Fill& f) { return f.name == name; });
  Bits bits(seed);
  std::vector<float> logits;
  for (std::int64_t p = 0; p < pools; ++p) logits.push_back(fill->value(bits, p, pools));
  return logits;
}

IndexerConfig topk_config(std::int64_t topk_pools, std::int64_t index_kpool, bool forced_tail) {
  IndexerConfig config;
  config.index_kpool = index_kpool;
  config.index_topk = topk_pools * index_kpool;
  config.index_kpool_always_select_tail = forced_tail;
  return config;
}

TopkRow topk_row(const IndexerConfig& config, std::vector<float> logits, std::int64_t tail_tokens,
                 std::int64_t first_key) {
  TopkRow row;
  row.query.position = std::ssize(logits) * config.index_kpool + tail_tokens - 1;
  row.query.first_key = first_key;
  row.logits = std::move(logits);
  return row;
}

std::vector<std::int32_t> host_selection(const IndexerConfig& config, const TopkRow& row) {
  std::vector<std::int64_t> pools(row.logits.size());
  std::iota(pools.begin(), pools.end(), 0);
  const auto logit = [&](std::int64_t p) { return row.logits[static_cast<std::size_t>(p)]; };
  std::erase_if(pools, [&](std::int64_t p) { return std::isnan(logit(p)); });
  std::stable_sort(pools.begin(), pools.end(),
                   [&](std::int64_t a, std::int64_t b) { return logit(a) > logit(b); });
  if (std::ssize(pools) > config.topk_pools())
    pools.resize(static_cast<std::size_t>(config.topk_pools()));
  std::sort(pools.begin(), pools.end());
  std::vector<std::int32_t> tokens;
  for (const std::int64_t pool : pools)
    for (std::int64_t j = 0; j < config.index_kpool; ++j)
      tokens.push_back(
          static_cast<std::int32_t>(row.query.first_key + pool * config.index_kpool + j));
  tokens.resize(static_cast<std::size_t>(config.index_topk), -1);
  if (config.index_kpool_always_select_tail)
    for (std::int64_t t = std::ssize(row.logits) * config.index_kpool; t <= row.query.position; ++t)
      tokens.push_back(static_cast<std::int32_t>(row.query.first_key + t));
  tokens.resize(static_cast<std::size_t>(config.selection_width()), -1);
  return tokens;
}

TopkRun run_topk(const IndexerConfig& config, std::span<const TopkRow> rows, std::int64_t stride,
                 sim::simt::Options options) {
  const auto target = make_simt_target(std::move(options));
  constexpr std::byte poison{0x7f};
  std::vector<QueryRow> queries;
  std::vector<float> logits(rows.size() * static_cast<std::size_t>(stride), infinity);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    queries.push_back(rows[i].query);
    std::copy(rows[i].logits.begin(), rows[i].logits.end(),
              logits.begin() + static_cast<std::ptrdiff_t>(i) * stride);
  }
  const auto upload = [&](const char* name, const void* from, std::size_t bytes) {
    std::byte* const buffer = target->allocate(name, static_cast<std::int64_t>(bytes), poison);
    target->upload(buffer, from, static_cast<std::int64_t>(bytes));
    return buffer;
  };
  TopkArgs args;
  args.shape.config = config;
  args.shape.mode = numeric_mode("vllm_fp8");
  args.logits = reinterpret_cast<const float*>(upload("logits", logits.data(), logits.size() * 4));
  args.logits_stride = stride;
  args.rows = reinterpret_cast<const QueryRow*>(
      upload("rows", queries.data(), queries.size() * sizeof(QueryRow)));
  args.row_count = std::ssize(rows);
  args.host_rows = queries.data();
  TopkRun run;
  run.selection.resize(rows.size() * static_cast<std::size_t>(config.selection_width()));
  const auto bytes = static_cast<std::int64_t>(run.selection.size() * 4);
  std::byte* const selection = target->allocate("selection", bytes, poison);
  args.selection = reinterpret_cast<std::int32_t*>(selection);

  const Kernel& kernel = find_kernel("simt", args);
  kernel.launch(args, target->context());
  if (const std::string damage = target->check_guards(); !damage.empty())
    throw std::runtime_error(damage);
  run.declared = kernel.work(args).traffic;
  run.counted = target->context().simt->counted;
  target->download(run.selection.data(), selection, bytes);
  return run;
}

}  // namespace indexpool::kernels
