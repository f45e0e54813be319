// A user's own OpenCL C kernel as an operation of the graph.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

struct KernelDefinition;

/// An operation made from OpenCL C 1.2 source, on tensors of any storage dtype:
///
///     const Kernel square("square", R"(
///       kernel void square(IN(x), OUT(y), const uint n) {
///         const uint i = get_global_id(0);
///         if (i < n) STORE(y, i, LOAD(x, i) * LOAD(x, i));
///       })");
///     Tensor y = square(x);
///
/// The function has the kernel's name. Its parameters are, in any order:
/// - IN(x) and OUT(y): input and output tensors, in the order in which they are given and returned. LOAD(x, i) reads element i as
///   float (i32: int, i64: long, i8: char, u8 and bool: uchar), STORE(y, i, value) writes one, PTR(x) points to the first
///   element.
/// - `uint n` or `int n` (a parameter of this name): the number of elements of the first output.
/// - `uint x_count` or `int x_count`: the number of elements of the tensor x; x_size0, x_size1, ...: its extents.
/// - other int, uint and float parameters: what scalar() said.
/// kernels/clnet.clh, which defines these macros and Philox random numbers, stands before the source by itself. Every element of
/// the outputs must be written unless they are zeroed(), none of the inputs may be.
///
/// A Kernel is a value: the functions that set something return a changed copy. A program that the device refuses is a BuildError
/// when the tensor is evaluated, with the compiler's log and the numbered source; lines are those of the source given here.
class CLNET_API Kernel {
 public:
  /// The gradients of the inputs (one each; an undefined one: none) from inputs, outputs and the outputs' gradients, as graph.
  using Gradient = std::function<std::vector<Tensor>(std::vector<Tensor> inputs, std::vector<Tensor> outputs,
                                                     std::vector<Tensor> output_gradients)>;
  using Outputs = std::function<std::vector<Spec>(const std::vector<Spec>& inputs)>;
  using Range = std::function<std::vector<std::int64_t>(const std::vector<Spec>& inputs, const std::vector<Spec>& outputs)>;

  /// Throws Error when the source has no kernel function of that name, or a parameter of a kind that is not listed above.
  Kernel(std::string name, std::string source);

  /// Without one, gradients() through the kernel throws Unsupported.
  Kernel gradient(Gradient gradient) const;
  /// The outputs' shapes and dtypes; without it, each is like the first input.
  Kernel outputs(Outputs outputs) const;
  /// The outputs hold zeros before the kernel runs: it may write some elements only, or add to them.
  Kernel zeroed() const;
  /// The value of an int, uint or float parameter, instead of what its name says. Another value makes no new plan. Throws Error
  /// when there is none of that name or the value does not fit it.
  Kernel scalar(std::string_view parameter, double value) const;
  /// Global and local work size, 1 to 3 dimensions; the global size is rounded up to multiples of the local one, which the driver
  /// chooses when it is empty. Without it, there is a work-item for each element of the first output, or, when the kernel has a
  /// parameter n to check against, a few more. Put the largest extent first: of more work-groups than a device takes in the
  /// second or third dimension (NVIDIA: 65535) a launch is enqueued in pieces, and Unsupported is thrown for a kernel that asks
  /// for more than get_global_id() and get_local_id().
  Kernel range(std::vector<std::int64_t> global, std::vector<std::int64_t> local = {}) const;
  /// range({0}): without this one, 0 could be an empty function, too.
  Kernel range(std::initializer_list<std::int64_t> global, std::vector<std::int64_t> local = {}) const {
    return range(std::vector<std::int64_t>(global), std::move(local));
  }
  Kernel range(Range global, std::vector<std::int64_t> local = {}) const;

  /// The kernel's only output. Throws Error when the number of tensors is not that of IN parameters, when a parameter has no
  /// value, or when the kernel has several outputs.
  Tensor operator()(const Tensor& input) const;
  Tensor operator()(const std::vector<Tensor>& inputs) const;
  /// As in add(a, b).
  template <std::convertible_to<Tensor>... T>
  requires(sizeof...(T) > 1) Tensor operator()(const T&... inputs) const { return (*this)(std::vector<Tensor>{inputs...}); }
  /// All outputs, in the order of OUT parameters.
  std::vector<Tensor> all(const std::vector<Tensor>& inputs) const;

 private:
  explicit Kernel(std::shared_ptr<const KernelDefinition> definition) : definition_(std::move(definition)) {}

  std::shared_ptr<const KernelDefinition> definition_;
};

}  // namespace clnet
