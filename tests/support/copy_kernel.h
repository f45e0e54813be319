// A kernel for operations of tests.
#pragma once

#include <string>

#include "lib/exec/launch/recorder.h"

namespace clnet::test {

/// Records the launch of a kernel that copies the first input, for lower() of the operation with this name.
inline void record_copy(exec::Recorder& recorder, const std::string& name) {
  recorder
      .generated(name,
                 "#include \"clnet.clh\"\n"
                 "kernel void copy(IN(a), OUT(y)) { const int i = (int)get_global_id(0); STORE(y, i, LOAD(a, i)); }\n",
                 "copy")
      .in("a", recorder.input(0))
      .out("y", recorder.output())
      .range({recorder.spec(recorder.input(0)).shape.numel()});
}

}  // namespace clnet::test
