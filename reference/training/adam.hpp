// Adam (Kingma and Ba, 2015) over named arrays. Internal to the layer.
#pragma once

#include <cmath>

#include "indexpool/reference/training/operands.hpp"

namespace indexpool::reference::training {

// Their recommended constants.
inline constexpr double adam_first = 0.9, adam_second = 0.999, adam_epsilon = 1e-8;

class Adam {
 public:
  // The direction to go (downhill, about 1 an element) after one more gradient. Elements without a
  // gradient so far stay where they are.
  Arrays<double> direction(const Arrays<double>& gradient) {
    ++steps_;
    const double first_share = 1 - std::pow(adam_first, steps_);
    const double second_share = 1 - std::pow(adam_second, steps_);
    Arrays<double> result;
    for (const auto& [name, g] : gradient) {
      std::vector<double>&mean = mean_[name], &square = square_[name], &to = result[name];
      mean.resize(g.size());
      square.resize(g.size());
      for (std::size_t i = 0; i < g.size(); ++i) {
        mean[i] = adam_first * mean[i] + (1 - adam_first) * g[i];
        square[i] = adam_second * square[i] + (1 - adam_second) * g[i] * g[i];
        to.push_back(-(mean[i] / first_share) /
                     (std::sqrt(square[i] / second_share) + adam_epsilon));
      }
    }
    return result;
  }

 private:
  Arrays<double> mean_, square_;
  int steps_ = 0;
};

}  // namespace indexpool::reference::training
