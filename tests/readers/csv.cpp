// libFuzzer: CSV files.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto table = clnet::data::read_csv(file.path());
    for (const auto& column : table.columns)
      if (std::cmp_not_equal(column.values.size(), table.rows()) || column.values.size() > size + 1) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
