// libFuzzer: CSV files.
#include "clnet/clnet.h"
#include "tests/readers/input.h"

CLNET_READER(csv) {
  const clnet::test::MemoryFile file(data, size);
  try {
    const auto table = clnet::data::read_csv(file.path());
    for (const auto& column : table.columns)
      if (std::cmp_not_equal(column.values.size(), table.rows()) || column.values.size() > size + 1) std::abort();
  } catch (const clnet::FileError&) {
  }
  return 0;
}
