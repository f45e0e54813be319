// Convolutions that follow one another in one pass, whose results in between nobody else reads: a small one, depthwise, 1x1.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "lib/exec/lower/rewrite.h"
#include "lib/graph/node.h"
#include "lib/ops/conv/conv2d.h"

namespace clnet::ops {

/// y of the one is x of the next; those in between are no values of the plan.
struct Conv2dStrips {
  Conv2dProblem expansion, depthwise, projection;

  std::array<Conv2dProblem*, 3> parts() { return {&expansion, &depthwise, &projection}; }
  double flops() const { return expansion.flops() + depthwise.flops() + projection.flops(); }
  std::string text() const;
};

/// What a convolution in two dimensions computes, without places of its operands; nothing where the node is another operation.
std::optional<Conv2dProblem> conv2d_problem(const Node& node);

/// One launch for three convolutions of which each alone reads the one before. What follows the first two elementwise needs
/// nothing but the channel.
const exec::Rewrite& conv2d_in_strips();

/// Strips of rows that stay in the caches, for CPUs: see kernels/conv/conv2d_strips_cpu.cl.
std::optional<std::string> conv2d_strips_cpu_rejects(const Conv2dStrips& problem, const DeviceInfo& device);
std::optional<std::string> conv2d_strips_cpu_declines(const Conv2dStrips& problem, const DeviceInfo& device);
std::vector<exec::Config> conv2d_strips_cpu_configs(const Conv2dStrips& problem, const DeviceInfo& device);
void conv2d_strips_cpu(const Conv2dStrips& problem, exec::Recorder& recorder);

}  // namespace clnet::ops
