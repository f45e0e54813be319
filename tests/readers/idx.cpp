// libFuzzer: a pair of IDX files, plain or gzip; the first two bytes say how long the labels are.
#include <algorithm>

#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(idx) {
  if (size < 2) return 0;
  const auto length = std::min<std::size_t>(data[0] + 256U * data[1], size - 2);
  const clnet::test::MemoryFile labels(data + 2, length), images(data + 2 + length, size - 2 - length);
  try {
    const auto dataset = clnet::data::load_idx(images.path(), labels.path());
    const auto pixels = dataset.sample_shape.numel() * dataset.size();
    if (static_cast<std::size_t>(pixels) != dataset.bytes.size()) std::abort();
    for (const auto label : dataset.labels)
      if (label < 0 || label >= dataset.classes) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
