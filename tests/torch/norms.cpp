// Normalisation.
#include "tests/torch/cases.h"
#include "tests/torch/names.h"

namespace clnet::torch {

namespace {

Results batch_norm_case(const Given& in) {
  in.restated({"num_features", "affine", "track_running_stats", "use_input_stats"});
  const auto old_mean = in[{"rm", "running_mean"}], old_var = in[{"rv", "running_var"}];
  const double momentum = in.number("momentum", 0.1), eps = in.number("eps", 1e-5);
  // Without running statistics the batch's own are taken, in inference as well.
  if (!in.flag("training") && old_mean.defined())
    return {{{"y", batch_norm_inference(in[layer_input], old_mean, old_var, in["weight"], in["bias"], eps)},
             {"running_mean_after", old_mean},
             {"running_var_after", old_var}},
            {}};
  const auto result = batch_norm_training(in[layer_input], in["weight"], in["bias"], eps);
  Results results = y(result.y);
  if (old_mean.defined()) results.outputs["running_mean_after"] = old_mean * (1 - momentum) + result.mean * momentum;
  if (old_var.defined()) results.outputs["running_var_after"] = old_var * (1 - momentum) + result.var * momentum;
  return results;
}

/// How many dimensions are normalised over.
int normalized(const Given& in) {
  in.restated("elementwise_affine");
  if (const auto shape = in.integers("normalized_shape")) return static_cast<int>(shape->size());
  if (in["weight"].defined()) return in["weight"].rank();
  throw Failed("there is no normalized_shape");
}

}  // namespace

void add_norms(Operations& operations) {
  for (const char* name : {"batch_norm", "batch_norm1d", "batch_norm2d", "batch_norm3d"}) operations[name] = batch_norm_case;
  operations["layer_norm"] = [](const Given& in) {
    return y(layer_norm(in[layer_input], normalized(in), in["weight"], in["bias"], in.number("eps", 1e-5)));
  };
  operations["rms_norm"] = [](const Given& in) {
    return y(rms_norm(in[layer_input], normalized(in), in["weight"], in.number("eps", 0x1p-23)));
  };
  operations["group_norm"] = [](const Given& in) {
    in.restated({"num_channels", "affine"});
    return y(
        group_norm(in[layer_input], in.integer({"groups", "num_groups"}, 1), in["weight"], in["bias"], in.number("eps", 1e-5)));
  };
  for (const char* name : {"instance_norm", "instance_norm1d", "instance_norm2d", "instance_norm3d"})
    operations[name] = [](const Given& in) {
      in.restated({"num_features", "affine", "momentum", "track_running_stats"});
      // Without the input's own statistics it is what batch_norm does in inference.
      if (!in.flag("use_input_stats", true)) return batch_norm_case(in);
      return y(instance_norm(in[layer_input], in["weight"], in["bias"], in.number("eps", 1e-5)));
    };
  operations["local_response_norm"] = operations["lrn"] = [](const Given& in) {
    return y(local_response_norm(in[layer_input], in.integer({"size", "n"}, 1), in.number("alpha", 1e-4), in.number("beta", 0.75),
                                 in.number("k", 1)));
  };
}

}  // namespace clnet::torch
