// Losses.
#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

using Loss = Tensor (*)(const Tensor&, const Tensor&, Reduction);

Operation plain(Loss loss) {
  return [loss](const Given& in) { return y(loss(in["x"], in["target"], in.reduction())); };
}

Results cross_entropy_case(const Given& in) {
  return y(cross_entropy(in["x"], in["target"],
                         {.weight = in["weight"],
                          .ignore_index = in.integer("ignore_index", -100),
                          .label_smoothing = in.number("label_smoothing", 0),
                          .reduction = in.reduction()}));
}

Results nll_case(const Given& in) {
  return y(nll_loss(in["x"], in["target"],
                    {.weight = in["weight"], .ignore_index = in.integer("ignore_index", -100), .reduction = in.reduction()}));
}

/// The cases take the logarithm of a softmax inside.
Results kl_div_case(const Given& in) {
  return y(kl_div(log_softmax(in["x"], -1), in["target"],
                  {.reduction = in.reduction(),
                   .batch_mean = in.text("reduction", "mean") == "batchmean",
                   .log_target = in.flag("log_target")}));
}

}  // namespace

void add_losses(Operations& operations) {
  operations["mse_loss"] = plain(mse_loss);
  operations["l1_loss"] = plain(l1_loss);
  operations["bce"] = [](const Given& in) { return y(bce(in["x"], in["target"], in.reduction(), in["weight"])); };
  operations["bce_with_logits"] = [](const Given& in) {
    return y(bce_with_logits(in["x"], in["target"], in.reduction(), in["weight"]));
  };
  operations["cross_entropy"] = cross_entropy_case;
  operations["nll_loss"] = nll_case;
  operations["kl_div"] = kl_div_case;
  operations["smooth_l1_loss"] = operations["smooth_l1"] = [](const Given& in) {
    return y(smooth_l1_loss(in["x"], in["target"], in.reduction(), in.number("beta", 1)));
  };
  operations["huber_loss"] = operations["huber"] = [](const Given& in) {
    return y(huber_loss(in["x"], in["target"], in.reduction(), in.number("delta", 1)));
  };
  operations["poisson_nll_loss"] = operations["poisson_nll"] = [](const Given& in) {
    return y(poisson_nll_loss(in["x"], in["target"],
                              {.log_input = in.flag("log_input", true),
                               .full = in.flag("full"),
                               .eps = in.number("eps", 1e-8),
                               .reduction = in.reduction()}));
  };
  operations["gaussian_nll_loss"] = operations["gaussian_nll"] = [](const Given& in) {
    return y(gaussian_nll_loss(in["x"], in["target"], in["var"],
                               {.full = in.flag("full"), .eps = in.number("eps", 1e-6), .reduction = in.reduction()}));
  };
  operations["hinge_embedding_loss"] = operations["hinge_embedding"] = [](const Given& in) {
    return y(hinge_embedding_loss(in["x"], in["target"], in.number("margin", 1), in.reduction()));
  };
  operations["margin_ranking_loss"] = operations["margin_ranking"] = [](const Given& in) {
    return y(margin_ranking_loss(in["a"], in["b"], in["target"], in.number("margin", 0), in.reduction()));
  };
  operations["cosine_embedding_loss"] = operations["cosine_embedding"] = [](const Given& in) {
    return y(cosine_embedding_loss(in["a"], in["b"], in["target"], in.number("margin", 0), in.reduction()));
  };
  operations["triplet_margin_loss"] = operations["triplet_margin"] = [](const Given& in) {
    return y(triplet_margin_loss(
        in["anchor"], in["positive"], in["negative"],
        {.margin = in.number("margin", 1), .p = in.number("p", 2), .swap = in.flag("swap"), .reduction = in.reduction()}));
  };
}

}  // namespace clnet::torch
