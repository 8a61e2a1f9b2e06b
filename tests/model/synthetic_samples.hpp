// What the micro-kernels would measure on a device whose constants are known.
#pragma once

#include <cstdint>
#include <random>

#include "indexpool/model/calibration/samples.hpp"
#include "indexpool/model/config.hpp"
#include "indexpool/model/cost.hpp"

namespace indexpool::calibration {

class SyntheticDevice {
 public:
  // Each time is off by at most `noise` of itself.
  SyntheticDevice(DeviceSpec truth, double noise, std::uint64_t seed)
      : truth_(std::move(truth)), noise_(noise), random_(seed) {}

  Samples samples() {
    Samples all;
    all.facts = facts();
    for (const Access access : {Access::read, Access::write, Access::copy}) {
      for (const std::int64_t gib : {2, 3, 4}) {
        for (const std::int64_t threads : {1024, 2048}) {
          all.streams.push_back(stream(access, gib << 30, threads, 8));
        }
      }
    }
    for (const std::int64_t threads : {128, 256, 512, 1024, 2048}) {
      for (const std::int64_t in_flight : {1, 2, 4}) {
        all.streams.push_back(stream(Access::read, 1 << 30, threads, in_flight));
      }
    }
    for (const double share :
         {0.05, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 2.0, 4.0, 8.0}) {
      all.cached_reads.push_back(cached(share, 1024, 8));
      all.cached_reads.push_back(cached(share, 128, 1));
    }
    add_chains(all.chains);
    add_rates(all.rates);
    add_launches(all.launches);
    return all;
  }

 private:
  double noisy(double value) {
    // 53 random bits, the same on every standard library.
    const double share = static_cast<double>(random_() >> 11) * 0x1p-53;
    return value * (1 + noise_ * (2 * share - 1));
  }
  Times times(double seconds) {
    const double median = noisy(seconds);
    return {median, median, median};
  }

  DeviceFacts facts() const {
    DeviceFacts facts;
    facts.name = "NVIDIA H200";
    facts.compute_capability = truth_.compute_capability;
    facts.driver = "580.0.0";
    facts.toolkit = "CUDA 13.0";
    facts.date = "2026-01-02";
    facts.sm_count = truth_.sm_count;
    facts.warps_per_sm = truth_.warps_per_sm;
    facts.memory_bytes = truth_.memory.value;
    facts.l2_bytes = truth_.l2_capacity.value;
    facts.shared_bytes_per_sm = truth_.shared_memory_per_sm.value;
    facts.memory_peak_bytes_per_s = truth_.hbm_peak_bytes_per_s.value;
    return facts;
  }

  StreamSample stream(Access access, std::int64_t bytes, std::int64_t threads,
                      std::int64_t in_flight) {
    StreamSample sample{access, bytes, threads, in_flight, {}};
    const double peak = access == Access::read    ? truth_.hbm_read_bytes_per_s.value
                        : access == Access::write ? truth_.hbm_write_bytes_per_s.value
                                                  : truth_.hbm_copy_bytes_per_s.value;
    const Bytes in_flight_bytes(sample.in_flight_bytes_per_sm() * truth_.sm_count);
    const double rate = access == Access::read
                            ? rate_in_flight(BytesPerSecond(peak), in_flight_bytes, truth_).value
                            : peak;
    sample.seconds = times(static_cast<double>(bytes) / rate);
    return sample;
  }

  CachedReadSample cached(double share, std::int64_t threads, std::int64_t in_flight) {
    const auto footprint =
        static_cast<std::int64_t>(share * static_cast<double>(truth_.l2_capacity.value));
    CachedReadSample sample{footprint, std::int64_t{4} << 30, threads, in_flight, {}};
    const double resident = l2_resident_share(Bytes(footprint), truth_);
    const double in_flight_bytes =
        static_cast<double>(sample.in_flight_bytes_per_sm() * truth_.sm_count);
    const bool waiting = in_flight == 1;
    const double hit =
        waiting ? truth_.l2_latency_s.value / in_flight_bytes : 1 / truth_.l2_bytes_per_s.value;
    const double miss = waiting ? truth_.hbm_latency_s.value / in_flight_bytes
                                : 1 / truth_.hbm_read_bytes_per_s.value;
    sample.seconds =
        times(static_cast<double>(sample.bytes) * (resident * hit + (1 - resident) * miss));
    return sample;
  }

  void add_chain(std::vector<ChainSample>& chains, Chain chain, double latency,
                 const std::string& dtype = "") {
    for (int start = 0; start < 8; ++start) {
      const double seconds = noisy(4096 * latency);
      chains.push_back({chain, dtype, 0, 32, 4096, seconds * truth_.sm_clock_hz.value, seconds});
    }
  }

  void add_chains(std::vector<ChainSample>& chains) {
    add_chain(chains, Chain::hbm, truth_.hbm_latency_s.value);
    add_chain(chains, Chain::l2, truth_.l2_latency_s.value);
    add_chain(chains, Chain::shared, truth_.shared_latency_s.value);
    add_chain(chains, Chain::atomic, truth_.atomic_latency_s.value);
    add_chain(chains, Chain::shuffle, truth_.shuffle_latency_s.value);
    add_chain(chains, Chain::barrier, truth_.barrier_latency_s.value);
    add_chain(chains, Chain::arithmetic, truth_.arithmetic_latency_s.value);
    for (const auto& [dtype, latency] : truth_.matrix_latency_s) {
      add_chain(chains, Chain::matrix, latency.value, dtype);
    }
  }

  void add_rate(std::vector<RateSample>& rates, Rate rate, double per_second,
                const std::string& dtype = "") {
    rates.push_back({rate, dtype, 16, 1e9, truth_.sm_clock_hz.value, times(1e9 / per_second)});
  }

  void add_rates(std::vector<RateSample>& rates) {
    const double clocks = truth_.sm_clock_hz.value * static_cast<double>(truth_.sm_count);
    add_rate(rates, Rate::issue, truth_.issue_per_clock_per_sm.value * clocks);
    add_rate(rates, Rate::integer, truth_.integer_per_clock_per_sm.value * clocks);
    add_rate(rates, Rate::special, truth_.special_per_clock_per_sm.value * clocks);
    add_rate(rates, Rate::shared, truth_.shared_bytes_per_clock_per_sm.value * clocks);
    add_rate(rates, Rate::f32_fused, truth_.f32_flop_per_s.value);
    add_rate(rates, Rate::f32_unfused, truth_.f32_flop_per_s.value / 2);
    for (const auto& [dtype, rate] : truth_.matrix_flop_per_s) {
      add_rate(rates, Rate::matrix, rate.value, dtype);
    }
  }

  void add_launches(std::vector<LaunchSample>& launches) {
    for (const std::int64_t blocks : {1, 132}) {
      launches.push_back({Launch::cold, blocks, 1, times(truth_.launch_s.value)});
      launches.push_back({Launch::warm, blocks, 1, times(truth_.launch_s.value)});
      for (const std::int64_t count : {8, 64, 512}) {
        const auto nodes = static_cast<double>(count);
        const double seconds = 2e-6 + nodes * truth_.graph_launch_s.value;
        launches.push_back({Launch::graph, blocks, count, times(seconds / nodes)});
      }
    }
  }

  DeviceSpec truth_;
  double noise_;
  std::mt19937_64 random_;
};

}  // namespace indexpool::calibration
