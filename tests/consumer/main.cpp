// Certifies a small problem through the installed headers and libraries.
#include <cstdio>

#include "indexpool/model/problem.hpp"
#include "indexpool/verify/verify.hpp"

int main() {
  indexpool::Problem problem;
  problem.lengths = {13};
  const auto records = indexpool::verify::verify_problem(problem, {});
  for (const auto& record : records)
    std::printf("%s %s\n", record.op.c_str(),
                std::string(indexpool::to_string(record.verdict.status)).c_str());
  return records.empty() ? 1 : 0;
}
