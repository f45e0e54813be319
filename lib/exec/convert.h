// Elements of any dtype as numbers of the host.
#pragma once

#include <cstddef>

#include "clnet/dtype.h"

namespace clnet::exec {

/// `To`: float, double, bool or an integer. C++ leaves open what an integer is made of a floating value that does not fit: here
/// it is the nearest one, and 0 for NaN.
template <class To>
void convert(Dtype from, const std::byte* source, To* target, std::size_t count);

}  // namespace clnet::exec
