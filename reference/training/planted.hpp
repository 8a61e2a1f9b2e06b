// Seeded sequences with a structure that pooling can learn.
//
// Every group of index_kpool tokens has one salient token, at a random place. Features: of a
// salient token, a topic's direction plus `salience` times one direction that all salient tokens
// share; of the others, a random direction of the same length as a topic's; noise on both. Keys are
// a linear map of the features. Each head of a query asks for the topic of one salient token. So
// the tokens that score highest one by one are salient, a mean over the group buries them under
// index_kpool - 1 vectors that no query asks for, and the shared direction tells a gate which
// vector to keep. Salient tokens are also used more often and more recently than others, with
// noise.
#pragma once

#include <cstdint>
#include <vector>

namespace indexpool::reference::training {

struct PlantedOptions {
  std::uint64_t seed = 1;
  std::int64_t sequences = 64, tokens = 256, features = 32, head_dim = 32, heads = 4, queries = 8;
  std::int64_t index_kpool = 4, topics = 16;
  double salience = 1.5, noise = 0.15;
};

struct Sequence {
  std::vector<double> features;       // [N, X]
  std::vector<double> keys;           // [N, D]
  std::vector<double> queries;        // [Q, H, D]
  std::vector<double> head_weights;   // [Q, H], positive
  std::vector<double> ages;           // [N] steps since the token was last used
  std::vector<double> access_terms;   // [N] tf idf of article D, tf within the token's group
  std::vector<std::int64_t> salient;  // [N / index_kpool] its place in the group
};

// The directions and the map are those of the seed; sequence number n of a seed is the same however
// many are made, so that first .. first + sequences - 1 can be kept apart from others.
std::vector<Sequence> planted_sequences(const PlantedOptions& options, std::int64_t first);

}  // namespace indexpool::reference::training
