#include "indexpool/reference/training/planted.hpp"

#include <cmath>

#include "indexpool/reference/training/draws.hpp"

namespace indexpool::reference::training {
namespace {

constexpr std::uint64_t world_stream = 1, first_sequence_stream = 1000;
constexpr double accesses_of_salient = 6, accesses_of_others = 2;  // means, our choice
constexpr double age_of_salient = 8, age_of_others = 24;           // means in steps, our choice

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::vector<double> unit_vector(Draws& draws, std::int64_t n) {
  std::vector<double> x(size(n));
  double square = 0;
  for (double& value : x) {
    value = draws.normal();
    square += value * value;
  }
  for (double& value : x) value /= std::sqrt(square);
  return x;
}

// What all sequences of a seed share.
struct World {
  std::vector<double> salience;             // [X]
  std::vector<std::vector<double>> topics;  // of [X]
  std::vector<double> map;                  // [D, X]

  explicit World(const PlantedOptions& o) {
    Draws draws(o.seed, world_stream);
    salience = unit_vector(draws, o.features);
    for (std::int64_t t = 0; t < o.topics; ++t) topics.push_back(unit_vector(draws, o.features));
    map.resize(size(o.head_dim * o.features));
    for (double& x : map) x = draws.normal();
  }
};

std::vector<double> mapped(const PlantedOptions& o, const World& world, const double* features) {
  std::vector<double> key(size(o.head_dim));
  for (std::size_t c = 0; c < key.size(); ++c) {
    const double* row = world.map.data() + c * size(o.features);
    for (std::size_t x = 0; x < size(o.features); ++x) key[c] += row[x] * features[x];
  }
  return key;
}

void append(std::vector<double>& to, const std::vector<double>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

// Returns the topic of each group's salient token.
std::vector<std::int64_t> add_tokens(const PlantedOptions& o, const World& world, Draws& draws,
                                     Sequence& out) {
  std::vector<std::int64_t> topics;
  for (std::int64_t g = 0; g < o.tokens / o.index_kpool; ++g) {
    out.salient.push_back(draws.below(o.index_kpool));
    topics.push_back(draws.below(o.topics));
    for (std::int64_t i = 0; i < o.index_kpool; ++i) {
      const bool salient = i == out.salient.back();
      std::vector<double> x = unit_vector(draws, o.features);
      if (salient) x = world.topics[size(topics.back())];
      for (std::size_t c = 0; c < x.size(); ++c) {
        if (salient) x[c] += o.salience * world.salience[c];
        x[c] += o.noise * draws.normal();
      }
      append(out.keys, mapped(o, world, x.data()));
      append(out.features, x);
    }
  }
  return topics;
}

void add_queries(const PlantedOptions& o, const World& world, Draws& draws,
                 const std::vector<std::int64_t>& topics, Sequence& out) {
  for (std::int64_t q = 0; q < o.queries * o.heads; ++q) {
    const auto group = draws.below(static_cast<std::int64_t>(topics.size()));
    std::vector<double> x = world.topics[size(topics[size(group)])];
    for (double& value : x) value += o.noise * draws.normal();
    append(out.queries, mapped(o, world, x.data()));
    out.head_weights.push_back(0.5 + draws.uniform());
  }
}

// Exponentially distributed ages and access counts; the idf from a count of groups that is high
// for tokens that are used everywhere.
void add_use(const PlantedOptions& o, Draws& draws, Sequence& out) {
  const auto groups = static_cast<double>(out.salient.size());
  for (const std::int64_t place : out.salient) {
    std::vector<double> accesses;
    double all = 0;
    for (std::int64_t i = 0; i < o.index_kpool; ++i) {
      const bool salient = i == place;
      const double age = salient ? age_of_salient : age_of_others;
      out.ages.push_back(std::floor(-age * std::log(1 - draws.uniform())));
      const double mean = salient ? accesses_of_salient : accesses_of_others;
      accesses.push_back(std::floor(-mean * std::log(1 - draws.uniform())));
      all += accesses.back();
    }
    for (const double count : accesses) {
      const double accessed = std::floor(groups * draws.uniform());
      const double idf = std::log((1 + groups) / (1 + accessed)) + 1;
      out.access_terms.push_back(all > 0 ? count / all * idf : 0);
    }
  }
}

}  // namespace

std::vector<Sequence> planted_sequences(const PlantedOptions& o, std::int64_t first) {
  const World world(o);
  std::vector<Sequence> sequences;
  for (std::int64_t n = first; n < first + o.sequences; ++n) {
    Draws draws(o.seed, first_sequence_stream + static_cast<std::uint64_t>(n));
    Sequence sequence;
    const auto topics = add_tokens(o, world, draws, sequence);
    add_queries(o, world, draws, topics, sequence);
    add_use(o, draws, sequence);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

}  // namespace indexpool::reference::training
