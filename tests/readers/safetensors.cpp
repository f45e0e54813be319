// libFuzzer: files of weights.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(safetensors) {
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto content = clnet::io::load_safetensors(file.path());
    for (const auto& [name, tensor] : content.tensors)
      if (static_cast<std::size_t>(tensor.spec().bytes()) > 2 * size) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
