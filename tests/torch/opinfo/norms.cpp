// Normalisation, and distances of vectors.
#include <limits>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Tensor batch_normalized(const Args& in) {
  in.without_effect({"cudnn_enabled"});
  static_cast<void>(in.find(6, "momentum"));
  const auto x = in.tensor(0), mean = in.maybe_tensor(1, "running_mean"), var = in.maybe_tensor(2, "running_var");
  const auto weight = in.maybe_tensor(3, "weight"), bias = in.maybe_tensor(4, "bias");
  const double eps = in.number(7, "eps", 1e-5);
  if (x.rank() < 2) throw LeftOut("values without channels");
  if (in.flag(5, "training")) return batch_norm_training(x, weight, bias, eps).y;
  return batch_norm_inference(x, mean, var, weight, bias, eps);
}

Tensor instance_normalized(const Args& in) {
  static_cast<void>(in.find(6, "momentum"));
  const auto x = in.tensor(0), mean = in.maybe_tensor(1, "running_mean"), var = in.maybe_tensor(2, "running_var");
  const auto weight = in.maybe_tensor(3, "weight"), bias = in.maybe_tensor(4, "bias");
  const double eps = in.number(7, "eps", 1e-5);
  if (in.flag(5, "use_input_stats", true)) return instance_norm(x, weight, bias, eps);
  return batch_norm_inference(x, mean, var, weight, bias, eps);
}

Tensor rms_normalized(const Args& in) {
  // Without eps PyTorch takes the precision that it computes in, which is f64 here.
  return rms_norm(in.tensor(0), static_cast<int>(in.integers(1, "normalized_shape").size()), in.maybe_tensor(2, "weight"),
                  in.number(3, "eps", std::numeric_limits<double>::epsilon()));
}

Tensor normalized(const Args& in) {
  const auto x = in.tensor(0);
  const auto length = norm(x, in.number(1, "p", 2), in.dim(2, "dim", 1), true);
  return x / maximum(length, in.number(3, "eps", 1e-12));
}

Tensor cosine(const Args& in) {
  const auto first = in.tensor(0, "x1"), second = in.tensor(1, "x2");
  const auto shape = broadcast(first.shape(), second.shape(), "cosine_similarity");
  const auto a = expand(first, shape), b = expand(second, shape);
  const int dim = in.dim(2, "dim", 1);
  const double eps = in.number(3, "eps", 1e-8);
  const auto length = [&](const Tensor& x) { return maximum(norm(x, 2, dim, true), eps); };
  return sum((a / length(a)) * (b / length(b)), dim);
}

Tensor pair_distance(const Args& in) {
  const auto difference = in.tensor(0, "x1") - in.tensor(1, "x2") + in.number(3, "eps", 1e-6);
  return norm(difference, in.number(2, "p", 2), -1, in.flag(4, "keepdim"));
}

}  // namespace

void add_norms(Adapters& adapters) {
  const std::string functional = "nn.functional.";
  adapters[functional + "batch_norm"] = one(batch_normalized);
  adapters[functional + "instance_norm"] = one(instance_normalized);
  adapters[functional + "group_norm"] = one([](const Args& in) {
    return group_norm(in.tensor(0), in.integer(1, "num_groups"), in.maybe_tensor(2, "weight"), in.maybe_tensor(3, "bias"),
                      in.number(4, "eps", 1e-5));
  });
  adapters[functional + "layer_norm"] = one([](const Args& in) {
    return layer_norm(in.tensor(0), static_cast<int>(in.integers(1, "normalized_shape").size()), in.maybe_tensor(2, "weight"),
                      in.maybe_tensor(3, "bias"), in.number(4, "eps", 1e-5));
  });
  adapters[functional + "rms_norm"] = one(rms_normalized);
  adapters[functional + "local_response_norm"] = one([](const Args& in) {
    return local_response_norm(in.tensor(0), in.integer(1, "size"), in.number(2, "alpha", 1e-4), in.number(3, "beta", 0.75),
                               in.number(4, "k", 1));
  });
  adapters[functional + "normalize"] = one(normalized);
  adapters[functional + "cosine_similarity"] = one(cosine);
  adapters[functional + "pairwise_distance"] = one(pair_distance);
}

}  // namespace clnet::torch::opinfo
