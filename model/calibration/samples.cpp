// Samples as JSON: a table of names for each kind, one writer and one reader for each row.
#include "indexpool/model/calibration/samples.hpp"

#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "indexpool/model/error.hpp"
#include "indexpool/model/named_json.hpp"
#include "indexpool/model/strict_json.hpp"

namespace indexpool::calibration {
namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
struct Name {
  std::string_view name;
  Enum value;
};
constexpr Name<Access> accesses[] = {
    {"read", Access::read}, {"write", Access::write}, {"copy", Access::copy}};
constexpr Name<Chain> chains[] = {{"hbm", Chain::hbm},
                                  {"l2", Chain::l2},
                                  {"shared", Chain::shared},
                                  {"atomic", Chain::atomic},
                                  {"shuffle", Chain::shuffle},
                                  {"barrier", Chain::barrier},
                                  {"arithmetic", Chain::arithmetic},
                                  {"matrix", Chain::matrix}};
constexpr Name<Rate> rates[] = {{"issue", Rate::issue},         {"integer", Rate::integer},
                                {"special", Rate::special},     {"shared", Rate::shared},
                                {"f32_fused", Rate::f32_fused}, {"f32_unfused", Rate::f32_unfused},
                                {"matrix", Rate::matrix}};
constexpr Name<Launch> launches[] = {
    {"cold", Launch::cold}, {"warm", Launch::warm}, {"graph", Launch::graph}};

template <class Enum>
std::string_view name_in(std::span<const Name<Enum>> names, Enum value) {
  for (const Name<Enum>& row : names) {
    if (row.value == value) return row.name;
  }
  throw InternalError("a sample of no kind");
}

template <class Enum>
Enum value_in(std::span<const Name<Enum>> names, const JsonValue& value) {
  const std::string text = value.text();
  std::vector<std::string> known;
  for (const Name<Enum>& row : names) {
    if (row.name == text) return row.value;
    known.emplace_back(row.name);
  }
  value.fail(fmt::format("found \"{}\", expected one of {}", text, fmt::join(known, ", ")));
}

constexpr std::int64_t most = std::int64_t{1} << 60;

std::int64_t count(const JsonValue& value) { return value.integer(1, most); }

double positive(const JsonValue& value) {
  const double number = value.number();
  if (!(number > 0 && number < 1e30)) {
    value.fail(fmt::format("found {}, expected a positive number", number));
  }
  return number;
}

Json json_of(const Times& times) { return {times.median, times.low, times.high}; }

Times read_times(const JsonValue& value) {
  const std::vector<JsonValue> parts = value.array();
  if (parts.size() != 3) value.fail("expected [median, 10th percentile, 90th percentile]");
  const Times times{positive(parts[0]), positive(parts[1]), positive(parts[2])};
  if (!(times.low <= times.median && times.median <= times.high)) {
    value.fail("expected the median between its percentiles");
  }
  return times;
}

Json json_of(const DeviceFacts& facts) {
  return {{"name", facts.name},
          {"compute_capability", facts.compute_capability},
          {"driver", facts.driver},
          {"toolkit", facts.toolkit},
          {"date", facts.date},
          {"sm_count", facts.sm_count},
          {"warps_per_sm", facts.warps_per_sm},
          {"memory_bytes", facts.memory_bytes},
          {"l2_bytes", facts.l2_bytes},
          {"shared_bytes_per_sm", facts.shared_bytes_per_sm},
          {"memory_peak_bytes_per_s", facts.memory_peak_bytes_per_s}};
}

DeviceFacts read_facts(const JsonValue& value) {
  const JsonObject object = value.object({"name", "compute_capability", "driver", "toolkit", "date",
                                          "sm_count", "warps_per_sm", "memory_bytes", "l2_bytes",
                                          "shared_bytes_per_sm", "memory_peak_bytes_per_s"});
  DeviceFacts facts;
  facts.name = sourced_text(object["name"]);
  facts.compute_capability = sourced_text(object["compute_capability"]);
  facts.driver = sourced_text(object["driver"]);
  facts.toolkit = sourced_text(object["toolkit"]);
  facts.date = sourced_text(object["date"]);
  facts.sm_count = count(object["sm_count"]);
  facts.warps_per_sm = count(object["warps_per_sm"]);
  facts.memory_bytes = count(object["memory_bytes"]);
  facts.l2_bytes = count(object["l2_bytes"]);
  facts.shared_bytes_per_sm = count(object["shared_bytes_per_sm"]);
  facts.memory_peak_bytes_per_s = positive(object["memory_peak_bytes_per_s"]);
  return facts;
}

Json json_of(const StreamSample& sample) {
  return {{"access", to_string(sample.access)},
          {"bytes", sample.bytes},
          {"threads_per_sm", sample.threads_per_sm},
          {"accesses_in_flight", sample.accesses_in_flight},
          {"seconds", json_of(sample.seconds)}};
}

StreamSample read_stream(const JsonValue& value) {
  const JsonObject object =
      value.object({"access", "bytes", "threads_per_sm", "accesses_in_flight", "seconds"});
  return {value_in<Access>(accesses, object["access"]), count(object["bytes"]),
          count(object["threads_per_sm"]), count(object["accesses_in_flight"]),
          read_times(object["seconds"])};
}

Json json_of(const CachedReadSample& sample) {
  return {{"footprint_bytes", sample.footprint_bytes},
          {"bytes", sample.bytes},
          {"threads_per_sm", sample.threads_per_sm},
          {"accesses_in_flight", sample.accesses_in_flight},
          {"seconds", json_of(sample.seconds)}};
}

CachedReadSample read_cached(const JsonValue& value) {
  const JsonObject object =
      value.object({"footprint_bytes", "bytes", "threads_per_sm", "accesses_in_flight", "seconds"});
  return {count(object["footprint_bytes"]), count(object["bytes"]), count(object["threads_per_sm"]),
          count(object["accesses_in_flight"]), read_times(object["seconds"])};
}

Json json_of(const ChainSample& sample) {
  Json json = {{"chain", to_string(sample.chain)}};
  if (!sample.dtype.empty()) json["dtype"] = sample.dtype;
  if (sample.footprint_bytes != 0) json["footprint_bytes"] = sample.footprint_bytes;
  json["threads"] = sample.threads;
  json["steps"] = sample.steps;
  json["clocks"] = sample.clocks;
  json["seconds"] = sample.seconds;
  return json;
}

ChainSample read_chain(const JsonValue& value) {
  const JsonObject object = value.object({"chain", "threads", "steps", "clocks", "seconds"},
                                         {"dtype", "footprint_bytes"});
  ChainSample sample;
  sample.chain = value_in<Chain>(chains, object["chain"]);
  if (const auto dtype = object.find("dtype")) sample.dtype = sourced_text(*dtype);
  if (const auto footprint = object.find("footprint_bytes"))
    sample.footprint_bytes = count(*footprint);
  sample.threads = count(object["threads"]);
  sample.steps = count(object["steps"]);
  sample.clocks = positive(object["clocks"]);
  sample.seconds = positive(object["seconds"]);
  return sample;
}

Json json_of(const RateSample& sample) {
  Json json = {{"rate", to_string(sample.rate)}};
  if (!sample.dtype.empty()) json["dtype"] = sample.dtype;
  json["warps_per_sm"] = sample.warps_per_sm;
  json["operations"] = sample.operations;
  json["clock_hz"] = sample.clock_hz;
  json["seconds"] = json_of(sample.seconds);
  return json;
}

RateSample read_rate(const JsonValue& value) {
  const JsonObject object =
      value.object({"rate", "warps_per_sm", "operations", "clock_hz", "seconds"}, {"dtype"});
  RateSample sample;
  sample.rate = value_in<Rate>(rates, object["rate"]);
  if (const auto dtype = object.find("dtype")) sample.dtype = sourced_text(*dtype);
  sample.warps_per_sm = count(object["warps_per_sm"]);
  sample.operations = positive(object["operations"]);
  sample.clock_hz = positive(object["clock_hz"]);
  sample.seconds = read_times(object["seconds"]);
  return sample;
}

Json json_of(const LaunchSample& sample) {
  return {{"launch", to_string(sample.launch)},
          {"blocks", sample.blocks},
          {"launches", sample.launches},
          {"seconds", json_of(sample.seconds)}};
}

LaunchSample read_launch(const JsonValue& value) {
  const JsonObject object = value.object({"launch", "blocks", "launches", "seconds"});
  return {value_in<Launch>(launches, object["launch"]), count(object["blocks"]),
          count(object["launches"]), read_times(object["seconds"])};
}

// One row a line: a file of samples is read by people, too.
template <class Sample>
void append(std::string& text, std::string_view key, const std::vector<Sample>& samples) {
  text += fmt::format(",\n\"{}\": [", key);
  const char* separator = "\n";
  for (const Sample& sample : samples) {
    text += separator;
    text += json_of(sample).dump();
    separator = ",\n";
  }
  text += "]";
}

template <class Sample, class Read>
void read_all(const JsonValue& list, std::vector<Sample>& samples, Read read) {
  for (const JsonValue& each : list.array()) samples.push_back(read(each));
}

}  // namespace

std::string_view to_string(Access access) { return name_in<Access>(accesses, access); }
std::string_view to_string(Chain chain) { return name_in<Chain>(chains, chain); }
std::string_view to_string(Rate rate) { return name_in<Rate>(rates, rate); }
std::string_view to_string(Launch launch) { return name_in<Launch>(launches, launch); }

std::string to_json(const Samples& samples) {
  std::string text = "{\"device\": " + json_of(samples.facts).dump();
  append(text, "streams", samples.streams);
  append(text, "cached_reads", samples.cached_reads);
  append(text, "chains", samples.chains);
  append(text, "rates", samples.rates);
  append(text, "launches", samples.launches);
  return text + "}\n";
}

Samples read_samples(const std::filesystem::path& path) {
  const JsonObject root =
      read_json(path).object({"device", "streams", "cached_reads", "chains", "rates", "launches"});
  Samples samples;
  samples.facts = read_facts(root["device"]);
  read_all(root["streams"], samples.streams, read_stream);
  read_all(root["cached_reads"], samples.cached_reads, read_cached);
  read_all(root["chains"], samples.chains, read_chain);
  read_all(root["rates"], samples.rates, read_rate);
  read_all(root["launches"], samples.launches, read_launch);
  return samples;
}

}  // namespace indexpool::calibration
