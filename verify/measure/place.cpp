#include "indexpool/verify/measure/place.hpp"

#include <string>
#include <utility>
#include <variant>

#include "indexpool/model/error.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::verify::timing {
namespace {

using kernels::RandomFill;
using kernels::WordPattern;

// Scales of pools and queries: positive, 2^-3 to 2^0; powers of two where the rule wants those.
WordPattern scale_pattern(ScaleRule rule) {
  const WordPattern any = number_pattern(DType::f32);
  constexpr std::uint32_t sign = 0x80000000u, fraction = 0x007fffffu;
  const std::uint32_t drop = rule == ScaleRule::power_of_two ? sign | fraction : sign;
  return {any.keep & ~drop, any.set};
}

class Placer {
 public:
  Placer(kernels::Target& target, HostArguments host, std::uint64_t seed)
      : target_(target), seed_(seed), placed_{std::move(host), {}, {}} {}

  Placed run() && {
    std::visit([this](auto args) { finish(std::move(args)); }, placed_.host.args);
    return std::move(placed_);
  }

 private:
  const HostArguments& host() const { return placed_.host; }

  std::byte* output(std::string name, std::int64_t bytes) {
    placed_.buffers.emplace_back(target_, std::move(name), bytes);
    return placed_.buffers.back().data();
  }
  // Whole words: up to 3 bytes more than asked for.
  std::byte* random(std::string name, std::int64_t bytes, RandomFill fill) {
    fill.seed = seed_ + placed_.buffers.size();  // another stream for each buffer
    const std::int64_t whole = (bytes + 3) / 4 * 4;
    std::byte* const at = output(std::move(name), whole);
    target_.fill_random(at, whole, fill);
    return at;
  }
  std::byte* numbers(std::string name, DType dtype, std::int64_t count) {
    const std::int64_t bytes = checked_product(count, info(dtype).bytes, "bytes of a buffer");
    return random(std::move(name), bytes, {0, number_pattern(dtype)});
  }
  float* floats(std::string name, std::int64_t count) {
    return reinterpret_cast<float*>(numbers(std::move(name), DType::f32, count));
  }
  template <class T>
  const T* uploaded(std::string name, const std::vector<T>& values) {
    placed_.buffers.push_back(upload(target_, std::move(name), values));
    return placed_.buffers.back().as<T>();
  }

  template <class Args>
  void add_rows(Args& args) {
    const std::int64_t count =
        checked_product(host().input_rows, args.shape.config.index_head_dim, "keys of a batch");
    args.keys = numbers("keys", args.shape.mode.storage, count);
    args.gate_scores = numbers("gate_scores", args.shape.mode.storage, count);
  }
  template <class Args>
  void add_ape(Args& args) {
    const IndexerConfig& config = args.shape.config;
    args.ape = floats("ape", config.index_kpool * config.index_head_dim);
  }
  std::int64_t cache_bytes(const kernels::PagedCache& cache) const {
    return checked_product(host().pages, cache.page_stride, "bytes of a cache");
  }
  std::int64_t tail_bytes(const kernels::TailRing& tail) const {
    return checked_product(host().tail_blocks, tail.block_stride, "bytes of the tail rings");
  }
  std::byte* filled_cache(const kernels::Shape& shape, const kernels::PagedCache& cache) {
    const kernels::PageLayout layout = kernels::page_layout(shape, cache.states_per_page);
    RandomFill fill{0, number_pattern(shape.mode.cache)};
    if (layout.scales) {
      fill.other = scale_pattern(shape.mode.scale);
      fill.period = cache.page_stride / 4;
      fill.other_from = layout.scale_offset() / 4;
    }
    return random("cache pages", cache_bytes(cache), fill);
  }

  void finish(kernels::PoolArgs args) {
    add_rows(args);
    add_ape(args);
    args.jobs = uploaded("pool jobs", host().pool_jobs);
    args.tail.base = output("tail ring", tail_bytes(args.tail));
    args.cache.pages = output("cache pages", cache_bytes(args.cache));
    placed_.args = args;
  }
  void finish(kernels::SeedTailArgs args) {
    add_rows(args);
    args.jobs = uploaded("tail jobs", host().tail_jobs);
    args.tail.base = output("tail ring", tail_bytes(args.tail));
    placed_.args = args;
  }
  void finish(kernels::AppendArgs args) {
    add_rows(args);
    add_ape(args);
    args.jobs = uploaded("append jobs", host().append.jobs);
    args.slots = uploaded("slots", host().append.slots);
    args.tail.base =
        random("tail ring", tail_bytes(args.tail), {0, number_pattern(args.shape.mode.storage)});
    args.cache.pages = output("cache pages", cache_bytes(args.cache));
    placed_.args = args;
  }
  void finish(kernels::QuantizeQueryArgs args) {
    const IndexerConfig& config = args.shape.config;
    const std::int64_t vectors = checked_product(args.rows, config.index_n_heads, "query vectors");
    args.queries = numbers("queries", args.shape.mode.storage, vectors * config.index_head_dim);
    args.codes =
        reinterpret_cast<std::uint8_t*>(output("query codes", vectors * config.index_head_dim));
    args.scales = reinterpret_cast<float*>(output("query scales", vectors * 4));
    placed_.args = args;
  }
  void finish(kernels::LogitsArgs args) {
    const IndexerConfig& config = args.shape.config;
    const NumericMode& mode = args.shape.mode;
    const std::int64_t vectors =
        checked_product(args.row_count, config.index_n_heads, "query vectors");
    args.queries = numbers("queries", mode.quantised() ? mode.cache : mode.storage,
                           vectors * config.index_head_dim);
    if (mode.quantised()) {
      args.query_scales = reinterpret_cast<float*>(
          random("query scales", vectors * 4, {0, scale_pattern(mode.scale)}));
    }
    args.head_weights = floats("head weights", vectors);
    args.rows = uploaded("query rows", host().rows);
    args.tiles = uploaded("query tiles", host().tiles);
    args.cache.pages = filled_cache(args.shape, args.cache);
    args.block_table = uploaded("block table", host().block_table);
    args.logits = reinterpret_cast<float*>(output(
        "logits", checked_product(args.row_count, args.logits_stride * 4, "bytes of the logits")));
    placed_.args = args;
  }
  void finish(kernels::PolicyArgs args) { placed_.args = std::move(args); }
  void finish(kernels::AttentionArgs args) { placed_.args = std::move(args); }
  void finish(kernels::BackwardArgs args) { placed_.args = std::move(args); }
  void finish(kernels::TopkArgs args) {
    args.logits =
        floats("logits", checked_product(args.row_count, args.logits_stride, "logits of a batch"));
    args.rows = uploaded("query rows", host().rows);
    args.selection = reinterpret_cast<std::int32_t*>(
        output("selection", args.row_count * args.shape.config.selection_width() * 4));
    placed_.args = args;
  }

  kernels::Target& target_;
  std::uint64_t seed_;
  Placed placed_;
};

}  // namespace

WordPattern number_pattern(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {0x81ffffffu, 0x3e000000u};
    case DType::bf16:
      return {0x81ff81ffu, 0x3e003e00u};
    case DType::f16:
      return {0x8fff8fffu, 0x30003000u};
    case DType::e4m3:
      return {0x9f9f9f9fu, 0x20202020u};
    case DType::i8:
      return {0xffffffffu, 0x01010101u};
    default:
      throw InternalError("no random numbers of this dtype");
  }
}

Placed place(kernels::Target& target, HostArguments host, std::uint64_t seed) {
  return Placer(target, std::move(host), seed).run();
}

}  // namespace indexpool::verify::timing
