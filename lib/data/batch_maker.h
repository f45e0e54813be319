// Which samples a batch has, and the batch of them: the two steps of batches().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clnet/data/batches.h"
#include "clnet/device.h"
#include "lib/data/ordered_workers.h"

namespace clnet::data {

/// The samples of a batch: their numbers, or of a stream the samples.
struct Claim {
  std::vector<std::int64_t> indices;
  std::vector<Example> samples;
  std::int64_t first = 0;  ///< number of the first sample of a stream in its epoch
  std::optional<std::string> state;
  Rows rows = {};

  /// Keeps the samples of a share of this batch.
  void keep(const std::optional<Share>& share);
};

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// One call at a time; none at the epoch's end.
  virtual std::optional<Claim> claim(const Stopping& stopping) = 0;
  /// Of a claim with samples. Several threads at once. Throws Abandoned when `stopping` is set on the way.
  virtual Batch make(Claim claim, const Stopping& stopping) const = 0;
};

/// `dataset` must be valid for `options`, and outlive it. Batches go to `device`.
std::unique_ptr<BatchMaker> make_batch_maker(const Dataset& dataset, const BatchOptions& options, const Device& device);

/// The number of samples that take part in an epoch's batches.
std::int64_t used_samples(const Dataset& dataset, const BatchOptions& options);

/// Throws the exception that is being handled, behind the name of the samples. The caller's own class is nested in it.
[[noreturn]] void rethrow_of(const std::string& name);
/// Its name_of(), or where that throws the number.
std::string safe_name(const Dataset& dataset, std::int64_t index);

/// A batch of host arrays, uploaded.
Batch uploaded(std::vector<Array> arrays, const Device& device);

}  // namespace clnet::data
