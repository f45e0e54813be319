#include "lib/ops/loops.h"

#include <fmt/format.h>

#include "clnet/error.h"
#include "lib/cl/quirks.h"

namespace clnet::ops {

namespace {

constexpr std::int64_t most = 65535;  // llvmpipe's

}  // namespace

bool leaves_loops(std::int64_t iterations, const DeviceInfo& device) {
  return iterations > most && ocl::has_quirk(device, "llvmpipe-loops");
}

void require_loops(std::string_view op, std::int64_t iterations, const DeviceInfo& device) {
  if (leaves_loops(iterations, device))
    throw Unsupported(
        fmt::format("{}: needs loops of {} iterations, and {} leaves them after {}", op, iterations, device.name, most));
}

}  // namespace clnet::ops
