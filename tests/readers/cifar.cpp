// libFuzzer: CIFAR-10's batches.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(cifar) {
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto dataset = clnet::data::load_cifar10({file.path()});
    if (dataset.bytes.size() + dataset.labels.size() != size) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
