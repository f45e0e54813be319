// A user's OpenCL C kernel as an operation of the graph.
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

/// An operation from OpenCL C 1.2 source, for tensors of any dtype:
///
///     const Kernel square("square", R"(
///       kernel void square(IN(x), OUT(y), const uint n) {
///         const uint i = get_global_id(0);
///         if (i < n) STORE(y, i, LOAD(x, i) * LOAD(x, i));
///       })");
///     Tensor y = square(x);
///
/// The function has the kernel's name. Its parameters are, in any order:
/// - IN(x) and OUT(y): input and output tensors, in the order of the arguments and results. LOAD(x, i) reads element i as float
///   (i32: int, i64: long, i8: char, u8 and bool: uchar), STORE(y, i, value) writes one, PTR(x) points to the first element.
/// - `uint n` or `int n` (a parameter of this name): the number of elements of the first output.
/// - `uint x_count` or `int x_count`: the number of elements of the tensor x; x_size0, x_size1, ...: its extents.
/// - other int, uint and float parameters: the values of scalar().
///
/// clnet puts kernels/clnet.clh, with these macros and Philox random numbers, before the source. The kernel must write every
/// element of its outputs, unless they are zeroed(). It must not write to its inputs.
///
/// A Kernel is a value: gradient(), outputs() and their like return a changed copy. Evaluation throws BuildError for a program
/// that the device's compiler refuses, with the log and the numbered source. Line numbers are those of `source`.
class CLNET_API Kernel {
 public:
  /// Returns one gradient per input, as graph, from the inputs, the outputs and the outputs' gradients. An undefined tensor means
  /// no gradient.
  using Gradient = std::function<std::vector<Tensor>(std::vector<Tensor> inputs, std::vector<Tensor> outputs,
                                                     std::vector<Tensor> output_gradients)>;
  using Outputs = std::function<std::vector<Spec>(const std::vector<Spec>& inputs)>;
  using Range = std::function<std::vector<std::int64_t>(const std::vector<Spec>& inputs, const std::vector<Spec>& outputs)>;

  /// Throws Error where the source has no kernel function `name`, or a parameter of a kind that the list above lacks.
  Kernel(std::string name, std::string source);

  /// Sets the gradient. Without it, gradients() through the kernel throws Unsupported.
  Kernel gradient(Gradient gradient) const;
  /// Sets the outputs' specs. Without it, each output has the first input's spec.
  Kernel outputs(Outputs outputs) const;
  /// Fills the outputs with zeros first, so that the kernel may write some elements only, or add to them.
  Kernel zeroed() const;
  /// Sets the value of an int, uint or float parameter, in place of the meaning of its name. A new value compiles no new plan.
  /// Throws Error where no parameter has this name, or the value does not fit its type.
  Kernel scalar(std::string_view parameter, double value) const;
  /// Global and local work size, 1 to 3 dimensions. The global size is rounded up to multiples of the local one; the driver
  /// chooses an empty local size. By default each element of the first output has a work-item; a kernel with a parameter n to
  /// check against may get a few more.
  ///
  /// Put the largest extent first. Devices limit the work-groups of the second and third dimension (NVIDIA: 65535). A larger
  /// launch is enqueued in pieces. Such a kernel may use get_global_id() and get_local_id() only; Unsupported otherwise.
  Kernel range(std::vector<std::int64_t> global, std::vector<std::int64_t> local = {}) const;
  /// range({0}): without this overload, 0 could also be an empty function.
  Kernel range(std::initializer_list<std::int64_t> global, std::vector<std::int64_t> local = {}) const {
    return range(std::vector<std::int64_t>(global), std::move(local));
  }
  Kernel range(Range global, std::vector<std::int64_t> local = {}) const;

  /// The kernel's only output. Throws Error where the number of tensors is not that of IN parameters, a parameter has no value,
  /// or the kernel has several outputs.
  Tensor operator()(const Tensor& input) const;
  Tensor operator()(const std::vector<Tensor>& inputs) const;
  /// Inputs as arguments: add(a, b).
  template <std::convertible_to<Tensor>... T>
  requires(sizeof...(T) > 1) Tensor operator()(const T&... inputs) const { return (*this)(std::vector<Tensor>{inputs...}); }
  /// All outputs, in the order of the OUT parameters. Throws Error as operator().
  std::vector<Tensor> all(const std::vector<Tensor>& inputs) const;

 private:
  explicit Kernel(std::shared_ptr<const KernelDefinition> definition) : definition_(std::move(definition)) {}

  std::shared_ptr<const KernelDefinition> definition_;
};

}  // namespace clnet
