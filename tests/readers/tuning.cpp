// libFuzzer: what earlier runs found out about a device: choices of solvers and quirks. Damaged files are ignored, never an
// error.
#include "lib/exec/choose/tuning.h"

#include "lib/base/file.h"
#include "lib/cl/quirk_file.h"
#include "tests/readers/input.h"

using namespace clnet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const clnet::test::MemoryFile file(data, size);
  const exec::TuningFile tuning(file.path(), "device");
  (void)tuning.find("problem");
  DeviceInfo device;
  device.name = "device";
  (void)ocl::read_quirks(file.path(), device);
  return 0;
}
