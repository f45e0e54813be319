// What the matrix products on GPUs share: tiles of the result, made by work-groups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ops/matmul/matmul_solvers.h"

namespace clnet::ops {

/// A kernel with the parameters of kernels/matmul/matmul_gpu.cl, whose groups make the tiles that TM, TN, TK, RM and RN say.
struct TiledKernel {
  std::string_view name;  ///< of program and function
  std::int64_t items;     ///< of a group
  std::vector<std::string> defines = {};
  std::int64_t chunk = 1;   ///< what parts of k are a multiple of
  std::int64_t stages = 0;  ///< slices in local memory, if it is told (STAGES)
};

/// Records the product in the recorder's configuration, and the sum of its parts if there are several.
void record_tiles(const MatmulProblem& problem, exec::Recorder& recorder, const TiledKernel& kernel);

}  // namespace clnet::ops
