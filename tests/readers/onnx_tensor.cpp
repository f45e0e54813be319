// libFuzzer: tensors and sequences of such in files of ONNX's tests.
#include "clnet/clnet.h"
#include "clnet/onnx.h"
#include "tests/readers/input.h"

CLNET_READER(onnx_tensor) {
  const clnet::test::MemoryFile file(data, size);
  for (const bool is_sequence : {false, true}) {
    try {
      const auto value = clnet::onnx::load_tensor(file.path(), is_sequence);
      if (value.is_sequence != is_sequence || value.elements.size() > size) std::abort();
      // A number of one byte becomes one of eight at most.
      if (!is_sequence && std::cmp_greater(value.tensor.spec().bytes(), 8 * size)) std::abort();
    } catch (const clnet::FileError&) {
    } catch (const clnet::Unsupported&) {
    }
  }
  return 0;
}
