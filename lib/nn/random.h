// The thread's generator on the host: the same Philox streams as the kernels', for initial values.
#pragma once

#include <cstddef>
#include <vector>

namespace clnet::nn {

/// `count` uniform numbers in [0, 1) from the generator's next stream, which advances.
std::vector<double> draw_uniform(std::size_t count);

}  // namespace clnet::nn
