#include "indexpool/reference/training/fake_quantise.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "indexpool/model/error.hpp"
#include "indexpool/reference/rounding.hpp"
#include "indexpool/reference/training/draws.hpp"

namespace indexpool::reference::training {
namespace {

constexpr Width widths[] = {Width::off, Width::f16, Width::e4m3, Width::i8};

Width width_named(std::string_view name, std::string_view text) {
  for (const Width width : widths) {
    if (to_string(width) == name) return width;
  }
  throw ConfigError(fmt::format(
      "quantised paths \"{}\": found width \"{}\", expected off, f16, e4m3 or int8", text, name));
}

Format format_of(Width width) {
  const DType dtype =
      width == Width::f16 ? DType::f16 : (width == Width::e4m3 ? DType::e4m3 : DType::i8);
  return reference::format_of(dtype);
}

double scale_of(const std::vector<double>& values, Width width) {
  if (width == Width::f16 || values.empty()) return 1;
  std::vector<double> magnitudes = values;
  for (double& x : magnitudes) x = std::abs(x);
  const auto rank =
      static_cast<std::size_t>(covered_share * static_cast<double>(magnitudes.size() - 1));
  std::nth_element(magnitudes.begin(), magnitudes.begin() + static_cast<std::ptrdiff_t>(rank),
                   magnitudes.end());
  return magnitudes[rank] > 0 ? magnitudes[rank] / format_of(width).largest : 1;
}

// Distance between neighbouring codes at x.
double spacing_at(double x, const Format& format) {
  const int exponent = x == 0 ? format.min_exponent : std::max(std::ilogb(x), format.min_exponent);
  return std::ldexp(1.0, exponent - (format.digits - 1));
}

FakeQuantised each(std::vector<double> values, Width width,
                   const std::function<double(double, const Format&)>& change) {
  FakeQuantised result{std::move(values), {}};
  result.inside.assign(result.values.size(), 1);
  if (width == Width::off) return result;
  const Format format = format_of(width);
  const double scale = scale_of(result.values, width);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const double code = result.values[i] / scale;
    result.inside[i] = std::abs(code) <= format.largest;
    const double kept = std::clamp(code, -format.largest, format.largest);
    result.values[i] = change(kept, format) * scale;
  }
  return result;
}

}  // namespace

std::string_view to_string(Width width) {
  switch (width) {
    case Width::off:
      return "off";
    case Width::f16:
      return "f16";
    case Width::e4m3:
      return "e4m3";
    case Width::i8:
      return "int8";
  }
  throw InternalError("a Width outside its enumeration");
}

QuantisedPaths parse_paths(std::string_view text) {
  if (text.empty() || text == "off") return {};
  if (text.find('=') == std::string_view::npos)
    return {Width::f16, Width::f16, width_named(text, text)};
  QuantisedPaths paths;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const Width width = width_named(part.substr(std::min(equals + 1, part.size())), text);
    if (name == "vectors") {
      paths.vectors = width;
    } else if (name == "pool_weights") {
      paths.pool_weights = width;
    } else if (name == "pooled") {
      paths.pooled = width;
    } else {
      throw ConfigError(fmt::format(
          "quantised paths \"{}\": found path \"{}\", expected vectors, pool_weights or pooled",
          text, name));
    }
  }
  return paths;
}

std::string to_string(const QuantisedPaths& paths) {
  return fmt::format("vectors={},pool_weights={},pooled={}", to_string(paths.vectors),
                     to_string(paths.pool_weights), to_string(paths.pooled));
}

FakeQuantised fake_quantise(std::vector<double> values, Width width) {
  return each(std::move(values), width,
              [](double code, const Format& format) { return round_to_format(code, format); });
}

FakeQuantised add_quantiser_noise(std::vector<double> values, Width width, std::uint64_t seed,
                                  std::uint64_t stream) {
  Draws draws(seed, stream);
  return each(std::move(values), width, [&draws](double code, const Format& format) {
    return code + (draws.uniform() - 0.5) * spacing_at(code, format);
  });
}

}  // namespace indexpool::reference::training
