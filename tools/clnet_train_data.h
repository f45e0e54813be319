// The data of clnet-train: sets in memory, texts, and folders of image files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clnet/data.h"
#include "clnet/dist.h"
#include "tools/clnet_train_options.h"
#include "tools/image_notes.h"

namespace clnet::tools {

struct TrainData {
  std::unique_ptr<data::Dataset> train, test;
  std::string name;
  Shape sample_shape;
  std::int64_t classes = 0;
  std::string alphabet;                  ///< of a text
  std::vector<std::string> class_names;  ///< of a folder of image files
  ImageNotes notes;                      ///< how images became samples
  std::int64_t workers = 1;              ///< threads that make batches

  bool is_text() const { return !alphabet.empty(); }
  // What samples and the part for validation are called.
  const char* items() const { return is_text() ? "characters" : "images"; }
  const char* held_out() const { return is_text() ? "validation" : "test"; }
  std::int64_t per_sample() const { return is_text() ? sample_shape[0] : 1; }
};

/// The same under --scatter-data: rank 0 alone has the samples, and the others their number. All ranks call it, and throw what
/// rank 0 throws.
TrainData load_data(const TrainOptions& options, const dist::Group& ranks, const Shape& image);

/// What --data names. Image files become `image`, {channels, height, width}, where its extents are not 0. Throws FileError.
TrainData load_data(const TrainOptions& options, const Shape& image = {0, 0, 0});

}  // namespace clnet::tools
