// Bytes by formula, apart from the simulation that counts them.
#include "indexpool/verify/strategies/simulate.hpp"

namespace indexpool::verify::strategies {
namespace {

constexpr std::int64_t bytes_of_bf16 = 2, bytes_of_f32 = 4;

// Norms decide formats only where the rule says so.
std::vector<DType> formats_of(const Form& form, const Settings& settings, const Stream& stream,
                              std::int64_t layer, const std::vector<Segment>& segments) {
  std::vector<DType> formats;
  for (const Segment& segment : segments) {
    double norm = 0;
    if (settings.precision.rule == PrecisionRule::norm) {
      const Groups one{&stream, layer, -1, stream.tokens, segment.count, {segment}};
      norm = norm_of(pools_of(form, one, weights_of(form, one)));
    }
    formats.push_back(
        format_of(settings.precision, segment, stream.tokens, norm, stream.mean_key_norm));
  }
  return formats;
}

}  // namespace

bool keeps_weights(const Form& form, const Settings& settings) {
  return form.by_step && shares_layers(settings.frequency);
}

bool keeps_keys(const Form& form, const StreamOptions& revisions) {
  return form.by_step || revisions.small_chance > 0 || revisions.large_chance > 0;
}

std::int64_t stored_bytes(const Form& form, const Settings& settings,
                          const StreamOptions& revisions, const Stream& stream) {
  const std::int64_t key_bytes = stream.head_dim * bytes_of_bf16;
  std::int64_t bytes = 0;
  const auto segments = segments_of(settings, stream.keys[0], stream.head_dim, stream.tokens);
  for (std::int64_t layer = 0; layer < stream.layers(); ++layer) {
    std::int64_t pooled = 0;
    for (const Segment& segment : segments) pooled += segment.count;
    // Without pools the keys themselves are what is stored, once.
    if (pooling_off(settings.shorts, stream.tokens)) {
      bytes += stream.tokens * key_bytes;
      continue;
    }
    for (const DType each : formats_of(form, settings, stream, layer, segments))
      bytes += pool_bytes(each, stream.head_dim);
    if (settings.adaptive.on && layer == 0) bytes += std::ssize(segments) * block_table_entry_bytes;
    bytes += (keeps_keys(form, revisions) ? stream.tokens : stream.tokens - pooled) * key_bytes;
    if (settings.incremental.threshold >= 0) bytes += pooled * key_bytes;
    if (keeps_weights(form, settings) && layer == 0) bytes += pooled * bytes_of_f32;
  }
  return bytes;
}

}  // namespace indexpool::verify::strategies
