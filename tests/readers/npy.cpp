// libFuzzer: arrays of NumPy.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(npy) {
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto array = clnet::data::read_npy(file.path());
    // Two bytes become four at most, and four become eight.
    if (array.bytes.size() > 2 * size || array.bytes.size() != static_cast<std::size_t>(array.spec().bytes())) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
