// Random small problems over every axis a problem has: for tests that look for false alarms, and
// for the distribution of errors over their bounds.
#pragma once

#include <cstdint>

#include "indexpool/model/problem.hpp"

namespace indexpool::verify {

// Problem `number` of the stream `seed`: small enough for some milliseconds on the executor.
Problem random_problem(std::uint64_t seed, std::int64_t number);
// The same of a published form of pooling.
Problem random_policy_problem(std::uint64_t seed, std::int64_t number);
// The same of a layer of attention.
Problem random_attention_problem(std::uint64_t seed, std::int64_t number);

}  // namespace indexpool::verify
