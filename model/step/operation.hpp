// The operations of a step: what each moves and computes as a function of the step's size.
// Everything is of one rank: sizes are what tensor parallelism leaves of them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "indexpool/model/architecture.hpp"
#include "indexpool/model/step/size.hpp"
#include "indexpool/model/traffic.hpp"
#include "indexpool/model/units.hpp"

namespace indexpool::step {

// out[rows][n] = in[rows][k] times parameters [n][k]. `copies` products of other parameters, one
// for each head or group, share a launch.
struct MatrixProduct {
  std::int64_t n = 0, k = 0, copies = 1;
  ParameterFormat format = ParameterFormat::bf16;
  Bytes parameters;  // of all copies, scales included
};

// One product for each routed expert that a row of the step chose. Rows choose `per_token` of
// `routed` experts; `here` of them lie on this rank.
struct ExpertProduct {
  std::int64_t n = 0, k = 0;
  std::int64_t routed = 0, here = 0, per_token = 0;
  ParameterFormat format = ParameterFormat::bf16;
  Bytes parameters;  // of one expert
};

// Element-wise work, norms and lookups: bytes that pass once.
struct Stream {
  std::int64_t read_per_row = 0, write_per_row = 0;
  Bytes parameters;
  std::int64_t state_per_sequence = 0;  // read and written
  std::int64_t flop_per_row = 0;
  std::int64_t launches = 1;
};

// Queries against cached entries. A row sees the entries of `tokens_per_entry` tokens each up to
// its own position: all of them, or at most `selected` of them, chosen by an indexer row by row;
// and besides the last `window` tokens.
struct Attention {
  std::int64_t heads = 0, key_heads = 1;  // heads / key_heads queries share an entry's key
  std::int64_t key_dim = 0, value_dim = 0;
  std::int64_t entry_bytes = 0;  // of all key heads
  std::int64_t tokens_per_entry = 1;
  bool whole = true;          // false: no entries but those of the window
  std::int64_t selected = 0;  // 0: all
  std::int64_t window = 0, window_entry_bytes = 0;
  std::int64_t context_ranks = 1;  // that share a sequence's entries evenly
  Bytes parameters;                // sinks
  bool converted = false;          // entries are stored in eight bits
};

// Delta rule: a state of key_dim x value_dim a head, f32, updated token by token (decode) or in
// chunks of 64 tokens (prefill).
struct Recurrence {
  std::int64_t heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t row_width = 0;    // elements of a row's queries, keys, values and gates
  std::int64_t state_bytes = 0;  // of a sequence
  Bytes parameters;
};

enum class CollectiveKind { all_reduce, all_gather, all_to_all, send };
const char* to_string(CollectiveKind kind);

// bytes_per_row: of the whole result for an all-reduce, of a rank's part for an all-gather, of what
// a rank has for others for an all-to-all.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t ranks = 1, bytes_per_row = 0;
};

// The indexer's own kernels: the caller declares their work (see Declared).
struct IndexerKernels {};

using Shape = std::variant<MatrixProduct, ExpertProduct, Stream, Attention, Recurrence, Collective,
                           IndexerKernels>;

// What an operation reads of parameters and of caches and states, each byte once.
struct ReadBytes {
  Bytes parameters, cache;
};

// Work that a kernel declares, at one size.
struct Declared {
  std::string name, kernel;  // "logits", "logits_mma"
  Work work;
  Bytes cache;          // of what it reads, index keys, each once
  std::string refusal;  // why no kernel takes it; empty where one does
};

// Engines run some operations on a second stream.
enum class Lane { main, side };

struct Operation {
  std::string group;  // how tables add up: "attention", "routed experts"
  std::string name;   // "o_proj"
  Shape shape;
  std::int64_t count = 1;  // in a step
  // Of the operations of one section, those of the side lane run beside those of the main one. 0:
  // nothing runs beside it.
  int section = 0;
  Lane lane = Lane::main;
  bool of_sequences = false;  // one row of each sequence instead of all rows
  std::string source;         // of the shape
};

}  // namespace indexpool::step
