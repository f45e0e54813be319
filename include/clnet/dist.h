// Processes that work on one job, started by MPI's launcher: groups of them, and collectives over arrays in the host's memory.
//
//   const dist::Group world = dist::init();
//   std::vector<float> counts = ...;
//   dist::all_reduce(counts, world);   // now the sums over all ranks
//
// Without a launcher a group has one rank, and collectives change nothing. All ranks of a group call the same collectives in the
// same order. Any thread may call them, one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/dtype.h"
#include "clnet/error.h"
#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

namespace dist {

/// The job has lost a rank, which is silent, has failed or has ended its program. The text names rank, host and collective. The
/// job cannot go on: this process ends with 1 soon afterwards, whatever the program does with the exception.
class CLNET_API RankLost : public Error {
 public:
  using Error::Error;
};

struct Members;
struct GroupAccess;

/// Ranks that call collectives together. Copies are the same group.
class CLNET_API Group {
 public:
  int rank() const;        ///< this process, from 0
  int size() const;        ///< how many ranks there are
  int local_rank() const;  ///< this process among the group's ranks on the same host, from 0
  /// The name of this rank's host, and of another's.
  const std::string& host() const;
  const std::string& host(int rank) const;
  /// Ranks with equal colours become a group, in the order of their keys, then of their ranks here. All ranks of this group call
  /// it. Colours are 0 or more.
  Group split(int colour, int key = 0) const;
  /// Ends the job: all ranks throw RankLost with this reason from their next or present collective, and end with 1.
  void abort(std::string_view reason) const;

 private:
  friend struct GroupAccess;
  explicit Group(std::shared_ptr<const Members> members) : members_(std::move(members)) {}
  std::shared_ptr<const Members> members_;
};

/// The group of all ranks. The first call loads MPI and initialises it, if this process was started by a launcher; CLNET_MPI says
/// otherwise. Every rank must call it. Throws Error where MPI cannot be used, or ranks run unlike versions of clnet.
CLNET_API Group init();
/// Leaves the job: waits until all ranks do, then ends MPI if init() has begun it. Exit handlers do so for a program that does
/// not. One that calls MPI_Finalize itself calls this before.
CLNET_API void finish();

/// Elements in the host's memory, which the caller owns. f16 and bf16 are given by their bits, with their dtype.
struct ConstHostArray {
  Dtype dtype;
  const void* data;
  std::size_t count;

  ConstHostArray(Dtype dtype, const void* data, std::size_t count) : dtype(dtype), data(data), count(count) {}
  template <class T, std::size_t N>
  requires is_element_type<std::remove_const_t<T>> ConstHostArray(std::span<T, N> values)  // NOLINT(google-explicit-constructor)
      : dtype(dtype_of<ElementType<std::remove_const_t<T>>>), data(values.data()), count(values.size()) {}
  template <class T>
  ConstHostArray(const std::vector<T>& values)  // NOLINT(google-explicit-constructor)
      : ConstHostArray(std::span<const T>(values)) {}
};
/// The same, to be written.
struct HostArray {
  Dtype dtype;
  void* data;
  std::size_t count;

  HostArray(Dtype dtype, void* data, std::size_t count) : dtype(dtype), data(data), count(count) {}
  template <class T, std::size_t N>
  requires is_element_type<T> HostArray(std::span<T, N> values)  // NOLINT(google-explicit-constructor)
      : dtype(dtype_of<ElementType<T>>), data(values.data()), count(values.size()) {}
  template <class T>
  HostArray(std::vector<T>& values)  // NOLINT(google-explicit-constructor)
      : HostArray(std::span<T>(values)) {}
};

// Each function waits until its result is there. They throw RankLost where the job has lost a rank, and Error for arrays that do
// not fit. Sums are added in the order of ranks, so that all ranks have equal bits; f16 and bf16 are added in f32 and rounded
// once. Integers wrap around. Sums of bool are a DtypeError. The two arrays of a call do not overlap.

/// Replaces each element by its sum over all ranks.
CLNET_API void all_reduce(HostArray values, const Group& group);
/// The parts of all ranks, one behind the other. `whole` has size() times as many elements.
CLNET_API void all_gather(ConstHostArray part, HostArray whole, const Group& group);
/// This rank's part of the sum over all ranks. `whole` has size() times as many elements.
CLNET_API void reduce_scatter(ConstHostArray whole, HostArray part, const Group& group);
/// Root's elements on all ranks.
CLNET_API void broadcast(HostArray values, int root, const Group& group);
/// To another rank, which calls recv() with as many elements. May wait for that.
CLNET_API void send(ConstHostArray values, int to, const Group& group);
CLNET_API void recv(HostArray values, int from, const Group& group);

// The same as operations on a device, with gradients, f32, f16, bf16, f64 and integers. Their results are graph, so all ranks
// must evaluate the same collectives in the same order: those of one evaluation come in the order in which they need each other.
// A gradient is that of the sum of all ranks' losses, which all ranks compute. A group of one rank gives the input itself. They
// throw Error for an undefined tensor, DtypeError for sums of bool and ShapeError where the first dimension does not fit;
// evaluations throw RankLost. An evaluation that fails behind a collective is not tried again, and DetectAnomaly does not look
// into one.

/// The sum over all ranks. Several tensors go together, in buckets of up to 25 MiB: ranks add one while the next is on its way.
CLNET_API Tensor all_reduce(const Tensor& x, const Group& group);
CLNET_API std::vector<Tensor> all_reduce(const std::vector<Tensor>& tensors, const Group& group);
/// The tensors of all ranks, which have one shape, joined along the first dimension.
CLNET_API Tensor all_gather(const Tensor& x, const Group& group);
/// This rank's part, along the first dimension, of the sum over all ranks.
CLNET_API Tensor reduce_scatter(const Tensor& x, const Group& group);
/// Root's tensor on all ranks, which give one of the same shape.
CLNET_API Tensor broadcast(const Tensor& x, int root, const Group& group);
/// Gives x to recv() of another rank, and returns x. Its gradient is that of the result plus the one that the other rank sends
/// back, which is waited for. So what only the other rank reads is still part of the loss here, as 0.0 * sum(result).
CLNET_API Tensor send(const Tensor& x, int to, const Group& group);
/// What another rank gives to send(), of the same shape and dtype as `like`, whose elements do not matter. The gradient of `like`
/// is that of the result: evaluating it sends it back.
CLNET_API Tensor recv(const Tensor& like, int from, const Group& group);

/// Something that all ranks must share, as {"batch size", "128"}.
struct Item {
  std::string name, value;
};
/// Throws the same Error on all ranks, naming the first item that differs, where ranks give unlike ones. All ranks call it.
CLNET_API void agree(const std::vector<Item>& items, const Group& group);

}  // namespace dist

}  // namespace clnet
