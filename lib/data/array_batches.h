// Batches of a dataset in memory, written where they are uploaded from.
#pragma once

#include <memory>

#include "clnet/data/arrays.h"
#include "lib/data/batch_maker.h"

namespace clnet::data {

/// As make_batch_maker().
std::unique_ptr<BatchMaker> make_array_batches(const ArrayDataset& dataset, const BatchOptions& options, const Device& device);

}  // namespace clnet::data
