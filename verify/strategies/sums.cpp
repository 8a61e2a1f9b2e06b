// Sums over sequences, and means of them.
#include <algorithm>

#include "indexpool/verify/strategies/strategies.hpp"

namespace indexpool::verify::strategies {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double weight_sum_tolerance(std::int64_t vectors) {
  return 4 * static_cast<double>(vectors) * 0x1p-53;
}

Counts& Counts::operator+=(const Counts& other) {
  pools += other.pools;
  weight_sets += other.weight_sets;
  launches += other.launches;
  bytes_written += other.bytes_written;
  bytes_stored += other.bytes_stored;
  bytes_expected += other.bytes_expected;
  bytes_read += other.bytes_read;
  return *this;
}

Monitor& Monitor::operator+=(const Monitor& other) {
  entropy += other.entropy;
  entropies += other.entropies;
  hit_steps += other.hit_steps;
  steps += other.steps;
  normalisation_violations += other.normalisation_violations;
  sums += other.sums;
  checksum_failures += other.checksum_failures;
  checksums += other.checksums;
  latency_s += other.latency_s;
  latency_low_s += other.latency_low_s;
  latency_high_s += other.latency_high_s;
  return *this;
}

Staleness& Staleness::operator+=(const Staleness& other) {
  compared += other.compared;
  violations += other.violations;
  utilisation = std::max(utilisation, other.utilisation);
  largest_change = std::max(largest_change, other.largest_change);
  return *this;
}
double pools_share(const Outcome& outcome) {
  return share(outcome.counts.pools, outcome.baseline.pools);
}

double weight_entropy(const Monitor& monitor) {
  return monitor.entropies == 0 ? 0 : monitor.entropy / static_cast<double>(monitor.entropies);
}

double hit_rate(const Monitor& monitor) { return share(monitor.hit_steps, monitor.steps); }

double latency_per_step_s(const Monitor& monitor) {
  return monitor.steps == 0 ? 0 : monitor.latency_s / static_cast<double>(monitor.steps);
}

double read_per_step(const Counts& counts, const Monitor& monitor) {
  return share(counts.bytes_read, monitor.steps);
}

}  // namespace indexpool::verify::strategies
