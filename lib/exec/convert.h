// Conversion of elements of any dtype to host numbers.
#pragma once

#include <cstddef>

#include "clnet/dtype.h"

namespace clnet::exec {

/// `To`: float, double, bool or an integer. A floating value that does not fit an integer, which C++ leaves undefined, gives the
/// nearest integer, and NaN gives 0.
template <class To>
void convert(Dtype from, const std::byte* source, To* target, std::size_t count);

}  // namespace clnet::exec
