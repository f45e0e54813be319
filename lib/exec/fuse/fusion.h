// Which nodes become one kernel.
//
// Elementwise operations with equally many elements join the kernel of an operation whose result they read, as long as nothing
// between them is computed by another kernel. What nobody else reads stays in registers; a value that others need is written too.
// A cheap value of another kernel is computed again where it is read instead of being written. A kernel that alone reads the
// result of a convolution or another operation that can take it becomes the end of that operation's kernel, a cheap one whose
// result is read by a reduction or the like alone becomes the beginning of that. Between operations a
// value of f16 or bf16 is rounded as storing it would, so that fusing changes no result.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "clnet/device.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

struct Group {
  std::shared_ptr<Node> node;               ///< lowers itself; empty: a generated kernel only
  std::optional<ElementwiseKernel> kernel;  ///< if both are there: the node's kernel may end with it, and it is all that reads it
  std::vector<Tensor> outputs;              ///< what the generated kernel writes
  std::optional<ElementwiseKernel> before;  ///< the node's kernel may begin with it: it makes what only the node reads
  Tensor before_output;                     ///< that
};

/// The groups in an order in which each finds what it reads. Unless it `fuses`, every operation is a group of its own. The result
/// depends on the structure of the graph only: a plan is known by that.
std::vector<Group> fuse(const Subgraph& graph, const DeviceInfo& device, bool fuses);

}  // namespace clnet::exec
