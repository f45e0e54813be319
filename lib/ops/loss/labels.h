// Labels that a loss is given, and indices of the rows of a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "clnet/tensor.h"

namespace clnet::ops {

/// Throws Error where one of the labels, i32 or i64 {N, ...}, is neither a class from 0 to classes - 1 nor `ignored`: it names
/// the label and its sample. Only labels that the host knows are looked at, those behind slices, casts and sums, too: nobody
/// waits for a device.
void require_classes(std::string_view op, const Tensor& labels, std::int64_t classes,
                     std::optional<std::int64_t> ignored = std::nullopt);
/// Throws Error likewise where an index is neither from 0 to rows - 1 nor one that counts from the end.
void require_rows(std::string_view op, const Tensor& indices, std::int64_t rows);

}  // namespace clnet::ops
