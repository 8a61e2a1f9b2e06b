// An executor whose buffers lie far from their beginnings: what a launch of many gigabytes would
// touch last. A buffer gets gigabytes of untouched, sparsely mapped space in front, arguments get
// the indices that lead behind it: rows beyond 2^26, pages, tail blocks and table rows beyond
// 2^31 bytes, positions beyond 2^32, a grid of more than 2^31 threads of which only the last blocks
// run. A kernel that keeps an offset in 32 bits reads or writes somewhere else; every check of an
// ordinary run then judges what it made.
#pragma once

#include <memory>

#include "indexpool/kernels/kernel.hpp"

namespace indexpool::verify {

std::unique_ptr<kernels::Target> make_far_target(std::unique_ptr<kernels::Target> executor);

}  // namespace indexpool::verify
