// Datasets in host memory, with labels, targets or text: the well-known ones, files, and the caller's own arrays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/data/dataset.h"
#include "clnet/export.h"

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
struct CLNET_API ArrayDataset final : Dataset {
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
  std::int64_t size() const override;
  /// The sample as batches() gives it, without augmentation. A text's samples begin where they do without a shuffle.
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::int32_t label_of(std::int64_t index) const override;
  /// A check sum of the content.
  std::string fingerprint() const override;
};

/// Fashion-MNIST from CLNET_DATA_DIR/fashion-mnist where that exists, else from Debian's package dataset-fashion-mnist. Throws
/// FileError as load_folder().
CLNET_API ArrayDataset fashion_mnist(Split split);
/// MNIST from CLNET_DATA_DIR/mnist. Throws FileError as load_folder().
CLNET_API ArrayDataset mnist(Split split);
/// CIFAR-10 from CLNET_DATA_DIR/cifar10. Throws FileError as load_folder().
CLNET_API ArrayDataset cifar10(Split split);
/// A folder with IDX files of 10 classes (train-images-idx3-ubyte[.gz], t10k-..., ...), or else with CIFAR-10 binary batches: all
/// existing files data_batch_1.bin, data_batch_2.bin, ... for training, and test_batch.bin. Only files of `split` are opened.
/// Throws FileError with path and reason.
CLNET_API ArrayDataset load_folder(const std::filesystem::path& folder, Split split);
/// One pair of IDX files, plain or gzip-compressed: images (magic 0x803) and as many labels (0x801). The data must bear out all
/// sizes in the headers. Throws FileError with path and reason, also for a label that is not below `classes`.
CLNET_API ArrayDataset load_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                                std::int64_t classes = 10);
/// CIFAR-10's binary format: records of 1 label byte (0..9) and 3x32x32 bytes, the files in the given order. Throws FileError.
CLNET_API ArrayDataset load_cifar10(const std::vector<std::filesystem::path>& files);
/// The caller's own samples: labels.size() times the elements of `sample_shape`. Throws Error for another number of values, and
/// for a label outside 0..classes-1.
CLNET_API ArrayDataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                                   std::int64_t classes);
/// The same with `label_shape` labels per sample, as for segmentation ({height, width}) and tagging ({length}).
CLNET_API ArrayDataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<std::int32_t> labels,
                                   const Shape& label_shape, std::int64_t classes);
/// The same with `target_shape` numbers to predict per sample: {} or {1} for one.
CLNET_API ArrayDataset from_arrays(std::vector<float> samples, const Shape& sample_shape, std::vector<float> targets,
                                   const Shape& target_shape);

/// The alphabet of a text: its distinct bytes, sorted. Characters are bytes, so a file of any encoding will do; a letter of
/// several bytes is several characters.
CLNET_API std::string alphabet_of(std::string_view text);
/// The alphabet of a dataset of text: its class_names, joined.
CLNET_API std::string alphabet_of(const ArrayDataset& text);
/// The index of each character in `alphabet`, which must be sorted. Throws Error with the first character that it lacks.
CLNET_API std::vector<std::int32_t> encode(std::string_view text, std::string_view alphabet);
/// A dataset with samples of `length` characters. Throws Error for a text of fewer than length + 1 characters, and as encode().
CLNET_API ArrayDataset from_text(std::string_view text, std::string_view alphabet, std::int64_t length);
/// A file of text: the last 10 % are the test set, the rest is the training set. Both have the whole file's alphabet. Throws
/// FileError for a file that cannot be read, is larger than 1 GiB, contains a zero byte or is too short.
CLNET_API ArrayDataset load_text(const std::filesystem::path& file, Split split, std::int64_t length);

/// Mean and standard deviation of each channel over the whole dataset; u8 values are divided by 255 first. A constant channel
/// gets the deviation 1, so that division by it is safe. Throws Error for an empty dataset.
CLNET_API void compute_normalization(const ArrayDataset& dataset, std::vector<float>& mean, std::vector<float>& std);

}  // namespace clnet::data
