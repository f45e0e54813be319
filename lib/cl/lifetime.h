// When OpenCL drivers can be called: not in a child of fork(), which has none of their threads, and not once exit handlers have
// begun to take them down. Then every use throws, and what is destroyed leaves its handles behind.
#pragma once

namespace clnet::ocl {

/// To be called before the first call of a driver: from then on a child of fork() has lost it.
void use_drivers();
/// Throws DeviceError, saying why, when drivers are gone.
void require_drivers();
/// Whether handles are to be left behind.
bool drivers_gone();
/// Whether this is such a child.
bool in_forked_child();
/// Called by exit handlers.
void end_drivers();

/// Forgets an OpenCL object of the bindings instead of releasing it.
template <class Object>
void leave_behind(Object& object) {
  object() = nullptr;
}

}  // namespace clnet::ocl
