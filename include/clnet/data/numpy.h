// NumPy's files as arrays in host memory: .npy and .npz. io.h has the same for tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "clnet/data/arrays.h"
#include "clnet/data/dataset.h"
#include "clnet/export.h"

namespace clnet::data {

/// The array in a .npy file of version 1.0, 2.0 or 3.0, in C or Fortran order and either byte order. Dtypes become clnet's: bool,
/// i1, u1, i4, i8, f2 and f4 stay; i2 and u2 become i32, u4 and u8 become i64. f8 becomes `doubles`: f64, or rounded to f32, as
/// networks and devices without doubles want it. Throws FileError with path and reason: for other dtypes, as objects and texts,
/// for data that are shorter or longer than the shape says, for more than 2^31 - 1 elements, and for a u8 above 2^63 - 1. Throws
/// DtypeError for other `doubles`.
CLNET_API Array read_npy(const std::filesystem::path& path, Dtype doubles = Dtype::f64);

/// The most memory that the arrays of a .npz file take where nothing else is said: 16 GiB.
inline constexpr std::uint64_t most_npz_bytes = std::uint64_t{1} << 34;

/// All arrays of a .npz file, in its order, with their names: stored or deflated, zip64 too. Throws FileError as read_npy(), for
/// a member that is no array or has another check sum, and where the arrays take more than `most_bytes` of memory.
CLNET_API std::vector<Array> read_npz(const std::filesystem::path& path, std::uint64_t most_bytes = most_npz_bytes,
                                      Dtype doubles = Dtype::f64);

/// A dataset of arrays whose first dimension counts samples. Samples of u8 become numbers from 0 to 1, others become f32. Integer
/// answers are labels, of `classes` or of one more than the largest; floats are targets. Throws Error where numbers of samples
/// differ, and as the other from_arrays().
CLNET_API ArrayDataset from_arrays(const Array& samples, const Array& answers, std::int64_t classes = 0);

}  // namespace clnet::data
