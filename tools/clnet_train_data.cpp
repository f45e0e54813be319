#include "tools/clnet_train_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "clnet/error.h"
#include "clnet/models.h"
#include "lib/train/packing.h"

namespace clnet::tools {

namespace fs = std::filesystem;

namespace {

/// Of each class, where a folder has no test set of its own.
constexpr double test_share = 0.2;
/// Enough for mean and deviation of each channel.
constexpr std::int64_t most_measured = 1000;

/// Samples that another rank has.
class Elsewhere : public data::Dataset {
 public:
  explicit Elsewhere(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }

 private:
  std::int64_t size_;
};

data::ArrayDataset load_set(const std::string& name, data::Split split) {
  if (name == "fashion-mnist") return data::fashion_mnist(split);
  if (name == "mnist") return data::mnist(split);
  if (name == "cifar10") return data::cifar10(split);
  std::error_code code;
  if (!fs::exists(name, code))
    throw FileError(fmt::format("--data {}: no such folder or file, and not one of fashion-mnist, mnist, cifar10", name));
  return data::load_folder(name, split);
}

TrainData in_memory(data::ArrayDataset train, data::ArrayDataset test, const TrainOptions& o) {
  TrainData data;
  data.workers = std::max<std::int64_t>(1, o.workers);
  data.name = train.name;
  data.sample_shape = train.sample_shape;
  data.classes = train.classes;
  data.notes = {.mean = train.mean, .std = train.std};
  if (train.is_text()) data.alphabet = data::alphabet_of(train);
  data.train = std::make_unique<data::ArrayDataset>(std::move(train));
  data.test = std::make_unique<data::ArrayDataset>(std::move(test));
  return data;
}

/// A folder of folders that holds no files of a known set: a folder per class, or train and test folders of such.
bool is_of_images(const fs::path& folder) {
  if (folder == "fashion-mnist" || folder == "mnist" || folder == "cifar10") return false;
  std::error_code code;
  bool has_folders = false;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    const auto name = entry->path().filename().string();
    const bool is_folder = entry->is_directory(code);
    if (!is_folder && (name.ends_with(".bin") || name.starts_with("train-") || name.starts_with("t10k-"))) return false;
    has_folders = has_folders || (is_folder && !name.starts_with('.'));
  }
  return has_folders;
}

std::optional<fs::path> test_folder(const fs::path& folder) {
  std::error_code code;
  for (const char* name : {"test", "val", "valid", "validation"})
    if (fs::is_directory(folder / name, code)) return folder / name;
  return std::nullopt;
}

/// Mean and deviation of each channel over some of the images.
void measure(const data::Images& images, data::ImageOptions& options) {
  const auto channels = static_cast<std::size_t>(options.channels);
  std::vector<double> sums(channels), squares(channels);
  const auto step = std::max<std::int64_t>(1, images.size() / most_measured);
  double count = 0;
  for (std::int64_t i = 0; i < images.size(); i += step) {
    const auto sample = images.get(i, 0);
    const auto values = sample[0].values<float>();
    const auto plane = values.size() / channels;
    for (std::size_t v = 0; v < values.size(); ++v) {
      sums[v / plane] += static_cast<double>(values[v]);
      squares[v / plane] += static_cast<double>(values[v]) * static_cast<double>(values[v]);
    }
    count += static_cast<double>(plane);
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / count, variance = squares[c] / count - mean * mean;
    options.mean.push_back(static_cast<float>(mean));
    options.std.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0F);
  }
}

/// All channels get the mean and deviation of their values together.
void join_channels(std::vector<float>& mean, std::vector<float>& deviation) {
  const auto channels = static_cast<double>(mean.size());
  double sum = 0, squares = 0;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const auto m = static_cast<double>(mean[c]), d = static_cast<double>(deviation[c]);
    sum += m;
    squares += m * m + d * d;
  }
  const double all = sum / channels;
  std::fill(mean.begin(), mean.end(), static_cast<float>(all));
  std::fill(deviation.begin(), deviation.end(), static_cast<float>(std::sqrt(squares / channels - all * all)));
}

TrainData of_images(const TrainOptions& o, const Shape& image) {
  const fs::path folder = o.data;
  data::ImageOptions options{.height = *o.image_size, .width = *o.image_size};
  if (image[0]) options.channels = image[0];
  if (image[1]) options.height = image[1];
  if (image[2]) options.width = image[2];
  const auto held_out = test_folder(folder);
  std::error_code code;
  const bool is_split = held_out && fs::is_directory(folder / "train", code);
  auto sets = is_split ? std::pair(data::image_folder(folder / "train", options), data::image_folder(*held_out, options))
                       : data::image_folder(folder, options).split(test_share, o.seed);
  if (sets.first.class_names() != sets.second.class_names())
    throw FileError(fmt::format("--data {}: {} has other classes than train", o.data, held_out->filename().string()));
  if (sets.second.size() == 0)
    throw FileError(fmt::format("--data {}: too few images for a test set: a class needs two at least", o.data));
  if (o.normalize == "mean-std") measure(sets.first, options);
  TrainData data;
  data.notes = {.mean = options.mean, .std = options.std, .crop = options.keep_aspect};
  data.test = std::make_unique<data::Images>(sets.second.with(options));
  if (o.augment) {
    options.crop = 0.5;
    options.flip = true;
    options.brightness = options.contrast = 0.2;
  }
  data.train = std::make_unique<data::Images>(sets.first.with(options));
  const auto whole = fs::absolute(folder).lexically_normal();
  data.workers = o.workers > 0 ? o.workers : std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  data.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  data.sample_shape = {options.channels, options.height, options.width};
  data.class_names = sets.first.class_names();
  data.classes = static_cast<std::int64_t>(data.class_names.size());
  return data;
}

}  // namespace

TrainData load_data(const TrainOptions& o, const Shape& image) {
  std::error_code code;
  const bool writes = models::is_language_model(o.model);
  const bool file = fs::is_regular_file(o.data, code);
  if (file && !writes) throw FileError(fmt::format("--data {}: is a file, where {} needs a folder of images", o.data, o.model));
  if (!file && writes && !fs::exists(o.data, code))
    throw FileError(fmt::format("--data {}: no such file, and {} needs one of text", o.data, o.model));
  if (!file && writes) throw FileError(fmt::format("--data {}: is no file, where {} needs a text", o.data, o.model));
  if (writes)
    return in_memory(data::load_text(o.data, data::Split::train, *o.context),
                     data::load_text(o.data, data::Split::test, *o.context), o);
  if (is_of_images(o.data)) return of_images(o, image);
  if (o.chosen_sheet) throw FileError(fmt::format("--sheet: {} is no folder of image files by class", o.data));
  if (o.augment) throw FileError(fmt::format("--augment: {} is no folder of image files by class", o.data));
  auto train = load_set(o.data, data::Split::train), test = load_set(o.data, data::Split::test);
  if (o.chosen_image_size) throw FileError(fmt::format("--image-size: {} has images of one size", o.data));
  for (const auto* set : {&train, &test})
    if (set->size() == 0)
      throw FileError(fmt::format("--data {}: the {} set holds no images", o.data, set == &train ? "training" : "test"));
  if (train.sample_shape != test.sample_shape || train.classes != test.classes)
    throw FileError(fmt::format("--data {}: training images are {}, test images {}", o.data, to_string(train.sample_shape),
                                to_string(test.sample_shape)));
  if (o.normalize == "mean-std") {
    data::compute_normalization(train, train.mean, train.std);
    // A network of grey images makes colours grey afterwards: that is a grey image by one mean and deviation.
    if (image[0] == 1) join_channels(train.mean, train.std);
    test.mean = train.mean;
    test.std = train.std;
  }
  return in_memory(std::move(train), std::move(test), o);
}

TrainData load_data(const TrainOptions& o, const dist::Group& ranks, const Shape& image) {
  if (!o.scatter_data || ranks.size() == 1) return load_data(o, image);
  TrainData data;
  const auto facts = train::from_first(ranks, [&] {
    data = load_data(o, image);
    train::Packer packer;
    packer.text(data.name);
    packer.shape(data.sample_shape);
    for (const auto number : {data.classes, data.train->size(), data.test->size()}) packer.number(number);
    packer.text(data.alphabet);
    packer.number(static_cast<std::int64_t>(data.class_names.size()));
    for (const auto& name : data.class_names) packer.text(name);
    return packer.take();
  });
  if (data.train) return data;
  train::Unpacker unpacker(facts);
  data.name = unpacker.text();
  data.sample_shape = unpacker.shape();
  data.classes = unpacker.number();
  data.train = std::make_unique<Elsewhere>(unpacker.number());
  data.test = std::make_unique<Elsewhere>(unpacker.number());
  data.alphabet = unpacker.text();
  data.class_names.resize(static_cast<std::size_t>(unpacker.number()));
  for (auto& name : data.class_names) name = unpacker.text();
  return data;
}

}  // namespace clnet::tools
