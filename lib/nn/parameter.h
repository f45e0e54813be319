// The slot behind a parameter.
#pragma once

#include <memory>

#include "clnet/nn/parameter.h"
#include "lib/base/access.h"
#include "lib/graph/slot.h"

namespace clnet::nn {

inline const std::shared_ptr<Slot>& slot_of(const Parameter& parameter) { return clnet::detail::access::slot(parameter); }

}  // namespace clnet::nn
