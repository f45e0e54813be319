// Convolution, pooling and normalisation.
#include <fmt/format.h>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

Results conv2d_case(const Given& in) {
  return y(conv2d(in["x"], in["weight"], in["bias"],
                  {.stride = in.pair("stride", 1),
                   .padding = in.padding(),
                   .dilation = in.pair("dilation", 1),
                   .groups = in.integer("groups", 1)}));
}

Results conv_transpose2d_case(const Given& in) {
  return y(conv_transpose2d(in["x"], in["weight"], in["bias"],
                            {.stride = in.pair("stride", 1),
                             .padding = in.padding(),
                             .output_padding = in.pair("output_padding", 0),
                             .dilation = in.pair("dilation", 1),
                             .groups = in.integer("groups", 1)}));
}

/// The kernel's size where it is absent.
template <class Axes>
std::optional<Axes> stride(const Given& in, Axes (Given::*read)(const char*, std::int64_t) const) {
  const auto found = in.attributes.find("stride");
  if (found == in.attributes.end() || found->is_null()) return std::nullopt;
  return (in.*read)("stride", 1);
}

Results batch_norm_case(const Given& in) {
  const auto x = in["x"], old_mean = in["rm"], old_var = in["rv"];
  const double momentum = in.number("momentum", 0.1), eps = in.number("eps", 1e-5);
  if (!in.flag("training"))
    return {{{"y", batch_norm_inference(x, old_mean, old_var, in["weight"], in["bias"], eps)},
             {"running_mean_after", old_mean},
             {"running_var_after", old_var}},
            {}};
  const auto result = batch_norm_training(x, in["weight"], in["bias"], eps);
  Results results = y(result.y);
  if (old_mean.defined()) results.outputs["running_mean_after"] = old_mean * (1 - momentum) + result.mean * momentum;
  if (old_var.defined()) results.outputs["running_var_after"] = old_var * (1 - momentum) + result.var * momentum;
  return results;
}

}  // namespace

void add_image(Operations& operations) {
  operations["conv2d"] = conv2d_case;
  operations["conv_transpose2d"] = conv_transpose2d_case;
  operations["avg_pool2d"] = [](const Given& in) {
    return y(avg_pool2d(in["x"], in.pair("kernel", 1),
                        {.stride = stride(in, &Given::pair),
                         .padding = in.padding(),
                         .ceil_mode = in.flag("ceil_mode"),
                         .count_include_pad = in.flag("count_include_pad", true)}));
  };
  operations["adaptive_max_pool2d"] = [](const Given& in) { return y(adaptive_max_pool2d(in["x"], in.pair("output", 1))); };
  operations["adaptive_avg_pool2d"] = [](const Given& in) { return y(adaptive_avg_pool2d(in["x"], in.pair("output", 1))); };
  operations["batch_norm"] = batch_norm_case;
  operations["layer_norm"] = [](const Given& in) {
    return y(layer_norm(in["x"], static_cast<int>(in.attributes.at("normalized_shape").size()), in["weight"], in["bias"],
                        in.number("eps", 1e-5)));
  };
  operations["rms_norm"] = [](const Given& in) {
    return y(rms_norm(in["x"], static_cast<int>(in.attributes.at("normalized_shape").size()), in["weight"],
                      in.number("eps", 0x1p-23)));
  };
  operations["group_norm"] = [](const Given& in) {
    return y(group_norm(in["x"], in.integer("groups", 1), in["weight"], in["bias"], in.number("eps", 1e-5)));
  };
  operations["instance_norm"] = [](const Given& in) {
    return y(instance_norm(in["x"], in["weight"], in["bias"], in.number("eps", 1e-5)));
  };
  operations["local_response_norm"] = [](const Given& in) {
    return y(local_response_norm(in["x"], in.integer("size", 1), in.number("alpha", 1e-4), in.number("beta", 0.75),
                                 in.number("k", 1)));
  };
}

}  // namespace clnet::torch
