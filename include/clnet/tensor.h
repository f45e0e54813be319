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
/// How many refer to an output of a node: see lib/exec/collect/sole_owner.h. Handles are in the lower half, inputs of nodes in
/// the upper one.
using HolderCount = std::atomic<std::uint64_t>;
/// What a tensor counts as: by the bit that counts one.
enum class Counted : std::uint8_t { as_handle = 0, as_input = 32, not_at_all = 64 };
}  // namespace detail

class Device;
struct MatmulOptions;
struct Node;
enum class ScatterReduction : std::uint8_t;
struct SortResult;
struct PendingRead;
CLNET_API bool is_read(const PendingRead& pending);
CLNET_API void require_one_element(const PendingRead& pending);
template <class T>
void finish_reading(const PendingRead& pending, T* target);

/// A value on its way to the host: see Tensor::read_async(). Copies share it.
template <class T>
class Reading {
 public:
  /// Whether get() would not wait.
  bool ready() const { return is_read(*pending_); }
  /// Waits for the values, converted as to_vector() does. Throws DeviceError where the transfer failed.
  std::vector<T> get() const {
    const auto values = std::make_unique<ElementType<T>[]>(count_);
    finish_reading(*pending_, values.get());
    return std::vector<T>(values.get(), values.get() + count_);
  }
  /// Of exactly one element, as Tensor::item().
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

/// One dimension's part in x[{...}]: an element or a range. Negative numbers count from the end, as in Python.
struct Index {
  static constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();

  constexpr Index() : Index(0, end) {}                                         ///< all of it
  constexpr Index(std::int64_t element) : start(element), is_element(true) {}  // NOLINT(google-explicit-constructor)
  constexpr Index(std::int64_t from, std::int64_t to, std::int64_t by = 1) : start(from), stop(to), step(by) {}

  std::int64_t start = 0, stop = end, step = 1;  ///< the last one is before `stop`; `step` is at least 1
  bool is_element = false;                       ///< only `start`, and the dimension is dropped
};

/// A handle to one output of a node of the graph. Copies are cheap and refer to the same value; values never change. Shape and
/// dtype are known at once, so a wrong shape throws where the operation is written. Logical order is row-major, NCHW for images.
/// Every handle counts: what one refers to is not overwritten. One that is held for longer costs memory and changes no result.
/// What several threads may do with them is in docs/developer/guarantees.md.
class CLNET_API Tensor {
 public:
  /// No tensor; only assigning to it, defined() and destroying it are allowed.
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
  // Not to a temporary: `x[0] = y` would set a handle that is gone at once, and leave x as it was.
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
    // What was done through a handle comes before its end is seen.
    if (holders_) holders_->fetch_sub(std::uint64_t{1} << static_cast<int>(counted_), std::memory_order_release);
  }
  /// A scalar (shape []) of dtype f32, so that numbers may stand where an operation takes a tensor.
  static Tensor scalar(double value, Dtype dtype = Dtype::f32);

  /// Copies `values`, doubles as f32; their number must be the shape's (ShapeError otherwise). Without a shape: one dimension.
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
  /// Integers and others mixed, as {1, 2.5}.
  static Tensor from(std::initializer_list<double> values, const Shape& shape) {
    return from(std::span<const double>(values.begin(), values.size()), shape);
  }
  static Tensor from(std::initializer_list<double> values) {
    return from(std::span<const double>(values.begin(), values.size()));
  }
  /// Copies raw storage (f16 and bf16 as their 16 bits, bool as 0 or 1). `bytes` must be spec.bytes().
  static Tensor from_bytes(const void* data, std::size_t bytes, const Spec& spec);

  bool defined() const { return node_ != nullptr; }
  const Spec& spec() const;
  const Shape& shape() const { return spec().shape; }
  Dtype dtype() const { return spec().dtype; }
  int rank() const { return shape().rank(); }
  /// The extent of a dimension, negative from the end. Throws ShapeError where there is none.
  std::int64_t size(int dim) const;
  std::int64_t numel() const { return shape().numel(); }
  /// Where the value is, or where it would be computed: see eval().
  Device device() const;

  /// A part: x[2] is an element of the first dimension, x[{1, {}, {0, 5}, {0, 10, 2}}] is Python's x[1, :, 0:5, 0:10:2].
  /// Dimensions that are not given are taken whole. Throws ShapeError for too many dimensions and for an element that is not
  /// there. A part cannot be assigned to, as values never change: slice_update() gives x with another part in its place.
  ///
  /// Of a tensor whose value is known, as a data set, other elements and ranges (without a step) make no other plan. Of a
  /// parameter, or a tensor that is still to be computed, a part is a view where it can be, and another one makes another plan;
  /// narrow() makes none there.
  Tensor operator[](std::int64_t element) const { return (*this)[{Index(element)}]; }
  Tensor operator[](std::initializer_list<Index> parts) const;

  /// Computes the value and waits for it, converted to T: float, double, std::int32_t, std::int64_t, std::int8_t, std::uint8_t or
  /// bool. Floating values lose their fraction as integers, and the nearest one stands for what does not fit (0 for NaN); a bool
  /// is whether the value is not 0. item() needs exactly one element.
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
  /// Computes the value and copies its storage as it is; `bytes` must be spec().bytes().
  void to_bytes(void* target, std::size_t bytes) const;

  /// Enqueues the computation of the value, without waiting.
  void eval() const;
  /// The same value without its history: gradients stop here, and the graph behind it can be freed. Evaluates the value when it
  /// has not been evaluated.
  Tensor detach() const;

  // Operations as members: x.sum({1}) is sum(x, {1}).
#include "clnet/tensor_methods.inc"

  /// Whether two handles are the same value of the graph (not whether the numbers are equal).
  bool same(const Tensor& other) const { return node_ == other.node_ && output_ == other.output_; }

 private:
  friend struct detail::access;
  Tensor(std::shared_ptr<Node> node, int output, detail::Counted as = detail::Counted::as_handle) noexcept;
  /// From now on; it is defined.
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
  detail::HolderCount* holders_ = nullptr;  ///< the output's, where it counts
  int output_ = 0;
  detail::Counted counted_ = detail::Counted::as_handle;
};

/// Computes the value and prints it as nested lists with its spec, numbers with four digits; of more than 1000 elements, the
/// first and last three of each dimension.
CLNET_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Enqueues the computation of several values together, without waiting for it. Values that live on a device are computed there,
/// all others on Device::current() or the one given; these may be several devices, which work side by side. What an operation
/// reads has to be on one of them (copy_to()): DeviceError otherwise, as for what is asked for and lives on another than the one
/// given. Whatever is thrown, no value and no parameter has changed on any device.
CLNET_API void eval(std::span<const Tensor> tensors);
CLNET_API void eval(std::initializer_list<Tensor> tensors);
CLNET_API void eval(std::span<const Tensor> tensors, const Device& device);
/// The tensor's value on another device, as an operation: nothing is copied before it is needed, and a gradient goes back to
/// where the tensor is. The copy goes through the host, which waits for it in the evaluation. With a value that is on that device
/// already nothing is copied.
CLNET_API Tensor copy_to(const Tensor& tensor, const Device& device);

}  // namespace clnet
