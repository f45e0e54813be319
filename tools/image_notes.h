// What clnet-train --export says of a classifier's images and classes, in the metadata of the ONNX file: clnet-run goes by it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "clnet/onnx.h"

namespace clnet::tools {

struct ImageNotes {
  std::vector<float> mean, std;  ///< per channel or one for all, of pixels from 0 to 1; empty: none
  bool crop = false;             ///< whether the middle of an image is cut out, instead of stretching it
};

using NotesMetadata = std::vector<std::pair<std::string, std::string>>;

/// For onnx::SaveOptions. What there is not is left out of the file, also where a network had it before.
NotesMetadata metadata_of(const ImageNotes& notes);
/// The classes' names in order; none: as for an ImageNotes.
std::pair<std::string, std::string> metadata_of_labels(const std::vector<std::string>& labels);

/// What a network's file says. Throws Error, which names file and key, where that is not what clnet-train writes.
ImageNotes image_notes(const onnx::Model& model, const std::string& file);
/// ImageNotes::crop alone, whatever is wrong with the others.
bool image_crop(const onnx::Model& model, const std::string& file);
std::vector<std::string> image_labels(const onnx::Model& model);

}  // namespace clnet::tools
