// Which shapes are measured: a grid of points, read from JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "indexpool/model/config.hpp"

namespace indexpool::verify::timing {

// One launch of one kernel.
struct Point {
  std::string op, kernel;  // "logits", "logits_mma"
  std::string mode = "vllm_fp8";
  std::int64_t tokens = 0;  // of each sequence, those of `rows` included
  std::int64_t batch = 1;   // sequences
  std::int64_t rows = 1;    // query rows of each sequence: its last tokens

  bool operator==(const Point&) const = default;
};
// "logits_mma vllm_fp8, 16 x 1048576 tokens, 1 row each"
std::string describe(const Point& point);

// What every point of a grid shares.
struct Geometry {
  IndexerConfig indexer;
  std::int64_t states_per_page = 64;

  bool operator==(const Geometry&) const = default;
};

struct Grid {
  std::string name, why, architecture;
  Geometry geometry;
  std::vector<Point> points;
};

std::vector<std::string> operation_names();  // operations a grid may hold, in launch order
std::vector<std::string> kernel_names(std::string_view op);

// Strict JSON: {"name", "why", "architecture", "cases": [...]}; a case's axes are lists ("op",
// "kernel", "mode", "tokens", "batch", "rows") whose product is taken, "most_tokens" leaves out
// points with more tokens in all. Throws ConfigError.
Grid parse_grid(std::string_view text, std::string_view where);
std::vector<std::string> grid_names();
Grid load_grid(const std::string& name_or_path);

}  // namespace indexpool::verify::timing
