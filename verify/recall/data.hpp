// What recall is taken on: sequences of keys, and the queries that ask for some of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "indexpool/model/safetensors.hpp"
#include "indexpool/reference/training/objective.hpp"

namespace indexpool::verify::recall {

struct DataSet {
  std::string name, about;
  reference::training::Geometry geometry;  // of every sequence; index_kpool is the caller's
  // Parameters are learnt on the first, recall is taken on the second.
  std::vector<reference::training::Sequence> learnt_from, held_out;
  std::int64_t k = 16;  // tokens asked for, unless the caller says otherwise
  // Consecutive queries of a sequence that intervals resample together, and what they are.
  std::int64_t queries_per_unit = 1;
  std::string unit;
  // [N] how often the learnt-from queries asked for a token; empty: the sequences' own terms.
  std::vector<double> accesses;
  bool relu = true;  // of the heads' scores: an indexer has it, attention has not
};

struct Sizes {
  std::uint64_t seed = 1;
  std::int64_t learnt_from = 24, held_out = 48;  // sequences
};
// 256 tokens of 32 channels, 4 heads, 8 queries a sequence.
DataSet planted_data(const Sizes& sizes);
// The same with every key, feature and query drawn anew: nothing is there to be learnt.
DataSet unstructured_data(const Sizes& sizes);

// Names of the layers that activations() can give.
const std::vector<std::string>& layers();
// One layer of verify/recall/activations.py's file: keys of the first 1024 tokens, and the queries
// of 128 later positions, which see all of them. Each of the three query heads asks by itself, as
// in attention. Blocks of 16 positions are learnt from and held out by turns. Features: the hidden
// states where the file has them, else the keys. ConfigError naming file and tensor.
DataSet activations(const TensorFile& file, const std::string& layer);

// Both parts as pooled `ratio` to one: the access terms of article D are taken over groups of it.
std::vector<reference::training::Sequence> grouped(
    const DataSet& data, std::vector<reference::training::Sequence> sequences, std::int64_t ratio);

}  // namespace indexpool::verify::recall
