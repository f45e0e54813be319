// libFuzzer: WAV files.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(wav) {
  try {
    const auto sound = clnet::data::decode_wav({data, size}, "input");
    if (std::cmp_greater(sound.samples.shape.numel(), size) || sound.rate < 1) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
