// Looking for what goes wrong: the first NaN, wrong gradients, where memory goes; and names for the parts of a program.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
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

/// A name for what a thread computes while it lives, within the names that are there already. Errors, detect_anomaly, traces
/// (CLNET_TRACE) and memory_report() say it. Modules that are called in other modules have such names of their own accord, and
/// gradients those of what they are the gradients of.
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
  bool infinities = false;  ///< infinite values count, too
};

/// While it lives, what this thread evaluates is computed operation by operation, and the first that makes a NaN of inputs
/// without one throws Error: with the operation, the element, and the scope in which it was called. Slow, and all intermediates
/// stay in memory: for finding a fault, not for training. A step that a loss scale would skip is such a fault, too: begin with a
/// scale of 1 (`set_loss_scale({.initial = 1})`) while looking.
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
  double step = 1e-2;        ///< of the finite differences, in f32
  double tolerance = 1e-2;   ///< largest difference, relative to the largest gradient (at least 1)
  std::size_t elements = 0;  ///< of each input, at most, evenly spread; 0: all
};
struct GradientCheck {
  bool passed = true;
  double largest_error = 0;  ///< relative, as the tolerance is
  std::string worst;         ///< input and element with both numbers; empty where nothing was compared
};
/// Compares gradients() of `f`, weighted sums of whose results are taken, with central differences at `inputs` (floating; others
/// stay as they are): the check that a custom gradient or kernel should pass. `f` must give the same for the same inputs, and
/// its inputs should lie away from points where it has no derivative. Throws Error where f() gives nothing, and where the step is
/// lost in the digits of an element.
CLNET_API GradientCheck check_gradients(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                                        const std::vector<Tensor>& inputs, const GradientCheckOptions& options = {});
CLNET_API GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                        const std::vector<Tensor>& inputs, const GradientCheckOptions& options = {});

/// Where the memory of an evaluation of these results goes: a table of what is alive when its intermediates take the most, by
/// scope, and of leaves and results. Plans the evaluation and computes nothing. For training, ask for the loss and its gradients.
/// Where it takes several devices, a table for each part that one of them computes at a time.
CLNET_API std::string memory_report(std::span<const Tensor> results);
CLNET_API std::string memory_report(std::initializer_list<Tensor> results);

}  // namespace clnet
