// Whether OpenCL drivers can be called. They cannot in a child of fork(), which lacks their threads, nor once exit handlers have
// begun to end them. Then every use throws, and destructors leave their handles behind.
#pragma once

namespace clnet::ocl {

/// Call it before the first use of a driver: from then on a child of fork() has lost it.
void use_drivers();
/// Throws DeviceError, with the reason, where drivers are gone.
void require_drivers();
/// Whether destructors must leave handles behind.
bool drivers_gone();
/// Whether this process is a child of fork() that lost its drivers.
bool in_forked_child();
/// Called by exit handlers.
void end_drivers();

/// Drops an object of the bindings without releasing its handle.
template <class Object>
void leave_behind(Object& object) {
  object() = nullptr;
}

}  // namespace clnet::ocl
