#include "indexpool/reports/cli/indexer_work.hpp"

#include <array>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include "indexpool/kernels/args.hpp"
#include "indexpool/kernels/kernel.hpp"
#include "indexpool/kernels/plan.hpp"
#include "indexpool/kernels/unplaced.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool::cli {
namespace {

using kernels::OpArgs;

// Arguments without memory: declared work needs shapes only. Kept from one size to the next.
class IndexerArgs {
 public:
  IndexerArgs(const ArchitectureConfig& view, step::Phase phase, std::int64_t drafts,
              std::int64_t key_bytes)
      : shape_{view.indexer, numeric_mode(view.numeric_mode)},
        states_per_page_(view.states_per_page),
        phase_(phase),
        drafts_(drafts),
        key_bytes_(key_bytes) {}

  void declare(const step::Size& size, std::vector<step::Declared>& out) {
    place_rows(size);
    const std::int64_t quantised = shape_.mode.quantised() ? 1 : 0;
    out.resize(static_cast<std::size_t>(3 + quantised));
    std::size_t next = 0;
    const auto add = [&](const char* name, const OpArgs& args) {
      declare_one(name, args, out[next++]);
    };
    if (phase_ == step::Phase::decode) {
      add("append", append_args(size));
    } else {
      add("pool", pool_args(size));
    }
    if (quantised == 1) add("quantize_query", query_args(size));
    add("logits", logits_args(size));
    out[next - 1].cache =
        Bytes(checked_product(checked_product(size.sequences, pools(size), "index keys"),
                              key_bytes_, "bytes of index keys"));
    add("topk", topk_args(size));
  }

 private:
  std::int64_t pools(const step::Size& size) const {
    return size.tokens / shape_.config.index_kpool;
  }
  std::int64_t stride(const step::Size& size) const {
    return kernels::whole_logits_stride(pools(size));
  }

  kernels::PagedCache cache() const { return kernels::unplaced_cache(shape_, states_per_page_); }
  kernels::TailRing tail() const { return kernels::unplaced_tail(shape_, drafts_); }

  // The last positions of each sequence.
  void place_rows(const step::Size& size) {
    const std::int64_t rows = size.rows();
    if (rows > most_rows) {
      throw ConfigError(fmt::format("a step of {} rows, expected at most {}", rows, most_rows));
    }
    rows_.resize(static_cast<std::size_t>(rows));
    std::size_t at = 0;
    for (std::int64_t sequence = 0; sequence < size.sequences; ++sequence) {
      for (std::int64_t row = size.rows_per_sequence; row > 0; --row) {
        rows_[at++] = {size.tokens - row, 0, sequence, 0};
      }
    }
    tiles_ =
        kernels::plan_query_tiles(rows_, shape_.config.index_kpool, kernels::query_rows_per_tile);
  }

  OpArgs pool_args(const step::Size& size) const {
    kernels::PoolArgs args;
    args.shape = shape_;
    args.job_count = size.sequences * (size.rows_per_sequence / shape_.config.index_kpool);
    args.tail = tail();
    args.cache = cache();
    return args;
  }
  OpArgs append_args(const step::Size& size) const {
    kernels::AppendArgs args;
    args.shape = shape_;
    args.job_count = size.sequences;
    args.tokens = size.rows();
    const std::int64_t kpool = shape_.config.index_kpool;
    args.pools_closed = size.sequences * ((size.rows_per_sequence + kpool - 1) / kpool);
    args.tail = tail();
    args.cache = cache();
    return args;
  }
  OpArgs query_args(const step::Size& size) const {
    kernels::QuantizeQueryArgs args;
    args.shape = shape_;
    args.rows = size.rows();
    return args;
  }
  OpArgs logits_args(const step::Size& size) const {
    kernels::LogitsArgs args;
    args.shape = shape_;
    args.row_count = size.rows();
    args.tile_count = static_cast<std::int64_t>(tiles_.size());
    args.max_pools = pools(size);
    args.cache = cache();
    args.block_table_width = (args.max_pools + states_per_page_ - 1) / states_per_page_;
    args.logits_stride = stride(size);
    args.host_tiles = tiles_.data();
    args.host_rows = rows_.data();
    return args;
  }
  OpArgs topk_args(const step::Size& size) const {
    kernels::TopkArgs args;
    args.shape = shape_;
    args.logits_stride = stride(size);
    args.row_count = size.rows();
    args.host_rows = rows_.data();
    return args;
  }

  // The kernel of the size before, when it takes this one too: finding it is most of the work.
  const kernels::Kernel& kernel_for(const OpArgs& args) {
    const kernels::Kernel*& last = last_[args.index()];
    if (last == nullptr || last->unsupported(args)) last = &kernels::find_kernel("simt", args);
    return *last;
  }

  void declare_one(const char* name, const OpArgs& args, step::Declared& out) {
    out.name = name;
    out.cache = {};
    out.refusal.clear();
    try {
      const kernels::Kernel& kernel = kernel_for(args);
      out.kernel = kernel.name;
      out.work = kernel.work(args);
    } catch (const ConfigError& refusal) {
      out.work = {};
      out.kernel.clear();
      out.refusal = refusal.what();
    }
  }

  kernels::Shape shape_;
  std::int64_t states_per_page_;
  step::Phase phase_;
  std::int64_t drafts_, key_bytes_;
  std::vector<kernels::QueryRow> rows_;
  std::vector<kernels::QueryTile> tiles_;
  std::array<const kernels::Kernel*, std::variant_size_v<OpArgs>> last_{};  // by operation
};

// The numeric mode of kernels that read keys stored so; none where there are no such kernels.
std::optional<std::string> mode_for(const Architecture& architecture,
                                    const MemoryRequest& request) {
  const IndexFormat stored = request.index.value_or(architecture.index_format);
  switch (stored) {
    case IndexFormat::fp8:
      return numeric_mode(architecture.numeric_mode).quantised() ? architecture.numeric_mode
                                                                 : "vllm_fp8";
    case IndexFormat::bf16:
      return "bf16";
    case IndexFormat::f32:
      return "hf_f32";
    case IndexFormat::mxfp4:
      break;
  }
  return std::nullopt;
}

}  // namespace

step::IndexerWork indexer_work(const Architecture& architecture, const MemoryRequest& request,
                               step::Phase phase) {
  const IndexFormat stored = request.index.value_or(architecture.index_format);
  const std::optional<std::string> mode = mode_for(architecture, request);
  if (!mode) {
    const std::string refusal = fmt::format(
        "no kernel reads index keys stored as {}; take --index fp8 or bf16", to_string(stored));
    return [refusal](const step::Size&, std::vector<step::Declared>& out) {
      out.clear();
      out.emplace_back();
      out.front().name = "indexer kernels";
      out.front().refusal = refusal;
    };
  }
  ArchitectureConfig view = indexer_view(architecture);
  view.numeric_mode = *mode;
  if (!request.pooled) {
    view.indexer.index_kpool = 1;
    view.indexer.index_kpool_always_select_tail = false;
  }
  // A copy of the function has arguments of its own.
  return [args = IndexerArgs(view, phase, request.drafts, index_key_bytes(architecture, stored))](
             const step::Size& size, std::vector<step::Declared>& out) mutable {
    args.declare(size, out);
  };
}

}  // namespace indexpool::cli
