// libFuzzer: PNG, JPEG and BMP, as colours and as masks; lists of images and of boxes.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(image) {
  // Larger images are sound and slow.
  constexpr std::int64_t most_slow_pixels = 1 << 22;
  const clnet::test::MemoryFile file(data, size);
  for (const bool is_mask : {false, true}) {
    try {
      const auto image = is_mask ? clnet::data::read_mask(file.path()) : clnet::data::decode_image({data, size}, "input");
      if (static_cast<std::int64_t>(image.bytes.size()) != image.shape.numel()) std::abort();
      if (!is_mask && image.shape.numel() < most_slow_pixels) clnet::data::resize_image(image, 3, 5);
    } catch (const clnet::FileError&) {
    }
  }
  try {
    clnet::data::read_image16(file.path(), 1);
  } catch (const clnet::FileError&) {
  }
  for (const bool has_boxes : {false, true}) {
    try {
      if (has_boxes)
        clnet::data::image_boxes(file.path());
      else
        clnet::data::image_list(file.path());
    } catch (const clnet::FileError&) {
    }
  }
  return 0;
}
