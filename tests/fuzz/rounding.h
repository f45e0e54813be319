// Values in double precision and the storage that they stand for, by definition and without the library's conversions.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/cases/case.h"

namespace clnet::fuzz {

/// The nearest value that the dtype holds, ties to even; whole numbers towards zero, u8 modulo 256.
double rounded(double value, Dtype dtype);
/// Half of the distance from 1 to the next number: 2^-24, 2^-11, 2^-8, 2^-53; 0 for whole numbers.
double unit(Dtype dtype);
/// Half of the distance from 0 to the smallest number that is not 0.
double tiniest(Dtype dtype);

std::vector<std::byte> to_storage(const testing::Array& array, Dtype dtype);
testing::Array from_storage(const std::vector<std::byte>& bytes, const Spec& spec);

}  // namespace clnet::fuzz
