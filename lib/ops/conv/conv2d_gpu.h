// What the convolutions on GPUs share that are products in tiles, whose operands are gathered from the images.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ops/conv/conv2d.h"
#include "lib/ops/gemm_gpu.h"

namespace clnet::ops {

/// How kernels/conv/conv2d_pack_gpu.cl makes weights.
struct PackedWeight {
  Dtype dtype;
  bool along_k;  ///< neighbours in memory are neighbours along k
};

/// A kernel with the parameters of kernels/conv/conv2d_gpu.clh, whose groups make the tiles that TM, TN, TK, RM and RN say.
struct TiledConv {
  std::string_view name;  ///< of program and function
  std::int64_t items;     ///< of a group
  std::vector<std::string> defines = {};
  std::optional<PackedWeight> packed = {};  ///< reads weights so
};

/// The product of one group (and phase).
GemmExtents conv2d_extents(const Conv2dProblem& problem, Conv2dDirection direction);

/// Why it is no such product, on whatever device.
std::optional<std::string> conv2d_tiles_reject(const Conv2dProblem& problem, Conv2dDirection direction);

/// Whether slices of k are channels of one tap.
bool blocked(const Conv2dProblem& problem, Conv2dDirection direction, const GemmTile& tile);

/// Why its weight cannot be brought into the order of the kernel.
std::optional<std::string> packed_weight_rejects(const Conv2dProblem& problem, Conv2dDirection direction);

/// Records the direction in the recorder's configuration, and the sum of its parts if there are several.
void record_conv2d_tiles(const Conv2dProblem& problem, Conv2dDirection direction, exec::Recorder& recorder,
                         const TiledConv& kernel);

}  // namespace clnet::ops
