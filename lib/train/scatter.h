// Data that rank 0 alone has: what the other ranks know of it, and their shares of its batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clnet/data.h"
#include "clnet/device.h"
#include "clnet/dist.h"

namespace clnet::train {

/// What training asks a dataset for, beside its samples.
struct DatasetFacts {
  std::int64_t size = 0;
  bool all_labels_count = false, mixes = false;
  std::string normalization, fingerprint;
};

/// A dataset of rank 0 as all ranks of a group see it. All of them make it.
class Scattered : public data::Dataset {
 public:
  /// The others' `of_first` is not looked at. Without `compared` there is no fingerprint, which takes a look at all samples.
  Scattered(const data::Dataset& of_first, const dist::Group& group, bool compared);
  std::int64_t size() const override { return facts_.size; }
  std::string fingerprint() const override { return facts_.fingerprint; }

  const DatasetFacts& facts() const { return facts_; }
  const dist::Group& group() const { return group_; }
  /// Null on the other ranks.
  const data::Dataset* source() const { return source_; }

 private:
  dist::Group group_;
  const data::Dataset* source_;
  DatasetFacts facts_;
};

/// Throws Error, on all ranks, where some have a validation dataset and others have none.
void require_equal_validation(const dist::Group& group, bool here);

/// The dataset itself; of a Scattered that of rank 0, which is null on the others.
const data::Dataset* held(const data::Dataset& dataset);

/// Who gets the shares of a Scattered's batches: ranks with so many devices, of which this rank has these.
struct Receivers {
  std::vector<std::size_t> devices_by_rank;
  std::vector<Device> own;
};

/// The batches of an epoch, one after the other. Of a Scattered rank 0 makes the shares of all ranks, and sends each rank its own
/// when that is asked for: so there is never more on the way than one batch. All ranks ask equally often.
class BatchSource {
 public:
  /// `share` is this rank's, or its first device's. Workers are those of all shares. Without receivers each rank gets one share,
  /// on the current device.
  BatchSource(const data::Dataset& dataset, const data::BatchOptions& options, Receivers receivers = {});
  /// None at the end. What rank 0 throws as it reads is thrown on all ranks.
  std::optional<data::Batch> next();
  /// The same for each of this rank's devices, of a Scattered; nothing at the end.
  std::vector<data::Batch> next_parts();

 private:
  /// One rank's share of the batches.
  struct Part {
    data::Batches batches;
    std::optional<data::Batches::Iterator> at = std::nullopt;
    std::optional<data::Batch> next();
  };
  void begin();
  std::vector<data::Batch> next_of_first();

  std::optional<dist::Group> group_;  ///< of a Scattered
  const data::Dataset* source_ = nullptr;
  data::BatchOptions options_;
  Receivers receivers_;
  std::vector<Part> parts_;  ///< all shares where this is rank 0
};

}  // namespace clnet::train
