// What the kernels of max and average pooling share: the windows in a plane, and how they reach a kernel.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/ops.h"
#include "lib/exec/launch/recorder.h"
#include "lib/exec/options/config.h"
#include "lib/graph/op.h"

namespace clnet::ops {

/// Which input elements each output sees. Adaptive: by division of the input's extents; only the sizes count then.
struct PoolWindows {
  std::int64_t h = 1, w = 1, out_h = 1, out_w = 1;
  Pair kernel = 1, stride = 1, dilation = 1;
  Padding padding = 0;
  bool adaptive = false;

  Fields fields() const;
  /// Whether no window reaches beyond the input.
  bool inside() const;
  /// Whether windows may share an element.
  bool overlap() const;
  /// For the profiler.
  std::string text(std::int64_t planes) const;
};

/// What is left of a pooling kernel's launch after its buffers: sizes as arguments, or as defines where they make the loops
/// unroll; and the range, over the elements of a grid of `height` x `width` in each plane. Not 0: a work-item makes that many
/// rows of the grid.
void launch_pool(exec::Launch& launch, const PoolWindows& windows, std::int64_t planes, std::int64_t height, std::int64_t width,
                 std::int64_t rows, bool unroll = true);
/// The windows' sizes as defines.
void define_windows(exec::Launch& launch, const PoolWindows& windows);
/// Whether loops over a window's elements are worth unrolling.
bool few_taps(const PoolWindows& windows);
/// Outputs of a row that a kernel by rows takes at once (kernels/pool/pool2d_rows.clh), `widest` at most: those whose windows lie
/// inside the row. 0: one by one.
std::int64_t pool_vector_width(const PoolWindows& windows, std::int64_t widest);
/// Iterations of a work-item that makes one element from its window, or one gradient from the windows that cover its element.
std::int64_t window_elements(const PoolWindows& windows);
std::int64_t covering_windows(const PoolWindows& windows);
/// Rows of a grid per work-item, to choose from: whole planes where there are enough of them to keep the device's cores busy;
/// half as many, and twice.
std::vector<std::int64_t> pool_rows(std::int64_t planes, std::int64_t height, const DeviceInfo& device);
/// Configurations of so many rows, and of so many lanes each with the first of these.
std::vector<exec::Config> pool_configs(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& lanes = {});
/// Whether results of so many bytes are better stored past the caches: they are as large as those, or what they are made of,
/// which passes through them, is twice as large and would push them out.
bool pool_nontemporal_stores(std::int64_t results, std::int64_t input, const DeviceInfo& device);
/// The refusal of the solvers by rows.
std::optional<std::string> needs_vector_cpu(const DeviceInfo& device);

}  // namespace clnet::ops
