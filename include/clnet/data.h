// Datasets of samples with labels or numbers to be predicted and of text, and batches of them.
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

enum class Split : std::uint8_t { train, test };

/// Labelled samples in host memory. Samples are stored as u8 (images, 0..255) or f32; a batch's images are f32 either way, with
/// u8 divided by 255, then (x - mean) / std per channel when given.
///
/// A sample has a class, or a class for each pixel of an image or element of a sequence, or numbers that are to be predicted.
///
/// Or a text, whose samples are as many pieces of `sample_shape` = {length} characters as it has, one behind the other; the label
/// of each character is the one that follows it. In a shuffled epoch all pieces begin up to length - 1 characters later, so
/// that they are other ones in each epoch.
struct Dataset {
  std::string name;
  Shape sample_shape;                ///< of one sample, {channels, height, width} for images
  std::vector<std::uint8_t> bytes;   ///< samples one after the other, when stored as u8
  std::vector<float> floats;         ///< or as f32; exactly one of the two is used
  std::vector<std::int32_t> labels;  ///< of all samples, 0..classes-1; where label_shape has dimensions also -100: not counted
  Shape label_shape = {};            ///< of one sample's labels: {} a class, {height, width} one per pixel, {length} per element
  std::int64_t classes = 0;
  std::vector<float> targets;  ///< or instead of labels: numbers to be predicted, target_shape for each sample
  Shape target_shape = {};
  std::vector<std::string> class_names;  ///< empty when unknown
  std::vector<float> mean, std;          ///< per channel (extent 0 of sample_shape); both empty: no normalisation
  std::vector<std::int32_t> text;        ///< instead of samples and labels: characters, 0..classes-1, class_names the alphabet

  bool is_text() const { return !text.empty(); }
  /// Samples.
  CLNET_API std::int64_t size() const;
};

/// Fashion-MNIST from CLNET_DATA_DIR/fashion-mnist where that exists, else from Debian's package dataset-fashion-mnist.
CLNET_API Dataset fashion_mnist(Split split);
/// MNIST from CLNET_DATA_DIR/mnist.
CLNET_API Dataset mnist(Split split);
/// CIFAR-10 from CLNET_DATA_DIR/cifar10.
CLNET_API Dataset cifar10(Split split);
/// A folder with IDX files of 10 classes (train-images-idx3-ubyte[.gz], t10k-..., ...), or else with CIFAR-10 binary batches:
/// whichever of data_batch_1.bin, data_batch_2.bin, ... there are for training, and test_batch.bin. Only files of the split
/// asked for are opened. Throws FileError with path and reason.
CLNET_API Dataset load_folder(const std::filesystem::path& folder, Split split);
/// One pair of IDX files, plain or gzip-compressed: images (magic 0x803) and labels (0x801), as many of one as of the other.
/// Sizes in headers are believed only as far as the data bear them out. Throws FileError with path and reason, also for a label
/// that is not below `classes`.
CLNET_API Dataset load_idx(const std::filesystem::path& images, const std::filesystem::path& labels, std::int64_t classes = 10);
/// CIFAR-10's binary format: records of 1 label byte (0..9) and 3x32x32 bytes; the files one after the other. Throws FileError.
CLNET_API Dataset load_cifar10(const std::vector<std::filesystem::path>& files);
/// The caller's own samples, `labels.size()` times `sample_shape`. Throws Error for another number of values, and for a label
/// that is not in 0..classes-1.
CLNET_API Dataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                              std::int64_t classes);
/// The same with `label_shape` labels for each sample, as for segmentation ({height, width}) and tagging ({length}).
CLNET_API Dataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                              const Shape& label_shape, std::int64_t classes);
/// The same with `target_shape` numbers to be predicted for each sample: {} or {1} for one.
CLNET_API Dataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<float> targets,
                              const Shape& target_shape);

/// A text's alphabet: its different bytes, in order. Bytes, so that a file of any encoding serves; a letter that takes several
/// is several characters.
CLNET_API std::string alphabet_of(std::string_view text);
/// That of a dataset of text: its class_names in one.
CLNET_API std::string alphabet_of(const Dataset& text);
/// Each character's place in the alphabet, which must be in order. Throws Error naming the first that is not in it.
CLNET_API std::vector<std::int32_t> encode(std::string_view text, std::string_view alphabet);
/// Samples of `length` characters. Throws Error for a text of fewer than length + 1 characters, and as encode().
CLNET_API Dataset from_text(std::string_view text, std::string_view alphabet, std::int64_t length);
/// A file of text: its last 10 % are the test set, what comes before them the training set; the alphabet of both is the whole
/// file's. Throws FileError when it cannot be read, is larger than 1 GiB, has a zero byte, as texts never do, or is too short.
CLNET_API Dataset load_text(const std::filesystem::path& file, Split split, std::int64_t length);

/// Mean and standard deviation of each channel over the whole dataset, of values after division by 255 where stored as u8. The
/// deviation of a channel that is constant is given as 1, so that it can be divided by. Throws Error for an empty dataset.
CLNET_API void compute_normalization(const Dataset& dataset, std::vector<float>& mean, std::vector<float>& std);

/// A sample in a batch, to be changed in place.
struct Sample {
  std::span<float> values;         ///< sample_shape, normalised
  std::span<std::int32_t> labels;  ///< label_shape; empty where there are targets
  std::span<float> targets;        ///< target_shape; empty where there are labels
  std::uint64_t random = 0;        ///< another number for each seed, epoch and sample, and always the same for those
};

/// What is done to samples, in each epoch otherwise, so that a small dataset serves for longer. Labels and targets whose last two
/// dimensions are the image's go along, labels with -100 where nothing was, targets with 0.
struct Augmentation {
  bool flip = false;                                    ///< mirrors half of the images left to right
  std::int64_t shift = 0;                               ///< moves images by up to so many pixels each way, over black ones
  std::function<void(const Sample&)> change = nullptr;  ///< the caller's own, last; called in a background thread
};

struct BatchOptions {
  std::int64_t batch_size = 32;
  bool shuffle = false;
  std::uint64_t seed = 0;  ///< of the shuffle; the same seed and epoch give the same order
  std::uint64_t epoch = 0;
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::int64_t start = 0;  ///< skip this many batches: where a resumed epoch goes on
  Augmentation augmentation = {};
};

struct Batch {
  Tensor images;  ///< f32, {n, ...sample_shape}; of a text i32, {n, length}
  Tensor labels;  ///< i32, {n, ...label_shape}; of a text {n, length}; or of targets f32, {n, ...target_shape}
};

/// The batches of one epoch, prepared and uploaded to Device::current() by a background thread while the device works. An input
/// range: each begin() starts the epoch again, with a thread of its own that ends with the last copy of the iterator.
/// for (auto [images, labels] : data::batches(dataset, {.batch_size = 128, .shuffle = true})) ...
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
    /// Waits for the next batch. Throws what went wrong while it was made.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const;

   private:
    friend class Batches;
    class Worker;
    std::shared_ptr<Worker> worker_;
  };

  /// `dataset` must outlive the batches and their iterators, unchanged. Throws Error when batch_size is less than 1, start is
  /// negative, the dataset's parts do not fit together, or the augmentation does not fit its samples.
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
