// Batches of a dataset: order, augmentation, workers, collation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "clnet/data/dataset.h"
#include "clnet/error.h"
#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::data {

/// A sample in a batch, for changes in place.
struct Sample {
  std::span<float> values;         ///< normalised values, sample_shape
  std::span<std::int32_t> labels;  ///< labels, label_shape; empty where there are targets
  std::span<float> targets;        ///< targets, target_shape; empty where there are labels
  std::uint64_t random = 0;        ///< a number that depends on seed, epoch and sample alone
};

/// Random changes of samples, different in each epoch, so that a small dataset serves for longer. Labels and targets whose last
/// two dimensions are the image's move with it. Where the image had no pixel, labels get -100 and targets 0.
struct Augmentation {
  bool flip = false;                                    ///< mirrors half of the images left to right
  std::int64_t shift = 0;                               ///< moves images by up to this many pixels in each direction, over black
  std::function<void(const Sample&)> change = nullptr;  ///< the caller's own change, last; runs in a background thread
};

/// Makes the arrays of a batch from its samples, each with a first dimension more. Called by several threads at once.
using Collate = std::function<std::vector<Array>(std::vector<Example> samples)>;
/// The arrays one after the other, which must have the same shape and dtype in all samples (ShapeError, DtypeError).
CLNET_API std::vector<Array> stack_collate(std::vector<Example> samples);

/// Options of pad_collate().
struct PadOptions {
  double value = 0;                 ///< written behind shorter arrays; 1 is true
  std::vector<double> values = {};  ///< instead of `value`: one per array, as -100 for labels that do not count
  std::int64_t multiple = 1;  ///< the first dimension of padded arrays becomes a multiple of this: fewer lengths need fewer plans
  std::vector<std::size_t> arrays = {};  ///< the arrays that may be padded; empty: all that have a dimension
  bool lengths = false;  ///< adds an array "lengths", i32 {n}: the first dimension of the first padded array of each sample
};
/// Pads arrays to the largest extents in the batch. Throws ShapeError and DtypeError where rank or dtype differ, and Error for a
/// value that the dtype does not have.
CLNET_API Collate pad_collate(const PadOptions& options = {});

/// Which samples an epoch has, in order, instead of all of them: weighted_sampler(), or a function of the caller's own.
struct Sampler {
  /// `size` numbers of samples. The same seed and epoch must give the same, so that a training that is resumed goes on with them.
  std::function<std::vector<std::int64_t>(std::uint64_t seed, std::uint64_t epoch)> order = nullptr;
  std::int64_t size = 0;         ///< samples of an epoch
  std::string fingerprint = {};  ///< a text that differs between samplers; checkpoints keep it
};

/// One of several shares of each batch, as replicas have them: rows that follow each other. All shares of a batch together are
/// the batch. Order, augmentation and the number of batches are those of whole batches.
struct Share {
  /// The shares' sizes in proportion, in the order of their rows: {1, 1} for halves, {3, 1}. Rounded by the largest remainder,
  /// the first of equal ones, so that a last batch that is not full is shared likewise.
  std::vector<double> weights = {1};
  std::size_t index = 0;  ///< which of them
};
/// Rows of a batch.
struct Rows {
  std::int64_t first = 0, count = 0;
  std::int64_t batch = 0;  ///< the rows of the whole batch
};
/// The rows that a share has of a batch. Throws Error for a weight that is negative or not finite, for weights that are all 0,
/// and for an index that is none of theirs.
CLNET_API Rows rows_of(const Share& share, std::int64_t batch);

/// Options of batches().
struct BatchOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;
  std::uint64_t seed = 0;  ///< seed of the shuffle; the same seed and epoch give the same order
  std::uint64_t epoch = 0;
  bool drop_last = false;          ///< leave out a last batch that is not full
  std::int64_t start = 0;          ///< skip this many batches, to resume an epoch
  Augmentation augmentation = {};  ///< of datasets in memory; other datasets change their samples in get()

  std::int64_t workers = 1;   ///< threads that make batches; 0: the consumer's own. Order and bits are the same for any number
  std::int64_t prefetch = 2;  ///< batches that wait for the consumer: at most prefetch + workers are being made or ready
  /// Makes a batch of samples; none: stack_collate().
  Collate collate = nullptr;
  /// The length of a sample, for batches of samples of similar lengths. In a shuffled epoch pools of 64 batches are sorted by it,
  /// and batches of a pool are shuffled. Else the whole epoch is sorted.
  std::function<std::int64_t(std::int64_t index)> length = nullptr;
  std::optional<Sampler> sampler = std::nullopt;  ///< the samples of the epoch; `shuffle` must be false then
  /// Batch::stream_state of the batch before the first one: a stream goes on from there.
  std::optional<std::string> stream_state = std::nullopt;
  /// Part of each batch; none: all of it. `collate` gets the samples of the part. A stream is read as a whole.
  std::optional<Share> share = std::nullopt;
};

/// A batch of n samples, or the share of one. `auto [images, labels] = batch` takes the first two tensors.
struct CLNET_API Batch {
  Tensor images;  ///< the first array; of a dataset in memory f32 {n, ...sample_shape}, of a text i32 {n, length}
  /// The second; of a dataset in memory i32 {n, ...label_shape}, f32 {n, ...target_shape}, of a text i32 {n, length}. Undefined
  /// where samples have one array.
  Tensor labels;
  std::vector<Tensor> others = {};                         ///< all further arrays
  std::vector<std::string> names = {};                     ///< of all arrays, where they have some
  std::optional<std::string> stream_state = std::nullopt;  ///< the place behind the batch in a stream that has states
  /// The samples' place in the whole batch. A share may have none of a small batch: its tensors are undefined then.
  Rows rows = {};

  /// The part that a share's mean has in the mean over the whole batch; 1 without a share.
  double weight() const { return rows.batch > 0 ? static_cast<double>(rows.count) / static_cast<double>(rows.batch) : 1; }
  /// The number of tensors.
  std::size_t size() const { return (labels.defined() ? 2 : 1) + others.size(); }
  /// A tensor by its place. Throws Error where there is none.
  const Tensor& operator[](std::size_t index) const {
    if (index > 1 && index - 2 >= others.size())
      throw Error("batch: there is no tensor " + std::to_string(index) + " among " + std::to_string(size()));
    return index == 0 ? images : index == 1 ? labels : others[index - 2];
  }
  /// The tensor of this name. Throws Error where there is none.
  const Tensor& operator[](std::string_view name) const;

  template <std::size_t index>
  const Tensor& get() const& {
    return index == 0 ? images : labels;
  }
  template <std::size_t index>
  Tensor& get() & {
    return index == 0 ? images : labels;
  }
  template <std::size_t index>
  Tensor&& get() && {
    return std::move(index == 0 ? images : labels);
  }
};

/// The batches of one epoch, as torch.utils.data.DataLoader. Background threads prepare them and upload them to Device::current()
/// while the device works. An input range: each begin() starts the epoch again with new threads. They end with the last copy of
/// the iterator, which waits for the samples that are being read.
///   for (auto [images, labels] : data::batches(dataset, {.batch_size = 128, .shuffle = true})) ...
class CLNET_API Batches {
 public:
  class CLNET_API Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = Batch;
    Batch operator*() const;
    /// Waits for the next batch. Rethrows an exception of a background thread, behind the sample's name.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const;

   private:
    friend class Batches;
    class Loader;
    std::shared_ptr<Loader> loader_;
  };

  /// `dataset` must outlive the batches and their iterators, unchanged. Throws Error where batch_size is less than 1, start is
  /// negative, members of the dataset contradict each other, the augmentation does not fit the samples, or a stream is to be
  /// shuffled, sorted, sampled or augmented.
  Batches(const Dataset& dataset, BatchOptions options);
  Batches(const Dataset&& dataset, BatchOptions options) = delete;
  Iterator begin() const;
  Iterator end() const;
  /// The number of batches from `start` on; Dataset::unknown for a stream.
  CLNET_API std::int64_t size() const;

 private:
  const Dataset* dataset_;
  BatchOptions options_;
};

/// Batches(dataset, options).
CLNET_API Batches batches(const Dataset& dataset, const BatchOptions& options);
Batches batches(const Dataset&& dataset, const BatchOptions& options) = delete;

}  // namespace clnet::data

template <>
struct std::tuple_size<clnet::data::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t index>
struct std::tuple_element<index, clnet::data::Batch> {
  using type = clnet::Tensor;
};
