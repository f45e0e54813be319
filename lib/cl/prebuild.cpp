#include "lib/cl/prebuild.h"

#include <algorithm>

namespace clnet::ocl {

bool Prebuilder::has_built(const std::vector<KernelToBuild>& kernels) const {
  const auto all = noted(kernels);
  return std::all_of(all.begin(), all.end(), [](Noted end) { return end == Noted::compiled; });
}

}  // namespace clnet::ocl
