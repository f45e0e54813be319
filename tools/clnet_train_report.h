// What clnet-train tells of a folder of image files: which class was taken for which, and the worst pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/nn.h"

namespace clnet::tools {

/// Of a test image.
struct Prediction {
  std::size_t label = 0, taken = 0;  ///< its class, and the one of the largest output
  double loss = 0;                   ///< cross-entropy
};

/// Of all images, in their order. Puts the model into inference mode.
std::vector<Prediction> predict(nn::Module& model, const data::Dataset& images, std::int64_t batch_size, std::int64_t workers);

/// The accuracy of each class, and which was taken for which: a line each.
std::vector<std::string> class_report(const std::vector<Prediction>& predictions, const std::vector<std::string>& names);

/// Writes a picture of the images with the largest loss, row by row, at most 25: in red frames those that were taken for another
/// class, in green frames the others. Gives a line for each.
std::vector<std::string> write_sheet(const std::string& path, const std::vector<Prediction>& predictions,
                                     const data::Images& images);

}  // namespace clnet::tools
