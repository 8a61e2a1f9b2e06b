#include "indexpool/reports/cli/memory_page_of.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "indexpool/reports/quantity.hpp"

namespace indexpool::cli {
namespace {

using reports::Curve;
using reports::MemoryPage;

MemoryPage::Waterfall waterfall_of(const ModelMemory& memory, std::int64_t tokens, Bytes usable) {
  MemoryPage::Waterfall fall;
  const Bytes total = memory.on_one_gpu().total;
  fall.heading = fmt::format(
      "{} tokens: {}", reports::format_tokens(tokens),
      total <= usable
          ? "fits"
          : "does not fit, " + reports::format_bytes(static_cast<double>((total - usable).value)) +
                " are missing");
  fall.usable = static_cast<double>(usable.value);
  for (const MemoryTerm& term : memory.on_one_gpu().terms) {
    fall.steps.push_back({to_string(term.kind), term.name, static_cast<double>(term.bytes.value)});
  }
  return fall;
}

void add_terms(reports::Table& table, const ModelMemory& memory, std::int64_t tokens) {
  for (const MemoryTerm& term : memory.on_one_gpu().terms) {
    table.rows.push_back({{reports::format_tokens(tokens), tokens},
                          {to_string(term.kind)},
                          {term.name},
                          {reports::format_count(term.bytes.value), term.bytes.value},
                          {term.formula},
                          {term.source}});
  }
}

void add_point(Curve& curve, std::int64_t tokens, Bytes bytes) {
  curve.tokens.push_back(static_cast<double>(tokens));
  for (auto* values : {&curve.value, &curve.low, &curve.high}) {
    values->push_back(static_cast<double>(bytes.value));
  }
}

std::vector<Curve> curves_of(const Architecture& model, MemoryRequest request, Bytes usable) {
  const auto named = [](const char* name) {
    return Curve{name, "memory", "bytes", {}, {}, {}, {}};
  };
  std::vector<Curve> curves = {named("one GPU"),
                               named("cache"),
                               named("work buffers"),
                               named("index keys"),
                               named("one index key a token"),
                               named("usable")};
  constexpr std::int64_t last = 10 << 20;
  for (std::int64_t tokens = 4 << 10;; tokens = std::min(2 * tokens, last)) {
    request.tokens = tokens;
    const ModelMemory memory = model_memory(model, request);
    MemoryRequest unpooled = request;
    unpooled.pooled = false;
    add_point(curves[0], tokens, memory.on_one_gpu().total);
    add_point(curves[1], tokens, bytes_of(memory, MemoryKind::cache));
    add_point(curves[2], tokens, bytes_of(memory, MemoryKind::workspace));
    add_point(curves[3], tokens, bytes_of(memory, "index keys"));
    add_point(curves[4], tokens, bytes_of(model_memory(model, unpooled), "index keys"));
    add_point(curves[5], tokens, usable);
    if (tokens == last) return curves;
  }
}

}  // namespace

reports::MemoryPage memory_page_of(const Architecture& model, MemoryRequest request,
                                   const std::vector<std::int64_t>& tokens, Bytes usable) {
  MemoryPage page;
  page.title = fmt::format(
      "Memory of {}, served by {}", model.name,
      request.engine == Engine::packed ? "no engine: packed entries" : to_string(request.engine));
  page.terms.columns = {{"tokens", "tokens", true}, {"kind", "kind"},   {"what", "what"},
                        {"bytes", "bytes", true},   {"formula", "how"}, {"source", "source"}};
  for (const std::int64_t each : tokens) {
    request.tokens = each;
    const ModelMemory memory = model_memory(model, request);
    page.waterfalls.push_back(waterfall_of(memory, each, usable));
    add_terms(page.terms, memory, each);
  }
  page.curves = curves_of(model, request, usable);
  return page;
}

}  // namespace indexpool::cli
