// libFuzzer: checkpoints of PyTorch. Check sums would stop nearly every change of the archive, so each input is also taken as the
// pickle within.
#include "clnet/clnet.h"
#include "lib/io/torch_pickle.h"
#include "tests/readers/input.h"

CLNET_READER(torch) {
  const clnet::test::MemoryFile file(data, size);
  try {
    clnet::io::load_torch(file.path());
  } catch (const clnet::FileError&) {
  }
  for (const auto* key : {"", "model"}) {
    try {
      const auto state = clnet::io::read_state_pickle({reinterpret_cast<const char*>(data), size}, key);
      for (const auto& tensor : state.tensors)
        if (!tensor.type || tensor.extents.size() != tensor.strides.size()) std::abort();
    } catch (const clnet::io::PickleFault&) {
    }
  }
  return 0;
}
