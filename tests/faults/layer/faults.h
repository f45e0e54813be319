// A layer between a program and OpenCL that fails calls: linked before the ICD loader, or preloaded into any program, as in
//   FAULT_CALL=clCreateBuffer FAULT_NUMBER=3 FAULT_CODE=-4 LD_PRELOAD=build/tests/libopencl_faults.so clnet-train ...
// FAULT_ABORT=NAME,NAME ends each process that makes a kernel of such a name, as a compiler does that aborts over it.
#pragma once

#include <span>

namespace faults {

struct Call {
  const char* name;
  int code;  ///< what drivers are likely to say when it fails
};

/// The calls that can fail.
std::span<const Call> calls();

/// The call number `number`, from 1, of this name from now on, or so many calls from that one on, fail with `code`, without
/// reaching the driver; the others go through.
void arm(const char* name, long number, int code, long times = 1);
/// No call fails any more. How many there were of the armed name.
long disarm();

}  // namespace faults
