// Datasets of image files: PNG, JPEG and BMP, decoded, resized and changed as they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clnet/data/batches.h"
#include "clnet/data/dataset.h"
#include "clnet/export.h"

namespace clnet::data {

/// Whether this build reads such files: "png" and "jpeg" need libpng and libjpeg-turbo when clnet is built; "bmp" is always
/// there.
CLNET_API bool reads_images(std::string_view format);

/// The image in a file as u8 {channels, height, width}, by its content whatever the file is called. `channels`: 3 for red, green,
/// blue, or 1 for grey as PIL computes it. Palettes are looked up, transparency is left out, 16 bits are rounded to 8, and JPEG's
/// EXIF orientation is applied. Throws FileError, with the path, for a file that is damaged or larger than 256 MiB, has more than
/// 2^27 pixels, or is of a format that this build or function does not read.
CLNET_API Array read_image(const std::filesystem::path& path, std::int64_t channels = 3);
/// The same with 16 bits kept, as i32 from 0 to 65535. Values of 8 bits are multiplied by 257.
CLNET_API Array read_image16(const std::filesystem::path& path, std::int64_t channels = 3);
/// read_image() from bytes; `name` stands for the path in errors.
CLNET_API Array decode_image(std::span<const std::uint8_t> file, const std::string& name, std::int64_t channels = 3);
/// The classes of pixels as u8 {height, width}: a palette's indices, or grey values as they are stored in 1 to 8 bits. Throws
/// FileError as read_image(), and for colours.
CLNET_API Array read_mask(const std::filesystem::path& path);

/// Writes an image of u8 {1 or 3, height, width} as a PNG, which needs libpng, or as a BMP, by the path's ending. Throws
/// FileError where that fails.
CLNET_API void write_image(const std::filesystem::path& path, const Array& image);

/// An image of u8 {channels, height, width} in another size: bilinear with antialiasing, the same bytes as PIL's resize().
CLNET_API Array resize_image(const Array& image, std::int64_t height, std::int64_t width);

/// How files become samples.
struct ImageOptions {
  std::int64_t height = 224, width = 224;
  std::int64_t channels = 3;  ///< 3: colour, 1: grey
  /// true: the shorter side is fitted and the middle is cut out. false: both sides are fitted, and the proportions change.
  bool keep_aspect = true;
  std::vector<float> mean = {}, std = {};  ///< per channel, of pixels from 0 to 1: (x - mean) / std; both empty: none

  // Random changes, by the sample's seed: of training samples. Masks and boxes move with their image. New corners are black,
  // and -100 in masks.
  double crop = 1;                ///< below 1: a random part of at least this share of the area is cut out first, and fitted
  bool flip = false;              ///< mirrors half of the images left to right
  double rotate = 0;              ///< turns by up to this many degrees to either side
  double translate = 0;           ///< moves by up to this share of width and height
  double scale = 0;               ///< scales by 1 - scale to 1 + scale
  double shear = 0;               ///< shears along x by up to this many degrees
  double elastic = 0;             ///< displaces pixels by smooth noise: torchvision's alpha
  double elastic_sigma = 5;       ///< the deviation in pixels of the Gaussian that smooths it
  std::int64_t rand_augment = 0;  ///< so many random operations of torchvision's RandAugment
  std::int64_t magnitude = 9;     ///< their strength, 0 to 30
  double brightness = 0;          ///< multiplies pixels by 1 - brightness to 1 + brightness
  double contrast = 0;            ///< the same for the distance from the mean grey
  double saturation = 0;          ///< the same for the distance from the pixel's grey
  double hue = 0;    ///< turns colours by up to this share of the circle, at most 0.5; the four in any order, as ColorJitter
  double erase = 0;  ///< the share of images of which a random part is erased last: 0 there, -100 in masks

  double least_box = 0.1;  ///< boxes of whose area less than this share remains inside the image are left out
};

/// Image files with a class each, or with a mask each. A sample is an f32 {channels, height, width} from 0 to 1, normalised, and
/// its class, i32 {}, or its mask, i32 {height, width}. Files are read when samples are, so several `workers` help.
class CLNET_API Images : public Dataset {
 public:
  struct File {
    std::filesystem::path image;
    std::int32_t label = 0;           ///< of class_names
    std::filesystem::path mask = {};  ///< instead of a label
  };

  /// Throws Error for options out of range, and for labels outside of `class_names`. A pair's classes are 0..class_names.size()-1
  /// and 255, which becomes -100: not counted.
  Images(std::vector<File> files, std::vector<std::string> class_names, ImageOptions options);

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::int32_t label_of(std::int64_t index) const override;
  /// The file's path.
  std::string name_of(std::int64_t index) const override;
  std::string fingerprint() const override;

  const std::vector<File>& files() const { return files_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  const ImageOptions& options() const { return options_; }
  /// The same files with other options, as of a test set without random changes.
  Images with(const ImageOptions& options) const { return {files_, class_names_, options}; }
  /// Two sets, of which the second has this share of each class, at least one file where a class has two. The same seed gives the
  /// same sets.
  std::pair<Images, Images> split(double share, std::uint64_t seed = 0) const;

 private:
  std::vector<File> files_;
  std::vector<std::string> class_names_;
  ImageOptions options_;
};

/// Image files with boxes around things, for detection. A sample is the image, as of Images; its boxes, f32 {n, 4}: x1, y1, x2,
/// y2 in pixels of the sample, where pixel i reaches from i to i + 1; and their classes, i32 {n}. A changed box is the upright
/// one around the changed border, clipped to the image. box_collate() makes batches.
class CLNET_API ImageBoxes : public Dataset {
 public:
  struct Box {
    float x1 = 0, y1 = 0, x2 = 0, y2 = 0;  ///< in pixels of the file's upright image
    std::int32_t label = 0;                ///< of class_names
  };
  struct File {
    std::filesystem::path image;
    std::vector<Box> boxes;  ///< none: an image of background
  };

  /// Throws Error for options out of range, labels outside of `class_names`, and boxes without area or of more than 1e6 pixels.
  ImageBoxes(std::vector<File> files, std::vector<std::string> class_names, ImageOptions options);

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  Example get(std::int64_t index, std::uint64_t seed) const override;
  std::string name_of(std::int64_t index) const override;
  std::string fingerprint() const override;

  const std::vector<File>& files() const { return files_; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  const ImageOptions& options() const { return options_; }
  /// The same files with other options.
  ImageBoxes with(const ImageOptions& options) const { return {files_, class_names_, options}; }

 private:
  std::vector<File> files_;
  std::vector<std::string> class_names_;
  ImageOptions options_;
};

/// Pads the boxes of a batch with zeros and their classes with -100, to as many as the fullest image has, at least one.
CLNET_API Collate box_collate();

/// A folder with a folder per class: DIR/cat/1.png, DIR/dog/a/2.jpg. Classes are in the order of their names. Files are found by
/// the endings png, jpg, jpeg and bmp in up to 16 levels of folders; hidden ones are left out. Throws FileError where there is
/// none, also in the folder of one class.
CLNET_API Images image_folder(const std::filesystem::path& folder, const ImageOptions& options = {});
/// A CSV file with a path and a class in each row, in quotes where they hold commas; paths start at `root`, or at the file's
/// folder. A first row whose image does not exist is a header. Throws FileError, with the line, for a row of other than two
/// fields.
CLNET_API Images image_list(const std::filesystem::path& csv, const ImageOptions& options = {},
                            const std::filesystem::path& root = {});
/// A CSV file with a row per box: path, x1, y1, x2, y2, class. A path alone, with five empty fields, is an image without boxes.
/// Rows of one image need not follow each other. Else as image_list().
CLNET_API ImageBoxes image_boxes(const std::filesystem::path& csv, const ImageOptions& options = {},
                                 const std::filesystem::path& root = {});
/// Images and masks of the same names but for their endings, in two folders. Throws FileError for an image without a mask.
CLNET_API Images image_pairs(const std::filesystem::path& images, const std::filesystem::path& masks, std::int64_t classes,
                             const ImageOptions& options = {});

}  // namespace clnet::data
