// Normalisation.
#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

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

void add_norms(Operations& operations) {
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
