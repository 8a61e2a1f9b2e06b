#include "indexpool/verify/rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace indexpool::verify {
namespace {

bool is_close(double found, double expected, double rtol, double atol) {
  return found == expected || std::abs(found - expected) <= atol + rtol * std::abs(expected);
}

bool is_relatively_equal(double a, double b, double epsilon) {
  const double floor = std::numeric_limits<float>::min();  // the type's smallest normal number
  const double difference = std::abs(a - b);
  if (a == b) return true;
  if (a == 0 || b == 0 || difference < floor) return difference < epsilon * floor;
  return difference < epsilon * (std::abs(a) + std::abs(b));
}

bool by_calc_diff(const Observation& tested, const Observation&) {
  return calc_diff(tested.found, tested.expected) < 1e-3;
}
// 0.1 where e4m3 or int8 codes are compared with what they stand for (1e-2 would refuse the correct
// kernel: a step of e4m3 is 2^-3 of its value), 1e-2 for logits.
bool by_all_close(const Observation& tested, const Observation&) {
  const double tolerance = tested.op == Op::logits ? 1e-2 : 0.1;
  return all_close(tested.found, tested.expected, tolerance, tolerance);
}
bool by_twice_the_error(const Observation& tested, const Observation& correct) {
  return largest_error(tested.found, tested.expected) <=
         2 * largest_error(correct.found, correct.expected);
}
bool by_relative_error(const Observation& tested, const Observation&) {
  return relatively_equal(tested.found, tested.stored, 0.1);
}
bool by_overlap(const Observation& tested, const Observation&) {
  return index_overlap(tested.found, tested.expected, tested.width) >= 0.9;
}

}  // namespace

std::span<const Rule> accepted_rules() {
  static constexpr Rule rules[] = {
      {"calc_diff", "1 - 2<x,y> / (<x,x> + <y,y>) < 1e-3",
       "DeepGEMM tests/test_attention.py, vLLM test_deepgemm_attention.py", false, by_calc_diff},
      {"allclose", "|x - y| <= tol + tol |y|; tol 1e-2 for logits, 0.1 for dequantised codes",
       "torch.testing.assert_close in FlashInfer and vLLM tests", false, by_all_close},
      {"twice_error", "max|x - y| <= 2 max|x_correct - y|, x_correct the unmutated kernel's",
       "FlashAttention tests/test_flash_attn.py, stricter: there x_correct is a low-precision run",
       false, by_twice_the_error},
      {"relative_0.1", "|x - y| < 0.1 (|x| + |y|), y in the type of the output",
       "CUTLASS cutlass/relatively_equal.h, relative mode of the GEMM testbeds", false,
       by_relative_error},
      {"overlap_0.9", "at least 0.9 of the right indices selected", "FlashInfer top-k tests", true,
       by_overlap}};
  return rules;
}

double calc_diff(std::span<const double> found, std::span<const double> expected) {
  double both = 0, product = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    both += found[i] * found[i] + expected[i] * expected[i];
    product += found[i] * expected[i];
  }
  return both == 0 ? 0 : 1 - 2 * product / both;
}

bool all_close(std::span<const double> found, std::span<const double> expected, double rtol,
               double atol) {
  return std::ranges::equal(found, expected,
                            [&](double x, double y) { return is_close(x, y, rtol, atol); });
}

double largest_error(std::span<const double> found, std::span<const double> expected) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = found[i] == expected[i] ? 0 : std::abs(found[i] - expected[i]);
    largest =
        std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  }
  return largest;
}

bool relatively_equal(std::span<const double> found, std::span<const double> expected,
                      double epsilon) {
  return std::ranges::equal(found, expected,
                            [&](double x, double y) { return is_relatively_equal(x, y, epsilon); });
}

double index_overlap(std::span<const double> found, std::span<const double> expected,
                     std::int64_t width) {
  std::size_t wanted = 0, common = 0;
  const auto row = static_cast<std::size_t>(width);
  for (std::size_t first = 0; first < expected.size(); first += row) {
    const auto of_found = found.subspan(first, row), of_expected = expected.subspan(first, row);
    std::set<double> right(of_expected.begin(), of_expected.end());
    std::set<double> chosen(of_found.begin(), of_found.end());
    right.erase(-1);
    wanted += right.size();
    common += static_cast<std::size_t>(
        std::ranges::count_if(right, [&](double index) { return chosen.contains(index); }));
  }
  return wanted == 0 ? 1 : static_cast<double>(common) / static_cast<double>(wanted);
}

}  // namespace indexpool::verify
