// A collective's way between a device and the ranks: values go through host memory, in buckets.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "clnet/dist.h"
#include "lib/dist/transport.h"
#include "lib/exec/launch/recorder.h"

namespace clnet::dist {

/// A value on the device, and what it becomes.
struct Exchanged {
  exec::Ref from, to;
  Spec from_spec, to_spec;
  bool needed = true;  ///< somebody reads `to`
};

/// So many bytes of values are sent together. The first bucket is small, so that the ranks are busy soon.
constexpr std::size_t first_bucket = std::size_t{1} << 20, next_bucket = std::size_t{25} << 20;

/// The positions of values that are sent together: neighbours of one dtype, until they reach the bucket's size.
std::vector<std::vector<std::size_t>> buckets_of(const std::vector<Spec>& values);

/// From so many bytes on a value is an array of its own in messages, on all ranks.
constexpr std::size_t large_value = std::size_t{64} << 10;

/// Each value becomes its sum over all ranks, of the same spec, by way of buckets. While one is read or written, ranks add the
/// others. Small values are packed together. Large ones are added where they are, if the device shares its memory with the host.
class SumOverRanks {
 public:
  struct Options {
    bool beside = false;         ///< in a turn of its own, beside the group's other collectives
    bool shares_memory = false;  ///< the device with the host
  };
  SumOverRanks(std::vector<Exchanged> values, const Group& group, const Options& options);

  std::size_t buckets() const { return buckets_.size(); }
  /// The values that a bucket's begin and its end use on the device.
  struct Uses {
    std::vector<exec::Ref> reads, writes;
  };
  Uses of_begin(std::size_t bucket) const;
  Uses of_end(std::size_t bucket) const;
  /// Has a bucket's values added. In each run of a plan each bucket begins, and ends after that.
  void begin(std::size_t bucket, exec::HostContext& context);
  /// Waits for a bucket's sums, and writes those that are not there yet.
  void end(std::size_t bucket, exec::HostContext& context);

 private:
  class OnTheWay;
  struct Bucket {
    std::vector<std::size_t> packed, large;
    std::weak_ptr<OnTheWay> on_the_way;  ///< in the present run, which keeps it
  };

  /// Whether it is added where it is.
  bool mapped(std::size_t value) const;

  std::vector<Exchanged> values_;
  std::shared_ptr<Transport> transport_;
  Options options_;
  std::vector<Bucket> buckets_;
};

/// The same as all_reduce(), of gradients: each bucket begins as soon as the backward pass has its values, and goes on beside
/// what is left of that. The last tensors are expected first.
std::vector<Tensor> all_reduce_beside(const std::vector<Tensor>& tensors, const Group& group);

/// Replaces arrays in the host's memory by their sums over all ranks, which give arrays of equal lengths, and waits for that.
/// They travel in buckets as `exchanged`, f32 or bf16: one is packed while ranks add the one before. One rank changes nothing.
/// Throws RankLost.
void sum_over_ranks(std::span<std::vector<float>> arrays, Dtype exchanged, const Group& group);

/// Gives the bytes of `from` to a function, and takes those of `to` from it.
void through_host(exec::HostContext& context, const Exchanged& value,
                  const std::function<void(const std::byte* from, std::byte* to)>& exchange);

}  // namespace clnet::dist
