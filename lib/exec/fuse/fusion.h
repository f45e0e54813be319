// Fusion: groups of nodes that become one kernel.
//
// Elementwise operations of one number of elements join the kernel of an operation whose result they read, unless another kernel
// computes something between them. Values without other readers stay in registers; others are written, too. A cheap value of
// another kernel is computed again where it is read, instead of being written.
//
// A kernel that alone reads the result of a convolution, or of another operation with an epilogue, becomes the end of that
// operation's kernel. A cheap kernel whose only reader is a reduction or the like becomes its beginning. Between operations a
// value of f16 or bf16 is rounded as if it were stored, so fusion changes no result.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "clnet/device.h"
#include "lib/exec/collect/subgraph.h"
#include "lib/exec/fuse/elementwise.h"

namespace clnet::exec {

struct Group {
  std::shared_ptr<Node> node;               ///< the operation with its own lowering; null: a generated kernel only
  std::optional<ElementwiseKernel> kernel;  ///< if both are there, the node's kernel may end with it: it is the only reader
  std::vector<Tensor> outputs;              ///< outputs of the generated kernel
  std::optional<ElementwiseKernel> before;  ///< the node's kernel may begin with it: the node is its only reader
  Tensor before_output;                     ///< output of `before`
};

/// The groups in topological order. Unless it `fuses`, every operation is a group of its own. The result depends on the graph's
/// structure only, which identifies a plan.
std::vector<Group> fuse(const Subgraph& graph, const DeviceInfo& device, bool fuses);

}  // namespace clnet::exec
