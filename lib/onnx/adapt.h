// Changes to a file's graph before it is resolved: what a network needs to become another classifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/onnx/file.h"

namespace clnet::onnx {

/// Puts a fresh linear layer of `classes` outputs in the place of the last one, with the initial values of nn::Linear. Returns
/// the names of its initializers. Throws Error where the graph's first output does not come from such a layer.
std::vector<std::string> replace_head(ModelFile& file, std::int64_t classes);

/// The operator, Softmax or LogSoftmax, that the first output comes from; empty: none. `bypass` makes it an Identity.
std::string last_softmax(ModelFile& file, bool bypass);

/// Lets inputs and Reshape nodes take batches of any size, where the file has a fixed one: a first extent of that size is open.
void free_batch(ModelFile& file);

/// Makes initializers of floating constants of nodes that have more than one element.
void take_constants(ModelFile& file);

}  // namespace clnet::onnx
