// A collective's way between a device and the ranks: values go through host memory, in buckets.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "clnet/dist.h"
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

/// Each value becomes its sum over all ranks, of the same spec. While one bucket is read or written, ranks add the others.
void sum_over_ranks(exec::HostContext& context, const std::vector<Exchanged>& values, const Group& group);

/// Gives the bytes of `from` to a function, and takes those of `to` from it.
void through_host(exec::HostContext& context, const Exchanged& value,
                  const std::function<void(const std::byte* from, std::byte* to)>& exchange);

}  // namespace clnet::dist
