#include "indexpool/verify/recall/data.hpp"

#include <cmath>

#include "indexpool/model/error.hpp"
#include "indexpool/verify/random.hpp"

namespace indexpool::verify::recall {
namespace {

using namespace reference::training;
using reference::training::Sequence;

constexpr std::uint64_t first_stream = 1 << 20;  // of random sequences, apart from all others

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

void redraw(std::vector<double>& values, const Random& random, std::int64_t first) {
  for (double& x : values) x = random.normal(first++);
}

void redraw(std::vector<Sequence>& sequences, std::uint64_t seed, std::uint64_t stream) {
  for (Sequence& sequence : sequences) {
    const Random random(seed, stream++);
    redraw(sequence.keys, random, 0);
    redraw(sequence.features, random, 1 << 20);
    redraw(sequence.queries, random, 2 << 20);
  }
}

}  // namespace

DataSet planted_data(const Sizes& sizes) {
  DataSet data;
  data.name = "planted";
  data.about =
      "one token in four is salient and shares a direction with all that are; queries ask for "
      "salient tokens";
  PlantedOptions options;
  options.seed = sizes.seed;
  data.geometry = geometry_of(options);
  options.sequences = sizes.learnt_from;
  data.learnt_from = planted_sequences(options, 0);
  options.sequences = sizes.held_out;
  data.held_out = planted_sequences(options, sizes.learnt_from);
  data.queries_per_unit = options.queries;
  data.unit = "sequences";
  return data;
}

DataSet unstructured_data(const Sizes& sizes) {
  DataSet data = planted_data(sizes);
  data.name = "random";
  data.about = "independent normal keys and queries: there is nothing to learn";
  redraw(data.learnt_from, sizes.seed, first_stream);
  redraw(data.held_out, sizes.seed, first_stream + size(sizes.learnt_from));
  return data;
}

std::vector<Sequence> grouped(const DataSet& data, std::vector<Sequence> sequences,
                              std::int64_t ratio) {
  if (data.accesses.empty()) return sequences;
  const std::int64_t whole = data.geometry.tokens / ratio;
  const auto groups = static_cast<double>(whole);
  // A token stands in one group of a text, so the groups in which it was asked for are one.
  const double idf = std::log((1 + groups) / (1 + 1)) + 1;
  std::vector<double> terms(data.accesses.size());
  for (std::size_t first = 0; first + size(ratio) <= terms.size(); first += size(ratio)) {
    double all = 0;
    for (std::size_t i = 0; i < size(ratio); ++i) all += data.accesses[first + i];
    for (std::size_t i = 0; i < size(ratio) && all > 0; ++i)
      terms[first + i] = data.accesses[first + i] / all * idf;
  }
  for (Sequence& sequence : sequences) sequence.access_terms = terms;
  return sequences;
}

}  // namespace indexpool::verify::recall
