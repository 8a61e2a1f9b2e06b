// What a launch takes of the SMs: by resource, and in waves of blocks.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "indexpool/model/cost.hpp"
#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/cost_text.hpp"
#include "indexpool/model/error.hpp"

namespace indexpool {
namespace {

// Chains of dependent instructions that a warp alone has to pick from. Assumed: compiled code that
// nobody scheduled by hand; it only decides the time of grids too small to hide latency.
constexpr double independent_chains = 2;

// 32 banks of 4 bytes, CUDA C++ Programming Guide. A shuffle goes through the same crossbar.
constexpr double wavefront_bytes = 128;

double shared_bytes(const Work& work) {
  const Traffic& traffic = work.traffic;
  const double passes = static_cast<double>(traffic.shared_wavefronts + traffic.shuffles);
  return std::max(passes * wavefront_bytes,
                  static_cast<double>((traffic.shared_load + traffic.shared_store).value));
}

double cycles_per_s(const Constant& per_clock, const DeviceSpec& device, Corner corner) {
  return rate_at(per_clock, corner) * rate_at(device.sm_clock_hz, corner);
}

// Rates of one SM.
double shared_rate(const DeviceSpec& device, Corner corner) {
  return cycles_per_s(device.shared_bytes_per_clock_per_sm, device, corner);
}
double matrix_rate(const Work& work, const DeviceSpec& device, Corner corner) {
  const Constant& peak = device.matrix_flop_per_s.at(matrix_units(work.matrix_dtype, device));
  return rate_at(peak, corner) / static_cast<double>(device.sm_count);
}
double f32_rate(const DeviceSpec& device, Corner corner) {
  return rate_at(device.f32_flop_per_s, corner) / static_cast<double>(device.sm_count);
}

// Blocks' shares that the busiest SM works off one after the other. Slowest: blocks bound by
// latency take their slot's whole turn whether or not their neighbours are empty.
double turns(const Waves& waves, Corner corner) {
  if (corner == Corner::slowest) return waves.count() * waves.resident;
  return waves.full * waves.resident + waves.rest;
}

// Of the busiest SM, when each block takes `block` seconds of it.
double spread_seconds(double block, const Work& work, const DeviceSpec& device, Corner corner) {
  return block == 0 ? 0 : block * turns(waves_of(work, device), corner);
}

// What `amount` on the whole device is for a block; an undeclared grid is one block on each SM.
double per_block(double amount, const Work& work, const DeviceSpec& device) {
  const std::int64_t active = work.blocks - work.idle_blocks;
  return amount / static_cast<double>(work.blocks == 0 ? device.sm_count
                                                       : std::max<std::int64_t>(active, 1));
}

double first_load_latency(const Work& work, const DeviceSpec& device, const CostOptions& options,
                          Corner corner) {
  const double beyond = delay_at(device.hbm_latency_s, corner);
  if (!options.warm_l2) return beyond;
  const double resident = resident_share_at(work.unique_read + work.unique_write, device, corner);
  return resident * delay_at(device.l2_latency_s, corner) + (1 - resident) * beyond;
}

// How well the pipes of an SM overlap: worse than memory and SMs do, since the same few schedulers
// feed all of them. Chosen between 2.25 and 4 on the cold and warm times of a first run of our
// kernels on an H200 (7.1 % mean error); 7.2 % on a second run with other data. Both are in
// reports/results/measured.
constexpr double sm_overlap_order = 2.75;

// overlap_at() with that order: r^2.75 by square roots.
double sm_overlap_at(std::span<const double> times, Corner corner) {
  if (corner != Corner::expected) return overlap_at(times, corner);
  const double top = *std::max_element(times.begin(), times.end());
  if (top <= 0) return 0;
  double sum = 0;
  for (const double time : times) {
    const double ratio = time / top, root = std::sqrt(ratio);
    sum += ratio * ratio * root * std::sqrt(root);
  }
  static_assert(sm_overlap_order == 2.75);
  return top * std::pow(sum, 1 / sm_overlap_order);
}

enum SmResource : std::size_t { shared, matrix, f32, issue, integer, special };

}  // namespace

// An FP8 code is exactly an f16, so a device without FP8 units converts and multiplies as f16.
std::string matrix_units(const std::string& dtype, const DeviceSpec& device) {
  if (device.matrix_flop_per_s.contains(dtype)) return dtype;
  if (dtype == "e4m3" && device.matrix_flop_per_s.contains("f16")) return "f16";
  std::string known;
  for (const auto& [name, rate] : device.matrix_flop_per_s) {
    known += (known.empty() ? "" : ", ") + name;
  }
  throw ConfigError(fmt::format(
      "device {}: /matrix_flop_per_s: found no rate for {}, which the operation multiplies in "
      "(rates given: {}); choose another numeric mode or device, or add the rate",
      device.name, dtype, known.empty() ? "none" : known));
}

Waves waves_of(const Work& work, const DeviceSpec& device) {
  const std::int64_t active = work.blocks - work.idle_blocks;
  if (work.blocks == 0) return {1, 1, 0};
  const std::int64_t resident = std::max<std::int64_t>(1, work.blocks_per_sm);
  const std::int64_t slots = device.sm_count * resident;
  const std::int64_t full = active / slots, rest = active % slots;
  const std::int64_t busiest = (rest + device.sm_count - 1) / device.sm_count;
  return {static_cast<double>(full), static_cast<double>(resident), static_cast<double>(busiest)};
}

std::array<double, 6> block_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  std::array<double, 6> out{};
  const auto set = [&](SmResource resource, double amount, double rate) {
    if (amount > 0) out[resource] = per_block(amount, work, device) / rate;
  };
  set(shared, shared_bytes(work), shared_rate(device, corner));
  if (work.matrix_flop.value > 0)
    set(matrix, work.matrix_flop.value, matrix_rate(work, device, corner));
  set(f32, work.f32_flop.value, f32_rate(device, corner));
  const auto clocked = [&](const Constant& rate) { return cycles_per_s(rate, device, corner); };
  set(issue, work.instructions.issued, clocked(device.issue_per_clock_per_sm));
  set(integer, work.instructions.integer, clocked(device.integer_per_clock_per_sm));
  set(special, work.instructions.special, clocked(device.special_per_clock_per_sm));
  return out;
}

double chain_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                     Corner corner) {
  const Chain& chain = work.chain;
  const auto wait = [&](double steps, const Constant& latency) {
    return steps == 0 ? 0 : steps * delay_at(latency, corner);
  };
  double sum = chain.first_loads == 0
                   ? 0
                   : chain.first_loads * first_load_latency(work, device, options, corner);
  sum += wait(chain.loads, device.l2_latency_s) + wait(chain.shared, device.shared_latency_s) +
         wait(chain.atomics, device.atomic_latency_s) +
         wait(chain.shuffles, device.shuffle_latency_s) +
         wait(chain.barriers, device.barrier_latency_s) +
         wait(chain.arithmetic, device.arithmetic_latency_s) +
         wait(chain.instructions / independent_chains, device.arithmetic_latency_s);
  if (chain.matrix == 0) return sum;
  return sum +
         wait(chain.matrix, device.matrix_latency_s.at(matrix_units(work.matrix_dtype, device)));
}

double sm_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                  Corner corner) {
  const Waves waves = waves_of(work, device);
  const std::array<double, 6> block = block_seconds(work, device, corner);
  const double chain = chain_seconds(work, device, options, corner);
  const auto wave = [&](double blocks) {
    std::array<double, 7> times{};
    for (std::size_t i = 0; i < block.size(); ++i) times[i] = blocks * block[i];
    times.back() = chain;
    return sm_overlap_at(times, corner);
  };
  double sum = waves.full == 0 ? 0 : waves.full * wave(waves.resident);
  if (waves.rest > 0) sum += wave(corner == Corner::slowest ? waves.resident : waves.rest);
  return sum;
}

double shared_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return spread_seconds(block_seconds(work, device, corner)[shared], work, device, corner);
}

double matrix_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return spread_seconds(block_seconds(work, device, corner)[matrix], work, device, corner);
}

double f32_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return spread_seconds(block_seconds(work, device, corner)[f32], work, device, corner);
}

double issue_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return spread_seconds(block_seconds(work, device, corner)[issue], work, device, corner);
}

double integer_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return spread_seconds(block_seconds(work, device, corner)[integer], work, device, corner);
}

double special_seconds(const Work& work, const DeviceSpec& device, Corner corner) {
  return spread_seconds(block_seconds(work, device, corner)[special], work, device, corner);
}

double latency_seconds(const Work& work, const DeviceSpec& device, const CostOptions& options,
                       Corner corner) {
  return waves_of(work, device).count() * chain_seconds(work, device, options, corner);
}

namespace {

// Of all SMs that the grid uses, as the last wave leaves some idle.
std::string rate_text(double amount_of_all, double seconds, const char* unit) {
  return amount(amount_of_all / seconds, unit);
}

std::string chain_text(const Chain& chain) {
  const struct {
    double steps;
    const char* name;
  } parts[] = {{chain.first_loads, "first loads"},
               {chain.loads, "loads"},
               {chain.shared, "shared"},
               {chain.atomics, "atomics"},
               {chain.shuffles, "shuffles"},
               {chain.barriers, "barriers"},
               {chain.matrix, "mma"},
               {chain.arithmetic, "arithmetic"}};
  std::string text;
  for (const auto& part : parts) {
    if (part.steps > 0)
      text += fmt::format("{}{:.4g} {}", text.empty() ? "" : " + ", part.steps, part.name);
  }
  return text;
}

}  // namespace

CostTerm shared_term(const Work& work, const DeviceSpec& device) {
  const double bytes = shared_bytes(work);
  if (bytes == 0) return nothing("shared");
  const auto seconds = [&](Corner corner) { return shared_seconds(work, device, corner); };
  return cost_term("shared", seconds,
                   fmt::format("{} / {}", amount(bytes, "B"),
                               rate_text(bytes, seconds(Corner::expected), "B/s")),
                   device.shared_bytes_per_clock_per_sm.source);
}

CostTerm matrix_term(const Work& work, const DeviceSpec& device) {
  if (work.matrix_flop.value == 0) return nothing("matrix");
  require(work.matrix_flop.value > 0, "matrix operations are negative");
  const std::string units = matrix_units(work.matrix_dtype, device);
  const auto seconds = [&](Corner corner) { return matrix_seconds(work, device, corner); };
  return cost_term(
      "matrix", seconds,
      fmt::format("{} / {} in {}{}", amount(work.matrix_flop.value, "FLOP"),
                  rate_text(work.matrix_flop.value, seconds(Corner::expected), "FLOP/s"), units,
                  units == work.matrix_dtype ? "" : " (no " + work.matrix_dtype + " units)"),
      device.matrix_flop_per_s.at(units).source);
}

CostTerm f32_term(const Work& work, const DeviceSpec& device) {
  if (work.f32_flop.value == 0) return nothing("f32");
  require(work.f32_flop.value > 0, "f32 operations are negative");
  const auto seconds = [&](Corner corner) { return f32_seconds(work, device, corner); };
  return cost_term("f32", seconds,
                   fmt::format("{} / {}", amount(work.f32_flop.value, "FLOP"),
                               rate_text(work.f32_flop.value, seconds(Corner::expected), "FLOP/s")),
                   device.f32_flop_per_s.source);
}

namespace {

template <class SecondsAt>
CostTerm pipe_term(const char* name, double instructions, SecondsAt seconds, const Constant& rate) {
  if (instructions == 0) return nothing(name);
  require(instructions > 0, "warp instructions are negative");
  return cost_term(name, seconds,
                   fmt::format("{} / {}", amount(instructions, "warp instructions"),
                               rate_text(instructions, seconds(Corner::expected), "/s")),
                   rate.source);
}

}  // namespace

CostTerm issue_term(const Work& work, const DeviceSpec& device) {
  return pipe_term(
      "issue", work.instructions.issued,
      [&](Corner corner) { return issue_seconds(work, device, corner); },
      device.issue_per_clock_per_sm);
}

CostTerm integer_term(const Work& work, const DeviceSpec& device) {
  return pipe_term(
      "integer", work.instructions.integer,
      [&](Corner corner) { return integer_seconds(work, device, corner); },
      device.integer_per_clock_per_sm);
}

CostTerm special_term(const Work& work, const DeviceSpec& device) {
  return pipe_term(
      "special", work.instructions.special,
      [&](Corner corner) { return special_seconds(work, device, corner); },
      device.special_per_clock_per_sm);
}

CostTerm latency_term(const Work& work, const DeviceSpec& device, const CostOptions& options) {
  const double chain = chain_seconds(work, device, options, Corner::expected);
  if (chain == 0) return nothing("latency");
  return cost_term(
      "latency", [&](Corner corner) { return latency_seconds(work, device, options, corner); },
      fmt::format("{:.4g} waves x {:.4g} us: {}", waves_of(work, device).count(), chain * 1e6,
                  chain_text(work.chain)),
      device.l2_latency_s.source);
}

}  // namespace indexpool
