// Activation functions and dropout of torch.nn.functional.
#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Adapter activation(Tensor (*function)(const Tensor&)) {
  return one([function](const Args& in) {
    in.without_effect({"inplace"});
    return function(in.tensor(0));
  });
}
/// With one parameter.
Adapter activation(Tensor (*function)(const Tensor&, double), const char* name, double otherwise) {
  return one([=](const Args& in) {
    in.without_effect({"inplace"});
    return function(in.tensor(0), in.number(1, name, otherwise));
  });
}

Adapter dropout_case(Tensor (*function)(const Tensor&, double), double probability, bool trains) {
  return one([=](const Args& in) {
    in.without_effect({"inplace"});
    const auto x = in.tensor(0);
    const double p = in.number(1, "p", probability);
    if (!in.flag(2, "training", trains)) return x;
    if (p != 0 && p != 1) throw LeftOut("random numbers");
    return function(x, p);
  });
}

Tensor attention(const Args& in) {
  AttentionOptions options;
  options.mask = in.maybe_tensor(3, "attn_mask");
  options.causal = in.flag(5, "is_causal");
  options.scale = in.maybe_number(6, "scale");
  in.without_effect({"enable_gqa"});
  if (in.number(4, "dropout_p", 0) != 0) throw LeftOut("random numbers");
  return scaled_dot_product_attention(in.tensor(0, "query"), in.tensor(1, "key"), in.tensor(2, "value"), options);
}

Tensor softplus_case(const Args& in) { return softplus(in.tensor(0), in.number(1, "beta", 1), in.number(2, "threshold", 20)); }

Tensor gelu_case(const Args& in) {
  const auto form = in.text(1, "approximate", "none");
  if (form != "none" && form != "tanh") throw Failed("unknown approximation " + form);
  return gelu(in.tensor(0), form == "tanh" ? Gelu::tanh : Gelu::erf);
}

Tensor rrelu_case(const Args& in) {
  in.without_effect({"inplace"});
  const double lower = in.number(1, "lower", 1.0 / 8), upper = in.number(2, "upper", 1.0 / 3);
  if (in.flag(3, "training")) throw LeftOut("random numbers");
  return rrelu(in.tensor(0), lower, upper, false);
}

Adapter along(Tensor (*function)(const Tensor&, int)) {
  return one([function](const Args& in) {
    const auto dtype = in.dtype(2, "dtype", in.tensor(0).dtype());
    return function(cast(in.tensor(0), dtype), in.dim(1));
  });
}

}  // namespace

void add_functions(Adapters& adapters) {
  const std::string functional = "nn.functional.";
  const std::map<std::string, Tensor (*)(const Tensor&)> plain{{"relu", relu},
                                                               {"relu6", relu6},
                                                               {"selu", selu},
                                                               {"silu", silu},
                                                               {"mish", mish},
                                                               {"hardswish", hardswish},
                                                               {"hardsigmoid", hardsigmoid},
                                                               {"softsign", softsign},
                                                               {"tanhshrink", tanhshrink},
                                                               {"logsigmoid", log_sigmoid}};
  for (const auto& [name, function] : plain) adapters[functional + name] = activation(function);
  adapters[functional + "leaky_relu"] = activation(leaky_relu, "negative_slope", 0.01);
  adapters[functional + "elu"] = activation(elu, "alpha", 1);
  adapters[functional + "celu"] = activation(celu, "alpha", 1);
  adapters[functional + "hardshrink"] = activation(hardshrink, "lambd", 0.5);
  adapters[functional + "softshrink"] = activation(softshrink, "lambd", 0.5);
  adapters[functional + "hardtanh"] = one([](const Args& in) {
    in.without_effect({"inplace"});
    return hardtanh(in.tensor(0), in.number(1, "min_val", -1), in.number(2, "max_val", 1));
  });
  adapters[functional + "threshold"] = one([](const Args& in) {
    in.without_effect({"inplace"});
    return threshold(in.tensor(0), in.number(1, "threshold"), in.number(2, "value"));
  });
  adapters[functional + "softplus"] = one(softplus_case);
  adapters[functional + "gelu"] = one(gelu_case);
  adapters[functional + "rrelu"] = one(rrelu_case);
  adapters[functional + "prelu"] = one([](const Args& in) { return prelu(in.tensor(0), in.tensor(1, "weight")); });
  adapters[functional + "glu"] = one([](const Args& in) { return glu(in.tensor(0), in.dim(1, "dim", -1)); });
  adapters[functional + "scaled_dot_product_attention"] = one(attention);
  adapters[functional + "dropout"] = dropout_case(dropout, 0.5, true);
  adapters[functional + "dropout2d"] = dropout_case(dropout2d, 0.5, true);
  adapters[functional + "dropout3d"] = dropout_case(dropout3d, 0.5, true);
  adapters[functional + "alpha_dropout"] = dropout_case(alpha_dropout, 0.5, false);
  adapters[functional + "feature_alpha_dropout"] = dropout_case(feature_alpha_dropout, 0.5, false);
  adapters["softmax"] = along(softmax);
  adapters["log_softmax"] = along(log_softmax);
  adapters[functional + "softmin"] = along(softmin);
}

}  // namespace clnet::torch::opinfo
