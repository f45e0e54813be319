// Datasets in host memory, with labels, targets or text, and their batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet::data {

/// The part of a dataset.
enum class Split : std::uint8_t { train, test };

/// Samples in host memory, stored as u8 (images, 0..255) or f32. A batch is always f32: u8 is divided by 255, then normalised to
/// (x - mean) / std per channel where `mean` is given.
///
/// A sample has one class, or `target_shape` numbers to predict, or one class per pixel of an image or element of a sequence.
///
/// A dataset of text has pieces of `sample_shape` = {length} characters, one after the other. The label of a character is the
/// next character. In a shuffled epoch all pieces begin up to length - 1 characters later, so that each epoch has other pieces.
struct Dataset {
  std::string name;
  Shape sample_shape;                ///< shape of one sample: {channels, height, width} for images
  std::vector<std::uint8_t> bytes;   ///< all samples in order, where stored as u8
  std::vector<float> floats;         ///< all samples in order, where stored as f32; exactly one of the two is used
  std::vector<std::int32_t> labels;  ///< all labels, 0..classes-1; with several per sample also -100: not counted
  Shape label_shape = {};  ///< shape of one sample's labels: {} one class, {height, width} per pixel, {length} per element
  std::int64_t classes = 0;
  std::vector<float> targets;  ///< instead of labels: numbers to predict, target_shape per sample
  Shape target_shape = {};
  std::vector<std::string> class_names;  ///< empty when unknown
  std::vector<float> mean, std;          ///< per channel (extent 0 of sample_shape); both empty: no normalisation
  std::vector<std::int32_t> text;        ///< instead of samples and labels: characters, 0..classes-1; class_names is the alphabet

  bool is_text() const { return !text.empty(); }
  /// The number of samples.
  CLNET_API std::int64_t size() const;
};

/// Fashion-MNIST from CLNET_DATA_DIR/fashion-mnist where that exists, else from Debian's package dataset-fashion-mnist. Throws
/// FileError as load_folder().
CLNET_API Dataset fashion_mnist(Split split);
/// MNIST from CLNET_DATA_DIR/mnist. Throws FileError as load_folder().
CLNET_API Dataset mnist(Split split);
/// CIFAR-10 from CLNET_DATA_DIR/cifar10. Throws FileError as load_folder().
CLNET_API Dataset cifar10(Split split);
/// A folder with IDX files of 10 classes (train-images-idx3-ubyte[.gz], t10k-..., ...), or else with CIFAR-10 binary batches: all
/// existing files data_batch_1.bin, data_batch_2.bin, ... for training, and test_batch.bin. Only files of `split` are opened.
/// Throws FileError with path and reason.
CLNET_API Dataset load_folder(const std::filesystem::path& folder, Split split);
/// One pair of IDX files, plain or gzip-compressed: images (magic 0x803) and as many labels (0x801). The data must bear out all
/// sizes in the headers. Throws FileError with path and reason, also for a label that is not below `classes`.
CLNET_API Dataset load_idx(const std::filesystem::path& images, const std::filesystem::path& labels, std::int64_t classes = 10);
/// CIFAR-10's binary format: records of 1 label byte (0..9) and 3x32x32 bytes, the files in the given order. Throws FileError.
CLNET_API Dataset load_cifar10(const std::vector<std::filesystem::path>& files);
/// The caller's own samples: labels.size() times the elements of `sample_shape`. Throws Error for another number of values, and
/// for a label outside 0..classes-1.
CLNET_API Dataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                              std::int64_t classes);
/// The same with `label_shape` labels per sample, as for segmentation ({height, width}) and tagging ({length}).
CLNET_API Dataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                              const Shape& label_shape, std::int64_t classes);
/// The same with `target_shape` numbers to predict per sample: {} or {1} for one.
CLNET_API Dataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<float> targets,
                              const Shape& target_shape);

/// The alphabet of a text: its distinct bytes, sorted. Characters are bytes, so a file of any encoding will do; a letter of
/// several bytes is several characters.
CLNET_API std::string alphabet_of(std::string_view text);
/// The alphabet of a dataset of text: its class_names, joined.
CLNET_API std::string alphabet_of(const Dataset& text);
/// The index of each character in `alphabet`, which must be sorted. Throws Error with the first character that it lacks.
CLNET_API std::vector<std::int32_t> encode(std::string_view text, std::string_view alphabet);
/// A dataset with samples of `length` characters. Throws Error for a text of fewer than length + 1 characters, and as encode().
CLNET_API Dataset from_text(std::string_view text, std::string_view alphabet, std::int64_t length);
/// A file of text: the last 10 % are the test set, the rest is the training set. Both have the whole file's alphabet. Throws
/// FileError for a file that cannot be read, is larger than 1 GiB, contains a zero byte or is too short.
CLNET_API Dataset load_text(const std::filesystem::path& file, Split split, std::int64_t length);

/// Mean and standard deviation of each channel over the whole dataset; u8 values are divided by 255 first. A constant channel
/// gets the deviation 1, so that division by it is safe. Throws Error for an empty dataset.
CLNET_API void compute_normalization(const Dataset& dataset, std::vector<float>& mean, std::vector<float>& std);

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

/// Options of batches().
struct BatchOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;
  std::uint64_t seed = 0;  ///< seed of the shuffle; the same seed and epoch give the same order
  std::uint64_t epoch = 0;
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::int64_t start = 0;  ///< skip this many batches, to resume an epoch
  Augmentation augmentation = {};
};

/// A batch of n samples.
struct Batch {
  Tensor images;  ///< f32 {n, ...sample_shape}; text: i32 {n, length}
  Tensor labels;  ///< i32 {n, ...label_shape}; text: i32 {n, length}; targets: f32 {n, ...target_shape}
};

/// The batches of one epoch, as torch.utils.data.DataLoader. A background thread prepares them and uploads them to
/// Device::current() while the device works. An input range: each begin() starts the epoch again with a new thread, which ends
/// with the last copy of the iterator.
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
    /// Waits for the next batch. Rethrows an exception of the background thread.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const;

   private:
    friend class Batches;
    class Worker;
    std::shared_ptr<Worker> worker_;
  };

  /// `dataset` must outlive the batches and their iterators, unchanged. Throws Error where batch_size is less than 1, start is
  /// negative, members of the dataset contradict each other, or the augmentation does not fit the samples.
  Batches(const Dataset& dataset, BatchOptions options);
  Batches(const Dataset&& dataset, BatchOptions options) = delete;
  Iterator begin() const;
  Iterator end() const;
  /// The number of batches from `start` on.
  CLNET_API std::int64_t size() const;

 private:
  const Dataset* dataset_;
  BatchOptions options_;
};

/// Batches(dataset, options).
CLNET_API Batches batches(const Dataset& dataset, const BatchOptions& options);
Batches batches(const Dataset&& dataset, const BatchOptions& options) = delete;

}  // namespace clnet::data
