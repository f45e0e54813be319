#include "lib/cl/huge_pages.h"

#include "lib/base/os/pages.h"

namespace clnet::ocl {

namespace {

/// Smaller buffers hold hardly a page of that size.
constexpr std::size_t smallest = std::size_t{4} << 20;

}  // namespace

HugePages::HugePages(const cl::Context& context, const cl::Device& device, const DeviceInfo& info) {
  if (info.type != DeviceType::cpu || !info.unified_memory) return;
  try {
    queue_ = cl::CommandQueue(context, device);
  } catch (const cl::Error&) {
    // Buffers are as good without them.
  }
}

void HugePages::put_under(const cl::Buffer& buffer, std::size_t bytes) const noexcept {
  if (bytes < smallest || !queue_()) return;
  try {
    // Only the address is asked for: a driver that copies has nothing to copy yet.
    void* const address = queue_.enqueueMapBuffer(buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, bytes);
    os::prefer_huge_pages(address, bytes);
    queue_.enqueueUnmapMemObject(buffer, address);
    queue_.finish();
  } catch (const cl::Error&) {
    // As above.
  }
}

}  // namespace clnet::ocl
