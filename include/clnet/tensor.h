// Tensor: a lazy value. Operations build a graph; eval(), item() and to_vector() compute it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/dtype.h"
#include "clnet/export.h"
#include "clnet/shape.h"

namespace clnet {

namespace detail {
struct access;
/// The number of references to an output of a node: see lib/exec/collect/sole_owner.h. The lower half counts handles, the upper
/// half inputs of nodes.
using HolderCount = std::atomic<std::uint64_t>;
/// The kind of reference that a tensor is. The value is the position of the bit that counts one.
enum class Counted : std::uint8_t { as_handle = 0, as_input = 32, not_at_all = 64 };
}  // namespace detail

class Device;
struct MatmulOptions;
struct Node;
enum class ScatterReduction : std::uint8_t;
struct SortResult;
struct UniqueResult;
struct MinMax;
struct PendingRead;
CLNET_API bool is_read(const PendingRead& pending);
CLNET_API void require_one_element(const PendingRead& pending);
template <class T>
void finish_reading(const PendingRead& pending, T* target);

/// A value that is transferred to the host: see Tensor::read_async(). Copies share the transfer.
template <class T>
class Reading {
 public:
  /// Whether the values have arrived, so that get() returns at once.
  bool ready() const { return is_read(*pending_); }
  /// Waits for the values and converts them as to_vector() does. Throws DeviceError where the transfer failed.
  std::vector<T> get() const {
    const auto values = std::make_unique<ElementType<T>[]>(count_);
    finish_reading(*pending_, values.get());
    return std::vector<T>(values.get(), values.get() + count_);
  }
  /// The value of a tensor of one element, as Tensor::item(). Throws ShapeError for any other number of elements.
  T item() const {
    require_one_element(*pending_);
    return get()[0];
  }

 private:
  friend class Tensor;
  Reading(std::shared_ptr<PendingRead> pending, std::size_t count) : pending_(std::move(pending)), count_(count) {}

  std::shared_ptr<PendingRead> pending_;
  std::size_t count_;
};

/// The part of one dimension in x[{...}]: an element or a range. Negative numbers count from the end, as in Python.
struct Index {
  static constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();

  constexpr Index() : Index(0, end) {}                                         ///< the whole dimension
  constexpr Index(std::int64_t element) : start(element), is_element(true) {}  // NOLINT(google-explicit-constructor)
  constexpr Index(std::int64_t from, std::int64_t to, std::int64_t by = 1) : start(from), stop(to), step(by) {}

  std::int64_t start = 0, stop = end, step = 1;  ///< `stop` is excluded; `step` is at least 1
  bool is_element = false;                       ///< selects `start` alone and drops the dimension
};

/// A handle to one output of a node of the graph, as torch.Tensor but immutable. Copies are cheap and refer to the same value.
/// Shape and dtype are known at once, so a wrong shape throws in the line that calls the operation. Elements are in row-major
/// order; images are NCHW.
///
/// While a handle refers to a value, no evaluation overwrites it. A handle kept longer than needed costs memory and changes no
/// result. docs/developer/guarantees.md lists the uses that are safe from several threads.
class CLNET_API Tensor {
 public:
  /// An undefined tensor. Only assignment, defined() and destruction are allowed.
  Tensor() = default;
  Tensor(const Tensor& other) noexcept : node_(other.node_), holders_(other.holders_), output_(other.output_) {
    if (holders_)
      holders_->fetch_add(1, std::memory_order_relaxed);
    else if (node_)
      count_as(detail::Counted::as_handle);
  }
  Tensor(Tensor&& other) noexcept
      : node_(std::move(other.node_)),
        holders_(std::exchange(other.holders_, nullptr)),
        output_(other.output_),
        counted_(other.counted_) {}
  // Not on a temporary: `x[0] = y` would assign to a handle that is destroyed at once, and leave x unchanged.
  Tensor& operator=(const Tensor& other) & noexcept { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) & noexcept {
    Tensor taken(std::move(other));
    node_.swap(taken.node_);
    std::swap(holders_, taken.holders_);
    std::swap(output_, taken.output_);
    std::swap(counted_, taken.counted_);
    return *this;
  }
  ~Tensor() {
    // Release: all uses of this handle happen before another thread sees the lower count.
    if (holders_) holders_->fetch_sub(std::uint64_t{1} << static_cast<int>(counted_), std::memory_order_release);
  }
  /// A scalar (shape []). Throws DtypeError where `value` does not fit into `dtype`.
  static Tensor scalar(double value, Dtype dtype = Dtype::f32);

  /// Copies `values` to a tensor; doubles become f32 unless a dtype is given. Throws ShapeError where their number is not the
  /// shape's. Without a shape the result has one dimension.
  template <class T, std::size_t count>
  static Tensor from(std::span<T, count> values, const Shape& shape) {
    using Given = std::remove_const_t<T>;
    static_assert(is_element_type<Given>,
                  "Tensor::from takes float, double, bool, std::int8_t, std::uint8_t, std::int32_t or std::int64_t");
    if constexpr (std::is_same_v<Given, double>)
      return from(std::vector<float>(values.begin(), values.end()), shape);
    else if constexpr (is_element_type<Given>)
      return from_bytes(values.data(), values.size_bytes(), {shape, dtype_of<ElementType<Given>>});
  }
  template <class T, std::size_t count>
  static Tensor from(std::span<T, count> values) {
    return from(values, {static_cast<std::int64_t>(values.size())});
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values) {
    return from(std::span<const T>(values));
  }
  static Tensor from(const std::vector<bool>& values, const Shape& shape);
  static Tensor from(const std::vector<bool>& values) { return from(values, {static_cast<std::int64_t>(values.size())}); }
  template <class T, std::size_t count>
  static Tensor from(const std::array<T, count>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  template <class T, std::size_t count>
  static Tensor from(const std::array<T, count>& values) {
    return from(std::span<const T>(values));
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values) {
    return from(std::span<const T>(values.begin(), values.size()));
  }
  /// For integers and doubles in one list, as {1, 2.5}.
  static Tensor from(std::initializer_list<double> values, const Shape& shape) {
    return from(std::span<const double>(values.begin(), values.size()), shape);
  }
  static Tensor from(std::initializer_list<double> values) {
    return from(std::span<const double>(values.begin(), values.size()));
  }
  /// Copies doubles to a tensor of this floating dtype: exactly for Dtype::f64. Throws DtypeError for other dtypes.
  static Tensor from(std::span<const double> values, const Shape& shape, Dtype dtype);
  static Tensor from(std::initializer_list<double> values, const Shape& shape, Dtype dtype) {
    return from(std::span<const double>(values.begin(), values.size()), shape, dtype);
  }
  /// Copies raw storage: f16 and bf16 as their 16 bits, bool as 0 or 1. Throws ShapeError unless `bytes` is spec.bytes().
  static Tensor from_bytes(const void* data, std::size_t bytes, const Spec& spec);

  bool defined() const { return node_ != nullptr; }
  const Spec& spec() const;
  const Shape& shape() const { return spec().shape; }
  Dtype dtype() const { return spec().dtype; }
  int rank() const { return shape().rank(); }
  /// The extent of a dimension; negative `dim` counts from the end. Throws ShapeError where `dim` is out of range.
  std::int64_t size(int dim) const;
  std::int64_t numel() const { return shape().numel(); }
  /// The device that holds the value, or on which eval() would compute it.
  Device device() const;

  /// Indexing as in PyTorch: x[2] is an element of the first dimension, x[{1, {}, {0, 5}, {0, 10, 2}}] is Python's x[1, :, 0:5,
  /// 0:10:2]. Missing dimensions are taken whole. Values never change, so assigning to a part does not compile: slice_update()
  /// returns a changed copy. Throws ShapeError for too many dimensions and for an element out of range, Error for a step below 1.
  ///
  /// Indexing an evaluated tensor without a step never compiles a new plan. Indexing a parameter or an unevaluated tensor gives a
  /// view where possible, and compiles one plan per index; use narrow() there.
  Tensor operator[](std::int64_t element) const { return (*this)[{Index(element)}]; }
  Tensor operator[](std::initializer_list<Index> parts) const;
  /// The parts at the indices (i32 or i64) along the first dimension: index_select(x, 0, indices). With a mask (bool) of x's
  /// first extents: the parts where it is true, in order. That evaluates the mask at once, and is an Error inside compile().
  /// Throws ShapeError for a mask of other extents.
  Tensor operator[](const Tensor& indices) const;

  /// Computes the value, waits for it and converts it to T: float, double, std::int32_t, std::int64_t, std::int8_t, std::uint8_t
  /// or bool. Conversion to integers truncates; a number out of range becomes the nearest one, NaN becomes 0. A bool is true
  /// where the value is not 0. item() throws ShapeError unless the tensor has one element. Both throw Error for an undefined
  /// tensor.
  template <class T>
  std::vector<T> to_vector() const {
    require_readable<T>();
    const auto count = static_cast<std::size_t>(numel());
    if constexpr (std::is_same_v<T, bool>) {
      const auto values = std::make_unique<bool[]>(count);
      read(values.get());
      return std::vector<bool>(values.get(), values.get() + count);
    } else {
      std::vector<ElementType<T>> out(count);
      read(out.data());
      if constexpr (std::is_same_v<T, ElementType<T>>)
        return out;
      else
        return std::vector<T>(out.begin(), out.end());
    }
  }
  template <class T = float>
  T item() const {
    require_readable<T>();
    require_one_element();
    ElementType<T> value;
    read(&value);
    return static_cast<T>(value);
  }
  /// Enqueues the computation and the transfer, and returns at once: `auto loss = step.read_async(); ... loss.item()`.
  template <class T = float>
  Reading<T> read_async() const {
    require_readable<T>();
    return {start_reading(), static_cast<std::size_t>(numel())};
  }
  /// Computes the value and copies its raw storage. Throws ShapeError unless `bytes` is spec().bytes().
  void to_bytes(void* target, std::size_t bytes) const;

  /// Enqueues the computation of the value and returns at once.
  void eval() const;
  /// The same value as a leaf: gradients stop here, and the graph behind it can be freed. Evaluates the value first where needed
  /// (PyTorch's detach()).
  Tensor detach() const;

  // Operations as members: x.sum({1}) is sum(x, {1}).
#include "clnet/tensor_methods.inc"

  /// Whether two handles refer to the same output of the graph. equal() compares the numbers.
  bool same(const Tensor& other) const { return node_ == other.node_ && output_ == other.output_; }

 private:
  friend struct detail::access;
  Tensor(std::shared_ptr<Node> node, int output, detail::Counted as = detail::Counted::as_handle) noexcept;
  /// Starts to count this reference. The tensor is defined.
  void count_as(detail::Counted as) noexcept;

  template <class T>
  static constexpr void require_readable() {
    static_assert(is_element_type<T>,
                  "values are read as float, double, bool, std::int8_t, std::uint8_t, std::int32_t or std::int64_t");
  }
  template <class T>
  void read(T* target) const;
  void require_one_element() const;
  std::shared_ptr<PendingRead> start_reading() const;

  std::shared_ptr<Node> node_;
  detail::HolderCount* holders_ = nullptr;  ///< the output's counter; null for an uncounted reference
  int output_ = 0;
  detail::Counted counted_ = detail::Counted::as_handle;
};

/// Computes the value and prints it as nested lists, with four digits and its spec. A tensor of more than 1000 elements shows the
/// first and last three of each dimension.
CLNET_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Enqueues the computation of several values together and returns at once. A value whose inputs live on a device is computed
/// there, all others on `device` or Device::current(). The values may belong to several devices, which work side by side.
///
/// All inputs of an operation must be on one device (copy_to() moves them): DeviceError otherwise. The same error is thrown for a
/// value that lives on another device than `device`. After an exception all values and parameters on all devices are as before.
CLNET_API void eval(std::span<const Tensor> tensors);
CLNET_API void eval(std::initializer_list<Tensor> tensors);
CLNET_API void eval(std::span<const Tensor> tensors, const Device& device);
/// The value of `tensor` on another device (PyTorch's Tensor.to). It is an operation: evaluation copies the value when needed,
/// and its gradient goes back to the first device. The copy goes through the host, which waits for it. A value that is already on
/// `device` is not copied.
CLNET_API Tensor copy_to(const Tensor& tensor, const Device& device);

}  // namespace clnet
