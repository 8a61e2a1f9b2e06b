// Element types of verify/plugin.h, by their definitions: slow, and short enough to be seen right.
#pragma once

#include <cstdint>

namespace naive {

double load(int dtype, const void* data, std::int64_t index);
// Rounds to the nearest, ties to even; e4m3 and int8 saturate.
void store(int dtype, void* data, std::int64_t index, double value);
double rounded(int dtype, double value);
int size_of(int dtype);  // bytes

}  // namespace naive
