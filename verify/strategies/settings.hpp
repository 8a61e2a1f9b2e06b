// What each dynamic strategy of the published forms decides: plain settings, and a free function
// that decides. Everything is off by default, and then groups of four consecutive tokens are
// pooled once, stored in bf16 and used at once.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "indexpool/model/dtype.hpp"

namespace indexpool::verify::strategies {

// Consecutive tokens that are pooled into one vector.
struct Segment {
  std::int64_t first = 0, count = 0;
  std::int64_t end() const { return first + count; }
  bool operator==(const Segment&) const = default;
};

// Article C: 1/2 and 1/4, adjustable; 1/8 announced.
struct RatioSettings {
  std::int64_t vectors = 4;  // pooled into one, 1 to 16
};
// Complete groups of the first `tokens` tokens; what is left is the tail.
std::vector<Segment> segments_of(const RatioSettings& settings, std::int64_t tokens);
// Places taken, the open one of a tail included: ceil(tokens / vectors).
std::int64_t slots_of(const RatioSettings& settings, std::int64_t tokens);

// Article C: weights anew in every layer, in every step, every n steps. Between, and in the layers
// after the first, the weights of before are used again: pools are only made where weights are.
struct FrequencySettings {
  std::int64_t steps = 0;  // 0: every layer of every step; n: in the first layer of every n-th step
};
bool weights_due(const FrequencySettings& settings, std::int64_t step);
// Layers after the first take the first one's.
bool shares_layers(const FrequencySettings& settings);

// Article D: a group is pooled again only when a channel of one of its vectors has moved by more
// than the threshold since it was pooled last. What that leaves: staleness.hpp.
struct IncrementalSettings {
  double threshold = -1;  // below 0: everything is pooled in every step
};
double largest_change(std::span<const double> now, std::span<const double> before);
bool must_pool(const IncrementalSettings& settings, std::span<const double> now,
               std::span<const double> pooled_from);

// Announced by A to D: formats by rule. A format of 8 bits has one f32 scale a pool.
enum class PrecisionRule { all, recent, norm };
struct PrecisionSettings {
  PrecisionRule rule = PrecisionRule::all;
  DType wide = DType::bf16, narrow = DType::bf16;  // all: `wide`
  std::int64_t recent_tokens = 128;  // recent: a pool whose last token is one of these is wide
  double norm_share = 1.1;           // norm: wide from this share of the mean key's norm on
};
double norm_of(std::span<const double> vector);  // Euclidean
DType format_of(const PrecisionSettings& settings, const Segment& segment, std::int64_t tokens,
                double norm, double mean_key_norm);
std::int64_t pool_bytes(DType format, std::int64_t head_dim);

// Article B: below 10,000 tokens nothing is pooled. Keys are stored as they are; the step that
// reaches the length pools all of them.
struct ShortSettings {
  std::int64_t below = 0;
};
inline constexpr std::int64_t published_short_length = 10'000;
bool pooling_off(const ShortSettings& settings, std::int64_t tokens);

// Article D: weights of 8 bits (symmetric, one scale a group, which the division by their sum
// takes out again), at most 512 K tokens, pools that a query sees a step after they are made.
// Reading chosen: until then their tokens stay in the tail, so nothing is lost meanwhile.
struct EdgeSettings {
  bool weights_in_8_bits = false;
  std::int64_t most_tokens = std::numeric_limits<std::int64_t>::max();
  std::int64_t late_steps = 0;  // 0 or 1
};
inline constexpr std::int64_t published_edge_tokens = std::int64_t{512} * 1024;
void require_edge_length(const EdgeSettings& settings, std::int64_t tokens);  // ConfigError
// Codes -127 to 127, the largest magnitude at 127.
std::vector<double> weights_of_8_bits(std::vector<double> weights);

// Announced by A to D: the ratio by content. A block of 8 tokens whose keys vary little becomes one
// pool; of the others each half becomes one, or two where it varies much. Variable groups need a
// block table: the first token of each.
struct AdaptiveSettings {
  bool on = false;
  double calm = 0.4;     // relative spread up to which 8 tokens are one pool
  double lively = 0.85;  // of 4 tokens: from there on they are two pools
};
inline constexpr std::int64_t adaptive_block = 8, block_table_entry_bytes = 4;
// sqrt(sum |V_i - mean|^2 / sum |V_i|^2): 0 for equal vectors, at most 1.
double relative_spread(std::span<const double> vectors, std::int64_t count, std::int64_t head_dim);
std::vector<Segment> segments_of(const AdaptiveSettings& settings, std::span<const double> keys,
                                 std::int64_t head_dim, std::int64_t tokens);

struct Settings {
  RatioSettings ratio;
  FrequencySettings frequency;
  IncrementalSettings incremental;
  PrecisionSettings precision;
  ShortSettings shorts;
  EdgeSettings edge;
  AdaptiveSettings adaptive;
};
// ConfigError for sizes no strategy has.
void validate(const Settings& settings);
// What is pooled of the first `tokens` tokens, whatever was pooled before. All layers group alike,
// by the first one's keys [tokens, D], so that weights and block table can serve them all.
std::vector<Segment> segments_of(const Settings& settings, std::span<const double> keys,
                                 std::int64_t head_dim, std::int64_t tokens);

}  // namespace indexpool::verify::strategies
