// Debugging: the first NaN, wrong gradients, memory use; and names for the parts of a program.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

class InScope;
namespace exec {
class OptionsScope;
}

/// Names the operations that this thread builds while the scope lives. Scopes nest. Errors, DetectAnomaly, traces (CLNET_TRACE)
/// and memory_report() show the names. A module called by another module opens such a scope itself. Gradients have the names of
/// their forward operations.
///   const NamedScope scope("decoder");
class CLNET_API NamedScope {
 public:
  explicit NamedScope(const std::string& name);
  ~NamedScope();
  NamedScope(const NamedScope&) = delete;
  NamedScope& operator=(const NamedScope&) = delete;

 private:
  std::unique_ptr<InScope> scope_;
};

struct AnomalyOptions {
  bool infinities = false;  ///< also stops at infinite values
};

/// While it lives, this thread evaluates operation by operation, as torch.autograd.detect_anomaly. The first operation that makes
/// a NaN from inputs without NaN throws Error, with the operation, the element and the scope of its call.
///
/// It is slow and keeps all intermediates in memory: for finding a fault, not for training. A step that a loss scale would skip
/// throws, too: begin with a scale of 1 (`set_loss_scale({.initial = 1})`). It ends in the thread that made it.
class CLNET_API DetectAnomaly {
 public:
  explicit DetectAnomaly(const AnomalyOptions& options = {});
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  std::unique_ptr<exec::OptionsScope> scope_;
};

struct GradientCheckOptions {
  /// Step of the finite differences. Without one it is 1e-6 where all floating inputs are f64, otherwise 1e-2.
  std::optional<double> step = std::nullopt;
  /// Largest difference, relative to the largest gradient (at least 1). Without one as the step.
  std::optional<double> tolerance = std::nullopt;
  std::size_t elements = 0;  ///< most elements checked per input, evenly spread; 0: all
};
struct GradientCheck {
  bool passed = true;
  double largest_error = 0;  ///< relative, as the tolerance
  std::string worst;         ///< input and element with both numbers; empty where nothing was compared
};
/// Compares gradients() of a weighted sum of f's results with central differences at `inputs`, as torch.autograd.gradcheck: a
/// check for custom gradients and kernels. Inputs of f64 give the sharpest check. Inputs that are not floating stay fixed. `f`
/// must be deterministic, and its inputs should lie away from points without a derivative. Throws Error where f() returns
/// nothing, and where the step vanishes in the rounding of an element.
CLNET_API GradientCheck check_gradients(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                                        const std::vector<Tensor>& inputs, const GradientCheckOptions& options = {});
CLNET_API GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                        const std::vector<Tensor>& inputs, const GradientCheckOptions& options = {});

/// A table of the memory that an evaluation of `results` takes. It shows, by scope, the values alive at the peak of the
/// intermediates, and the leaves and results. The call plans the evaluation and computes nothing. For training, pass the loss and
/// its gradients. An evaluation on several devices has one table per part on one device.
CLNET_API std::string memory_report(std::span<const Tensor> results);
CLNET_API std::string memory_report(std::initializer_list<Tensor> results);

}  // namespace clnet
