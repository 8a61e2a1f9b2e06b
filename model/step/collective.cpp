#include "indexpool/model/step/collective.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "indexpool/model/cost_corner.hpp"
#include "indexpool/model/error.hpp"
#include "indexpool/model/step/work_numbers.hpp"

namespace indexpool::step {
namespace {

// vLLM's all-reduce kernel, csrc/custom_all_reduce.cuh: 36 blocks of 512 threads, 16 bytes each in
// flight. From another GPU they take 4.5 us under load: so 1 MB takes 20, 31 and 34 us on 2, 4 and
// 8 H100s, as published (sgl-project/sglang#2904). Interval: 2 us, half the links' rate, to 6 us,
// what the same table has for the slower kernel.
constexpr double direct_in_flight_bytes = 36 * 512 * 16;
constexpr double loaded_latency_s = 4.5e-6, least_latency_s = 2e-6, most_latency_s = 6e-6;

double loaded_latency(Corner corner) {
  if (corner == Corner::expected) return loaded_latency_s;
  return corner == Corner::fastest ? least_latency_s : most_latency_s;
}

// A ring's start-up besides its hops: NCCL's kernels take 10 us and more for the smallest message.
// Assumed, 5 to 20 us.
constexpr double ring_start_s = 10e-6, least_ring_start_s = 5e-6, most_ring_start_s = 20e-6;

double ring_start(Corner corner) {
  if (corner == Corner::expected) return ring_start_s;
  return corner == Corner::fastest ? least_ring_start_s : most_ring_start_s;
}

struct Traffic {
  double sent = 0;       // bytes that a GPU sends in the least
  double sent_once = 0;  // when every GPU reads all it needs in one phase
  double ring_hops = 0;  // messages one after the other in a ring
};

Traffic traffic_of(const Collective& c, std::int64_t rows) {
  const double bytes = real(c.bytes_per_row) * real(rows);
  const double ranks = real(c.ranks), others = ranks - 1;
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      return {2 * bytes * others / ranks, bytes * others, 2 * others};
    case CollectiveKind::all_gather:
      return {bytes * others, bytes * others, others};
    case CollectiveKind::all_to_all:
      return {bytes * others / ranks, bytes * others / ranks, others};
    case CollectiveKind::send:
      return {bytes, bytes, 1};
  }
  throw InternalError("a collective of no kind");
}

double link_seconds(const Collective& c, std::int64_t rows, const DeviceSpec& device,
                    Corner corner) {
  const Traffic traffic = traffic_of(c, rows);
  const double exchange = delay_at(*device.link_latency_s, corner);
  const double rate = rate_at(*device.link_bytes_per_s, corner);
  // All wait for all: flags spread in log2(ranks) exchanges.
  const double meet = exchange * std::max(1.0, std::log2(real(c.ranks)));
  const double direct = std::min(rate, direct_in_flight_bytes / loaded_latency(corner));
  return std::min({meet + traffic.sent_once / direct, 2 * meet + traffic.sent / direct,
                   ring_start(corner) + traffic.ring_hops * exchange + traffic.sent / rate});
}

double launch_seconds(const DeviceSpec& device, const CostOptions& options, Corner corner) {
  return delay_at(options.graph_launch ? device.graph_launch_s : device.launch_s, corner);
}

void require_links(const DeviceSpec& device) {
  if (device.link_bytes_per_s && device.link_latency_s) return;
  throw ConfigError(fmt::format(
      "device {}: /{}: not given, but more than one GPU was asked for; add the links' rate and "
      "latency to the device's file",
      device.name, device.link_bytes_per_s ? "link_latency_s" : "link_bytes_per_s"));
}

}  // namespace

const char* to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::send:
      return "send";
  }
  return "unknown";
}

CostNumbers predict_numbers(const Collective& collective, std::int64_t rows,
                            const DeviceSpec& device, const CostOptions& options) {
  require_links(device);
  const auto at = [&](Corner corner) {
    return Seconds(launch_seconds(device, options, corner) +
                   link_seconds(collective, rows, device, corner));
  };
  return {at(Corner::expected), at(Corner::fastest), at(Corner::slowest)};
}

Prediction predict(const Collective& collective, std::int64_t rows, const DeviceSpec& device,
                   const CostOptions& options) {
  const CostNumbers numbers = predict_numbers(collective, rows, device, options);
  Prediction out;
  out.device = device.name;
  out.time = numbers.time;
  out.low = numbers.low;
  out.high = numbers.high;
  const auto at = [&](Corner corner) {
    return Seconds(link_seconds(collective, rows, device, corner));
  };
  const Constant& launch = options.graph_launch ? device.graph_launch_s : device.launch_s;
  out.terms = {
      {"launch", Seconds(launch.value), Seconds(launch.low), Seconds(launch.high),
       fmt::format("1 x {:.3g} us{}", launch.value * 1e6,
                   options.graph_launch ? " in a graph" : ""),
       launch.source},
      {"link", at(Corner::expected), at(Corner::fastest), at(Corner::slowest),
       fmt::format(
           "least of: one phase, two phases (kernel: {:.3g} GB/s, {:.3g} us an exchange), "
           "ring ({:.3g} GB/s, {:.3g} us to start); at least {:.4g} kB sent",
           std::min(device.link_bytes_per_s->value, direct_in_flight_bytes / loaded_latency_s) /
               1e9,
           device.link_latency_s->value * 1e6, device.link_bytes_per_s->value / 1e9,
           ring_start_s * 1e6, traffic_of(collective, rows).sent / 1e3),
       fmt::format("rate: {}; exchange: {}", device.link_bytes_per_s->source,
                   device.link_latency_s->source)}};
  out.bound_by = out.terms[0].time > out.terms[1].time ? "launch" : "link";
  return out;
}

}  // namespace indexpool::step
