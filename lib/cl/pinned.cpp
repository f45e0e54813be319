#include "lib/cl/pinned.h"

#include "lib/base/log.h"
#include "lib/cl/check.h"
#include "lib/cl/driver_lifetime.h"

namespace clnet::ocl {

Pinned::Pinned(const cl::Context& context, const cl::CommandQueue& queue, std::size_t bytes, cl_map_flags access)
    : buffer_(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes),
      queue_(queue),
      address_(queue_.enqueueMapBuffer(buffer_, CL_TRUE, access, 0, bytes)),
      bytes_(bytes) {}

Pinned::~Pinned() {
  if (drivers_gone()) {
    leave_behind(buffer_);
    leave_behind(queue_);
    return;
  }
  try {
    queue_.enqueueUnmapMemObject(buffer_, address_);
  } catch (const cl::Error& error) {
    logging::print(logging::Level::plan, "pinned memory: {} from {}", error_name(error.err()), error.what());
  }
}

}  // namespace clnet::ocl
