// Losses.
#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

Tensor target_of(const Args& in) { return in.tensor(1, "target"); }

Adapter simple(Tensor (*function)(const Tensor&, const Tensor&, Reduction)) {
  return one([function](const Args& in) { return function(in.tensor(0), target_of(in), in.reduction(4)); });
}

Tensor crossed(const Args& in) {
  return cross_entropy(in.tensor(0), target_of(in),
                       {.weight = in.maybe_tensor(2, "weight"),
                        .ignore_index = in.integer(-1, "ignore_index", -100),
                        .label_smoothing = in.number(-1, "label_smoothing", 0),
                        .reduction = in.reduction(-1)});
}

Tensor nll(const Args& in) {
  return nll_loss(in.tensor(0), target_of(in),
                  {.weight = in.maybe_tensor(2, "weight"),
                   .ignore_index = in.integer(-1, "ignore_index", -100),
                   .reduction = in.reduction(-1)});
}

Tensor divergence(const Args& in) {
  KlDivOptions options;
  options.batch_mean = in.text(-1, "reduction", "mean") == "batchmean";
  if (!options.batch_mean) options.reduction = in.reduction(-1);
  options.log_target = in.flag(-1, "log_target");
  return kl_div(in.tensor(0), target_of(in), options);
}

Tensor poisson(const Args& in) {
  return poisson_nll_loss(in.tensor(0), target_of(in),
                          {.log_input = in.flag(2, "log_input", true),
                           .full = in.flag(3, "full"),
                           .eps = in.number(-1, "eps", 1e-8),
                           .reduction = in.reduction(-1)});
}

Tensor gaussian(const Args& in) {
  const auto var = in.is_tensor(2, "var") ? in.tensor(2, "var") : full(in.tensor(0).shape(), in.number(2, "var"));
  return gaussian_nll_loss(in.tensor(0), target_of(in), var,
                           {.full = in.flag(3, "full"), .eps = in.number(4, "eps", 1e-6), .reduction = in.reduction(5)});
}

Tensor multi_margin(const Args& in) {
  return multi_margin_loss(in.tensor(0), target_of(in),
                           {.p = static_cast<int>(in.integer(2, "p", 1)),
                            .margin = in.number(3, "margin", 1),
                            .weight = in.maybe_tensor(4, "weight"),
                            .reduction = in.reduction(-1)});
}

Tensor triplets(const Args& in) {
  return triplet_margin_loss(in.tensor(0, "anchor"), in.tensor(1, "positive"), in.tensor(2, "negative"),
                             {.margin = in.number(3, "margin", 1),
                              .p = in.number(4, "p", 2),
                              .eps = in.number(5, "eps", 1e-6),
                              .swap = in.flag(6, "swap"),
                              .reduction = in.reduction(-1)});
}

/// A tensor or a list of lengths.
Tensor lengths(const Args& in, int at, const std::string& name) {
  return in.is_tensor(at, name) ? in.tensor(at, name) : Tensor::from(in.integers(at, name));
}

Tensor ctc(const Args& in) {
  // PyTorch's gradient is the one of log_softmax() before it, whose values these are; clnet's is of the values themselves.
  return ctc_loss(
      log_softmax(in.tensor(0, "log_probs"), -1), in.tensor(1, "targets"), lengths(in, 2, "input_lengths"),
      lengths(in, 3, "target_lengths"),
      {.blank = in.integer(4, "blank", 0), .reduction = in.reduction(5), .zero_infinity = in.flag(6, "zero_infinity")});
}

}  // namespace

void add_losses(Adapters& adapters) {
  const std::string functional = "nn.functional.";
  adapters[functional + "mse_loss"] = simple(mse_loss);
  adapters[functional + "l1_loss"] = simple(l1_loss);
  adapters[functional + "soft_margin_loss"] = simple(soft_margin_loss);
  adapters[functional + "multilabel_margin_loss"] = simple(multilabel_margin_loss);
  adapters[functional + "smooth_l1_loss"] =
      one([](const Args& in) { return smooth_l1_loss(in.tensor(0), target_of(in), in.reduction(-1), in.number(-1, "beta", 1)); });
  adapters[functional + "huber_loss"] =
      one([](const Args& in) { return huber_loss(in.tensor(0), target_of(in), in.reduction(2), in.number(3, "delta", 1)); });
  adapters[functional + "binary_cross_entropy"] = one([](const Args& in) {
    return binary_cross_entropy(in.tensor(0), target_of(in), in.reduction(-1), in.maybe_tensor(2, "weight"));
  });
  adapters[functional + "binary_cross_entropy_with_logits"] = one([](const Args& in) {
    return binary_cross_entropy_with_logits(in.tensor(0), target_of(in), in.reduction(-1), in.maybe_tensor(2, "weight"),
                                            in.maybe_tensor(-1, "pos_weight"));
  });
  adapters[functional + "multilabel_soft_margin_loss"] = one([](const Args& in) {
    return multilabel_soft_margin_loss(in.tensor(0), target_of(in), in.reduction(-1), in.maybe_tensor(2, "weight"));
  });
  adapters[functional + "hinge_embedding_loss"] = one([](const Args& in) {
    return hinge_embedding_loss(in.tensor(0), target_of(in), in.number(2, "margin", 1), in.reduction(-1));
  });
  adapters[functional + "margin_ranking_loss"] = one([](const Args& in) {
    return margin_ranking_loss(in.tensor(0), in.tensor(1, "input2"), in.tensor(2, "target"), in.number(3, "margin", 0),
                               in.reduction(-1));
  });
  adapters[functional + "cosine_embedding_loss"] = one([](const Args& in) {
    return cosine_embedding_loss(in.tensor(0), in.tensor(1, "input2"), in.tensor(2, "target"), in.number(3, "margin", 0),
                                 in.reduction(-1));
  });
  adapters[functional + "cross_entropy"] = one(crossed);
  adapters[functional + "nll_loss"] = one(nll);
  adapters[functional + "kl_div"] = one(divergence);
  adapters[functional + "poisson_nll_loss"] = one(poisson);
  adapters[functional + "gaussian_nll_loss"] = one(gaussian);
  adapters[functional + "multi_margin_loss"] = one(multi_margin);
  adapters[functional + "triplet_margin_loss"] = one(triplets);
  adapters[functional + "ctc_loss"] = one(ctc);
}

}  // namespace clnet::torch::opinfo
