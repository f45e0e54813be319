// CIFAR-10's binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of a label and a 3x32x32 image.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/base/input_file.h"

namespace clnet::data {
namespace {

constexpr std::size_t image_bytes = 3 * 32 * 32, record_bytes = 1 + image_bytes;
constexpr std::uint64_t most_batch_bytes = std::uint64_t{1} << 30;  ///< of one file; an original batch has 30 MB

void append(ArrayDataset& dataset, const InputFile& file) {
  const auto records = static_cast<std::size_t>(file.size() / record_bytes);
  constexpr std::size_t chunk_records = 256;
  std::vector<std::uint8_t> chunk(std::min(chunk_records, records) * record_bytes);
  for (std::size_t first = 0; first < records; first += chunk_records) {
    const auto count = std::min(chunk_records, records - first);
    file.read_at(first * record_bytes, chunk.data(), count * record_bytes);
    for (std::size_t i = 0; i < count; ++i) {
      const auto* record = chunk.data() + i * record_bytes;
      if (record[0] > 9) file.fail(fmt::format("label {} of record {} is not one of 10 classes (0..9)", record[0], first + i));
      dataset.labels.push_back(record[0]);
      dataset.bytes.insert(dataset.bytes.end(), record + 1, record + record_bytes);
    }
  }
}

}  // namespace

ArrayDataset load_cifar10(const std::vector<std::filesystem::path>& files) {
  if (files.empty()) throw Error("load_cifar10: no file given");
  std::deque<InputFile> opened;  // a deque: files cannot move
  std::size_t records = 0;
  for (const auto& path : files) {
    const auto& file = opened.emplace_back(path);
    if (file.size() == 0 || file.size() % record_bytes != 0)
      file.fail(fmt::format("has {} bytes, expected a multiple of {} (CIFAR-10's records)", file.size(), record_bytes));
    if (file.size() > most_batch_bytes) file.fail(fmt::format("has {} bytes, too many for a CIFAR-10 batch", file.size()));
    records += static_cast<std::size_t>(file.size() / record_bytes);
  }
  ArrayDataset dataset;
  dataset.name = "cifar10";
  dataset.sample_shape = {3, 32, 32};
  dataset.classes = 10;
  dataset.class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  dataset.labels.reserve(records);
  dataset.bytes.reserve(records * image_bytes);
  for (const auto& file : opened) append(dataset, file);
  return dataset;
}

}  // namespace clnet::data
