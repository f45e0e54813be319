// libFuzzer: CIFAR-10's batches.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto dataset = clnet::data::load_cifar10({file.path()});
    if (dataset.bytes.size() + dataset.labels.size() != size) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
