// How resized and sampled images are written.
#include <algorithm>

#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

struct ResizeMode {
  std::string_view name, mode, coordinates, nearest;
};
constexpr ResizeMode resize_modes[] = {
    {"nearest", "nearest", "asymmetric", "floor"}, {"nearest_exact", "nearest", "half_pixel", "round_prefer_ceil"},
    {"linear", "linear", "half_pixel", {}},        {"bilinear", "linear", "half_pixel", {}},
    {"trilinear", "linear", "half_pixel", {}},     {"bicubic", "cubic", "half_pixel", {}}};

const ResizeMode* resize_mode(const SaveCall& call) {
  const auto found = std::find_if(std::begin(resize_modes), std::end(resize_modes),
                                  [&](const ResizeMode& mode) { return mode.name == call.text("mode"); });
  return found == std::end(resize_modes) ? nullptr : found;
}
/// With antialias PyTorch's corners are those of pixels, at another scale, which ONNX lacks.
bool fits_resize(const SaveCall& call) {
  return resize_mode(call) != nullptr && !(call.flag("antialias") && call.flag("align_corners"));
}

void resize_of(SaveCall& call) {
  const auto& how = *resize_mode(call);
  const bool corners = call.flag("align_corners"), smooth = call.flag("antialias");
  std::vector<std::int64_t> axes;
  ExtentList sizes;
  const auto out = call.out_shape();
  for (std::int64_t d = 2; d < call.rank(); ++d) {
    axes.push_back(d);
    sizes.push_back(out[static_cast<std::size_t>(d)]);
  }
  std::vector<std::string> attributes{
      write_attribute("axes", axes), write_attribute("mode", how.mode),
      write_attribute("coordinate_transformation_mode", corners ? std::string_view("align_corners") : how.coordinates)};
  if (!how.nearest.empty()) attributes.push_back(write_attribute("nearest_mode", how.nearest));
  if (how.mode == "cubic") attributes.push_back(write_attribute("cubic_coeff_a", smooth ? -0.5 : -0.75));
  if (smooth) {
    // Samples beside the image have no weight.
    attributes.push_back(write_attribute("antialias", std::int64_t{1}));
    attributes.push_back(write_attribute("exclude_outside", std::int64_t{1}));
  }
  std::vector<std::string> inputs{call.in(0), {}, {}};
  if (call.flag("by_factor")) {
    std::vector<double> factors;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      constexpr std::string_view names[] = {"factor0", "factor1", "factor2"};
      factors.push_back(call.number(names[i]));
    }
    inputs[2] = call.tensor(HostTensor::of(ElementType::f32, Shape{static_cast<std::int64_t>(factors.size())}, factors));
  } else {
    inputs.push_back(call.list(sizes));
  }
  call.give(call.op("Resize", inputs, std::move(attributes)));
}

void grid_sample_of(SaveCall& call) {
  const bool old = call.opset() < 20;
  const auto mode = call.text("mode");
  const std::string_view written = mode == "nearest"   ? "nearest"
                                   : mode == "bicubic" ? (old ? "bicubic" : "cubic")
                                                       : (old ? "bilinear" : "linear");
  call.give(call.op("GridSample", {call.in(0), call.in(1)},
                    {write_attribute("mode", written), write_attribute("padding_mode", std::string_view(call.text("padding"))),
                     write_attribute("align_corners", std::int64_t{call.flag("align_corners") ? 1 : 0})}));
}
/// Before operator set 20 only images.
bool fits_grid_sample(const SaveCall& call) { return call.rank() == 4 || (call.opset() >= 20 && call.text("mode") != "bicubic"); }

/// Boxes begin with the number of their image.
void roi_align_of(SaveCall& call) {
  const auto wide = call.slice(call.in(1), 1, 1, 5);
  const auto image = call.op("Squeeze", {call.slice(call.in(1), 1, 0, 1), call.list(std::vector<std::int64_t>{1})});
  call.give(
      call.op("RoiAlign", {call.in(0), wide, call.cast(image, Dtype::i64)},
              {write_attribute("output_height", call.integer("height")), write_attribute("output_width", call.integer("width")),
               write_attribute("spatial_scale", call.number("scale")), write_attribute("sampling_ratio", call.integer("samples")),
               write_attribute("coordinate_transformation_mode",
                               std::string_view(call.flag("aligned") ? "half_pixel" : "output_half_pixel"))}));
}

}  // namespace

std::vector<Saver> image_savers() {
  return {
      {"interpolate", resize_of, fits_resize}, {"grid_sample", grid_sample_of, fits_grid_sample}, {"roi_align", roi_align_of}};
}

}  // namespace clnet::onnx
