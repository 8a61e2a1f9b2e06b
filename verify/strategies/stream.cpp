#include "indexpool/verify/strategies/stream.hpp"

#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify::strategies {
namespace {

constexpr std::uint64_t layer_stream = 1, calm_stream = 2, move_stream = 3;
constexpr std::int64_t calm_segment = 32, most_stream_tokens = 1 << 21;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::uint64_t stream_of(std::uint64_t kind, std::int64_t number, std::int64_t part) {
  return mix(mix(mix(kind) ^ static_cast<std::uint64_t>(number)) ^
             static_cast<std::uint64_t>(part));
}

void measure_keys(Stream& stream) {
  double all = 0, norms = 0;
  for (std::int64_t t = 0; t < stream.tokens; ++t) {
    double square = 0;
    for (const double x : stream.group(0, t, 1)) square += x * x;
    all += square;
    norms += std::sqrt(square);
  }
  stream.key_rms = std::sqrt(all / static_cast<double>(stream.tokens * stream.head_dim));
  stream.mean_key_norm = norms / static_cast<double>(stream.tokens);
}

void calm_down(const StreamOptions& o, Stream& stream) {
  const Random random(o.seed, stream_of(calm_stream, stream.number, 0));
  std::vector<double>& keys = stream.keys[0];
  for (std::int64_t first = 0; first < o.tokens; first += calm_segment) {
    if (random.uniform(first) >= o.calm_share) continue;
    for (std::int64_t t = first + 1; t < std::min(first + calm_segment, o.tokens); ++t) {
      for (std::int64_t c = 0; c < o.head_dim; ++c) {
        double& x = keys[size(t * o.head_dim + c)];
        x = keys[size(first * o.head_dim + c)] + o.calm_spread * x;
      }
    }
  }
}

// Same length on average, in another direction.
void add_layers(const StreamOptions& o, Stream& stream) {
  const double kept = std::sqrt(1 - o.layer_noise * o.layer_noise);
  for (std::int64_t layer = 1; layer < o.layers; ++layer) {
    const Random random(o.seed, stream_of(layer_stream, stream.number, layer));
    std::vector<double> keys = stream.keys.back();
    for (std::size_t i = 0; i < keys.size(); ++i)
      keys[i] = kept * keys[i] +
                o.layer_noise * stream.key_rms * random.normal(static_cast<std::int64_t>(i));
    stream.keys.push_back(std::move(keys));
  }
}

}  // namespace

void validate(const StreamOptions& o) {
  const auto fail = [](const char* what, std::int64_t found, const char* expected) {
    throw ConfigError(fmt::format("{}: found {}, expected {}", what, found, expected));
  };
  if (o.tokens % 4 != 0 || o.tokens - o.steps < 64 || o.tokens > (1 << 20))
    fail("tokens", o.tokens,
         "a multiple of 4, at least 64 more than the steps that are decoded, at most 1M");
  if (o.sequences < 2 || o.sequences > 10'000)
    fail("sequences", o.sequences, "2 to 10000: an interval needs two");
  if (o.tokens > most_stream_tokens / o.sequences)
    throw ConfigError(
        fmt::format("{} sequences of {} tokens: expected at most {} tokens together, their keys "
                    "are held at once",
                    o.sequences, o.tokens, most_stream_tokens));
  if (o.steps < 1) fail("steps", o.steps, "at least 1");
  if (o.layers < 1 || o.layers > 64) fail("layers", o.layers, "1 to 64");
}

std::span<const double> Stream::group(std::int64_t layer, std::int64_t first,
                                      std::int64_t count) const {
  return std::span(keys[size(layer)]).subspan(size(first * head_dim), size(count * head_dim));
}

std::vector<double> Stream::query_of(std::int64_t step) const {
  std::vector<double> query(size(head_dim));
  double total = 0;
  for (std::int64_t h = 0; h < heads; ++h) {
    const double share = head_weights[size(step * heads + h)];
    total += share;
    for (std::int64_t c = 0; c < head_dim; ++c)
      query[size(c)] += share * queries[size((step * heads + h) * head_dim + c)];
  }
  for (double& x : query) x /= total;
  return query;
}

std::vector<Stream> make_streams(const StreamOptions& o, std::int64_t first) {
  validate(o);
  reference::training::PlantedOptions planted;
  planted.seed = o.seed;
  planted.sequences = o.sequences;
  planted.tokens = o.tokens;
  planted.features = planted.head_dim = o.head_dim;
  planted.heads = o.heads;
  planted.queries = o.steps;
  std::vector<Stream> streams;
  for (auto& sequence : reference::training::planted_sequences(planted, first)) {
    Stream stream;
    stream.tokens = o.tokens;
    stream.steps = o.steps;
    stream.head_dim = o.head_dim;
    stream.heads = o.heads;
    stream.number = first + static_cast<std::int64_t>(streams.size());
    stream.keys.push_back(std::move(sequence.keys));
    stream.queries = std::move(sequence.queries);
    stream.head_weights = std::move(sequence.head_weights);
    stream.ages = std::move(sequence.ages);
    stream.access_terms = std::move(sequence.access_terms);
    stream.salient = std::move(sequence.salient);
    calm_down(o, stream);
    measure_keys(stream);
    add_layers(o, stream);
    streams.push_back(std::move(stream));
  }
  return streams;
}

void revise(const StreamOptions& o, std::int64_t step, std::int64_t tokens, Stream& stream) {
  if (o.small_chance <= 0 && o.large_chance <= 0) return;
  const Random random(o.seed, stream_of(move_stream, stream.number, step));
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double draw = random.uniform(t);
    if (draw >= o.small_chance + o.large_chance) continue;
    const double move = (draw < o.large_chance ? o.large_move : o.small_move) * stream.key_rms;
    for (std::int64_t layer = 0; layer < stream.layers(); ++layer) {
      for (std::int64_t c = 0; c < stream.head_dim; ++c) {
        const std::int64_t at = t * stream.head_dim + c;
        stream.keys[size(layer)][size(at)] += move * random.normal(stream.tokens + at);
      }
    }
  }
}

}  // namespace indexpool::verify::strategies
