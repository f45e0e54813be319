// What has to be done at exit while OpenCL drivers still work.
#pragma once

namespace clnet::ocl {

/// Has exit handlers call it before drivers end, whichever was registered first. The last one counts.
void before_drivers_end(void (*call)());
/// That call.
void call_before_drivers_end();

}  // namespace clnet::ocl
