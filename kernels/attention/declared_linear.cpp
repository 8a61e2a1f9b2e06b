// Traffic of linear attention: all blocks of equally long sequences are alike.
#include "indexpool/kernels/access_cost.hpp"
#include "indexpool/kernels/attention/declared.hpp"
#include "indexpool/kernels/attention/issued.hpp"

namespace indexpool::kernels {
namespace {

constexpr std::int64_t warp_lanes = 32, word_bytes = 4, vector_bytes = 16;
constexpr std::int64_t tree_steps = 5;  // of a whole warp
constexpr std::int64_t part_steps = 2;  // of the lanes of a column
// 16 bytes a lane are served by quarter-warps, whose lanes read the same ones.
constexpr std::int64_t quarter_warps = 4;

// Of a block: `columns` value channels of a head.
class LinearTraffic {
 public:
  LinearTraffic(const LinearAttentionArgs& args, std::int64_t columns)
      : parts_(args.key_dim / warp_lanes),
        warps_(columns / columns_per_warp),
        key_dim_(args.key_dim),
        element_bytes_(info(args.storage).bytes) {}

  Traffic step_block(std::int64_t tokens) const {
    Traffic traffic = around();
    for (std::int64_t t = 0; t < tokens; ++t) {
      stage_rows(traffic, 2);
      words(traffic, parts_);  // decays
      store_words(traffic, parts_);
      token(traffic);
      columns_of(traffic, 4);  // decay, key twice, query
      ++traffic.block_barriers;
    }
    return traffic;
  }
  Traffic chunk_block(std::int64_t tokens) const {
    Traffic traffic = around();
    for (std::int64_t first = 0; first < tokens; first += linear_chunk_tokens)
      chunk(traffic, tokens - first < linear_chunk_tokens ? tokens - first : linear_chunk_tokens);
    return traffic;
  }

 private:
  void words(Traffic& traffic, std::int64_t count) const {
    add_loads(traffic, count * GlobalAccess{warp_lanes * word_bytes, 4});
  }
  void store_words(Traffic& traffic, std::int64_t count) const {
    add_shared_stores(traffic, count, warp_lanes * word_bytes, 1);
  }
  void load_words(Traffic& traffic, std::int64_t count) const {
    add_shared_loads(traffic, count, warp_lanes * word_bytes, 1);
  }
  // Each warp reads `rows` rows of K from shared memory: 16 bytes for each part of a column.
  void columns_of(Traffic& traffic, std::int64_t rows) const {
    add_shared_loads(traffic, rows * warps_ * key_dim_ / 4 / column_parts,
                     column_parts * vector_bytes, quarter_warps);
  }
  // The sequence's record, twice, and the state, in and out.
  Traffic around() const {
    const std::int64_t rows = warps_ * key_dim_ / column_parts;
    Traffic traffic;
    add_loads(traffic, 2 * warps_ * GlobalAccess{vector_bytes, 1});
    words(traffic, rows);
    add_stores(traffic, rows * GlobalAccess{warp_lanes * word_bytes, 4});
    return traffic;
  }
  // Rows of K elements, normalised into shared memory.
  void stage_rows(Traffic& traffic, std::int64_t rows) const {
    const std::int64_t bytes = warp_lanes * element_bytes_;
    add_loads(traffic, rows * parts_ * GlobalAccess{bytes, bytes / sector_bytes});
    store_words(traffic, rows * parts_);
    traffic.shuffles += rows * tree_steps;
  }
  // Of each warp: values and beta in, two sums over the parts of a column, outputs.
  void token(Traffic& traffic) const {
    add_loads(traffic, warps_ * GlobalAccess{columns_per_warp * element_bytes_, 1});
    add_loads(traffic, warps_ * GlobalAccess{word_bytes, 1});
    add_stores(traffic, warps_ * GlobalAccess{columns_per_warp * word_bytes, 1});
    traffic.shuffles += warps_ * 2 * part_steps;
  }
  void chunk(Traffic& traffic, std::int64_t n) const {
    stage_rows(traffic, 2 * n);
    words(traffic, n * parts_);  // decays
    store_words(traffic, n * parts_);
    for (std::int64_t i = 0; i < n; ++i) {  // rows of A and R
      load_words(traffic, 3 * parts_ + (i + 1) * 2 * parts_);
      add_loads(traffic, {word_bytes, 1});
      traffic.shuffles += (i + 1) * 2 * tree_steps;
      add_shared_stores(traffic, 2, linear_chunk_tokens * word_bytes, 1);
    }
    load_words(traffic, 4 * n * parts_ + parts_);  // decayed rows, and the last decays
    store_words(traffic, 3 * n * parts_ + parts_);
    for (std::int64_t i = 0; i < n; ++i) token(traffic);
    // Per token its key and query, and its key at the end; the decay. Rows of A and R are the same
    // for all lanes.
    columns_of(traffic, 3 * n + 1);
    add_shared_loads(traffic, 2 * n * warps_ * linear_chunk_tokens / 4, vector_bytes,
                     quarter_warps);
    traffic.block_barriers += 4;
  }

  std::int64_t parts_, warps_, key_dim_, element_bytes_;
};

// Without the host's view: one token each.
std::int64_t tokens_of(const LinearAttentionArgs& args, std::int64_t sequence) {
  return args.host_sequences == nullptr ? 1 : args.host_sequences[sequence].tokens;
}

// Everything but the traffic; `flop_per_element` of the state and token.
template <class F>
Work linear_work(const LinearAttentionArgs& args, std::int64_t columns, double flop_per_element,
                 F&& block_traffic) {
  Work work;
  const std::int64_t blocks_per_sequence = std::int64_t{args.heads} * args.value_dim / columns;
  std::int64_t tokens = 0;
  for (std::int64_t s = 0; s < args.sequence_count; ++s) {
    work.traffic += times(blocks_per_sequence, block_traffic(tokens_of(args, s)));
    tokens += tokens_of(args, s);
  }
  const std::int64_t keys = args.key_dim, values = args.value_dim, heads = args.heads;
  const std::int64_t state_bytes = args.sequence_count * heads * keys * values * word_bytes;
  const std::int64_t row_bytes = (2 * keys + values) * info(args.storage).bytes;
  work.unique_read =
      Bytes(state_bytes + args.sequence_count * std::int64_t{sizeof(LinearSequence)} +
            tokens * heads * (row_bytes + (keys + 1) * word_bytes));
  work.unique_write = Bytes(state_bytes + tokens * heads * values * word_bytes);
  work.f32_flop = Flop(flop_per_element * static_cast<double>(tokens * heads * keys * values));
  work.blocks = args.sequence_count * blocks_per_sequence;
  work.threads_per_block = columns * column_parts;
  work.in_flight_per_block = Bytes(keys * columns * word_bytes);
  return work;
}

}  // namespace

Work declared_linear_step(const LinearAttentionArgs& args) {
  const LinearTraffic block(args, step_columns);
  // Decay (1), what the state holds for the key (2), its correction (2), what the query reads (2).
  Work work = linear_work(args, step_columns, 7,
                          [&](std::int64_t tokens) { return block.step_block(tokens); });
  work.blocks_per_sm = resident_blocks(step_blocks_per_sm, step_shared_bytes(args.key_dim));
  issue_linear_step(args, work);
  return work;
}

Work declared_linear_chunk(const LinearAttentionArgs& args) {
  const LinearTraffic block(args, args.value_dim);
  // The key (2), the query (2), the correction (2); a decay per chunk; and the chunk's two
  // matrices, a product, an exponential (23) and two sums per channel and pair.
  const double pairs = (linear_chunk_tokens + 1) / 2.0 * (2 + 23 + 4) / args.value_dim;
  Work work = linear_work(args, args.value_dim, 6 + 1.0 / linear_chunk_tokens + pairs,
                          [&](std::int64_t tokens) { return block.chunk_block(tokens); });
  const std::int64_t promised = chunk_threads_most / (args.value_dim * column_parts);
  work.blocks_per_sm = resident_blocks(promised, chunk_shared_bytes(args.key_dim));
  issue_linear_chunk(args, work);
  return work;
}

}  // namespace indexpool::kernels
