// The generator of random problems lives with the checks: commands use it as well.
#pragma once

#include "indexpool/verify/random_problem.hpp"
#include "indexpool/verify/verify.hpp"
