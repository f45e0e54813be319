// What batches are made of: a dataset gives samples, each of any number of arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/error.h"
#include "clnet/export.h"
#include "clnet/shape.h"
#include "clnet/tensor.h"

namespace clnet::data {

/// Values of any dtype in host memory.
struct CLNET_API Array {
  Shape shape;
  Dtype dtype = Dtype::f32;
  std::vector<std::byte> bytes;  ///< shape.numel() elements in order
  std::string name = {};         ///< of this part of a sample: "image"; may be empty

  Array() = default;
  /// Zeros, which values<T>() fills.
  Array(Shape shape, Dtype dtype, std::string name = {});
  /// Throws ShapeError for another number of values than the shape has.
  template <class T>
  requires is_element_type<T> Array(const std::vector<T>& elements, Shape its_shape, std::string its_name = {})
      : Array(std::move(its_shape), dtype_of<Stored<T>>, std::move(its_name)) {
    const auto target = fill<Stored<T>>(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) target[i] = static_cast<Stored<T>>(elements[i]);
  }
  /// One number, as a label: its shape is {}.
  template <class T>
  requires std::is_arithmetic_v<T> && is_element_type<T>
  explicit Array(T value, std::string its_name = {}) : Array(Shape{}, dtype_of<Stored<T>>, std::move(its_name)) {
    fill<Stored<T>>(1)[0] = static_cast<Stored<T>>(value);
  }
  /// A copy of the tensor's value; waits for it.
  explicit Array(const Tensor& tensor, std::string name = {});
  /// The values as a tensor on Device::current(). Throws ShapeError where `bytes` are not those of the shape.
  Tensor tensor() const { return Tensor::from_bytes(bytes.data(), bytes.size(), spec()); }

  Spec spec() const { return {shape, dtype}; }
  /// The elements. Throws DtypeError for the wrong type.
  template <class T>
  std::span<T> values() {
    require(dtype_of<T>);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> values() const {
    require(dtype_of<T>);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  template <class T>
  using Stored = std::conditional_t<std::is_same_v<T, double>, float, ElementType<T>>;
  template <class T>
  std::span<T> fill(std::size_t count) {
    require_count(count);
    return values<T>();
  }
  void require(Dtype wanted) const;
  void require_count(std::size_t count) const;
};

/// One sample: any number of arrays. fit() and evaluate() take the first for the model's input, the second for labels or targets.
using Example = std::vector<Array>;

/// A pass over a stream.
class CLNET_API Stream {
 public:
  virtual ~Stream() = default;
  /// The next sample; none at the end. Calls come one at a time, perhaps from several threads.
  virtual std::optional<Example> next() = 0;
  /// What leads a new stream of the same seed to this place: any bytes. Checkpoints keep it. Without it a training that is
  /// resumed begins a new epoch.
  virtual std::optional<std::string> state() const { return std::nullopt; }
  /// Goes to the place of `state`, before the first next(). Throws Error for a state that is not of this stream.
  virtual void restore(const std::string& state);
};

/// Samples for batches(), fit() and evaluate(). A class of the caller's own has size() and get(), or iterate() for a stream.
/// ArrayDataset has all samples in memory.
class CLNET_API Dataset {
 public:
  /// The size of a stream.
  static constexpr std::int64_t unknown = -1;

  virtual ~Dataset() = default;
  /// The number of samples; `unknown`: a stream.
  virtual std::int64_t size() const = 0;
  /// Sample `index`, from 0. Several threads call it at once where there are several workers. Random changes of the sample should
  /// come from `seed` alone, which depends on the seed and epoch of the batches and on `index`: then bits do not depend on the
  /// number of workers. What it throws arrives at the consumer of the batches behind name_of(index).
  virtual Example get(std::int64_t index, std::uint64_t seed) const;
  /// For a stream: its samples from the beginning. `seed` depends on the seed and epoch of the batches.
  virtual std::unique_ptr<Stream> iterate(std::uint64_t seed) const;
  /// The class of a sample, for samplers and splits. Default: the only element of the second array of get(index, 0). Throws Error
  /// where that is no integer.
  virtual std::int32_t label_of(std::int64_t index) const;
  /// The sample in errors, as its file's name. Default: "sample 12".
  virtual std::string name_of(std::int64_t index) const;
  /// A text that differs between datasets. Checkpoints keep it, and resume only with the same. Default: size, names of samples,
  /// and names, dtypes and shapes of the first and the last sample's arrays. Of a stream: nothing but that it is one.
  virtual std::string fingerprint() const;

 protected:
  Dataset() = default;
  Dataset(const Dataset&) = default;
  Dataset(Dataset&&) = default;
  Dataset& operator=(const Dataset&) = default;
  Dataset& operator=(Dataset&&) = default;
};

}  // namespace clnet::data
