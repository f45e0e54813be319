// IDX, the format of MNIST (http://yann.lecun.com/exdb/mnist/): a big-endian magic (0, 0, type, rank), one u32 per dimension,
// data.
#include <fmt/format.h>

#include <limits>

#include "clnet/data.h"
#include "clnet/error.h"
#include "lib/data/byte_source.h"

namespace clnet::data {
namespace {

constexpr std::uint32_t image_magic = 0x803, label_magic = 0x801;

/// The dimensions, of which a magic number's last byte says how many.
std::vector<std::uint32_t> read_header(ByteSource& source, std::uint32_t magic, std::string_view what) {
  std::vector<unsigned char> bytes(4 + 4 * (magic & 0xff));
  const auto got = source.read(bytes.data(), bytes.size());
  const auto word = [&](std::size_t i) {
    return std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 | std::uint32_t{bytes[i + 2]} << 8 | bytes[i + 3];
  };
  if (got >= 4 && word(0) != magic)
    source.fail(fmt::format("not an IDX file of {}: its magic number is {:#x}, expected {:#x}", what, word(0), magic));
  if (got < bytes.size())
    source.fail(fmt::format("ends after {} bytes; the header of an IDX file of {} has {}", got, what, bytes.size()));
  std::vector<std::uint32_t> dimensions;
  for (std::size_t i = 4; i < bytes.size(); i += 4) dimensions.push_back(word(i));
  return dimensions;
}

}  // namespace

ArrayDataset load_idx(const std::filesystem::path& images, const std::filesystem::path& labels, std::int64_t classes) {
  if (classes < 1) throw Error(fmt::format("load_idx: classes is {}, expected at least 1", classes));
  ByteSource image_source(images), label_source(labels);
  const auto image_header = read_header(image_source, image_magic, "images");
  const auto label_header = read_header(label_source, label_magic, "labels");
  const std::uint64_t count = image_header[0], rows = image_header[1], columns = image_header[2];
  if (count == 0 || rows == 0 || columns == 0)
    image_source.fail(
        fmt::format("its header tells of {} images of {} x {} pixels, expected at least one of each", count, rows, columns));
  if (rows * columns > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    image_source.fail(fmt::format("its header tells of images of {} x {} pixels, more than a tensor holds", rows, columns));
  if (label_header[0] != count)
    label_source.fail(
        fmt::format("its header tells of {} labels, expected {}, one per image of {}", label_header[0], count, images.string()));

  ArrayDataset dataset;
  dataset.name = images.parent_path().filename().string();
  dataset.sample_shape = {1, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
  dataset.classes = classes;
  // The labels first: they are short, and tell whether the larger file is worth reading.
  const auto label_bytes = label_source.read_exactly(count, "the labels");
  label_source.expect_end("the labels");
  for (std::size_t i = 0; i < label_bytes.size(); ++i)
    if (label_bytes[i] >= classes)
      label_source.fail(
          fmt::format("label {} of sample {} is not one of {} classes (0..{})", label_bytes[i], i, classes, classes - 1));
  dataset.bytes = image_source.read_exactly(count * (rows * columns), "the images");  // below 2^32 * 2^31: no overflow
  image_source.expect_end("the images");
  dataset.labels.assign(label_bytes.begin(), label_bytes.end());
  return dataset;
}

}  // namespace clnet::data
