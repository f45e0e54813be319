// Losses.
#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

const Names input{"x", "input", "logits", "log_probs"}, target{"target", "targets", "label", "labels", "t"};
const Names one{"a", "x1", "input1", "x"}, other{"b", "x2", "input2", "y"};

using Loss = Tensor (*)(const Tensor&, const Tensor&, Reduction);

Operation plain(Loss loss) {
  return [loss](const Given& in) { return y(loss(in[input], in[target], in.reduction())); };
}

/// Of logarithms of probabilities. Manifests don't say whether x is these or has become these by a softmax inside.
Results of_logarithms(const Given& in, int dim, const std::function<Tensor(const Tensor&)>& loss) {
  const auto x = in[input];
  return y(chosen(in, {[&] { return loss(log_softmax(x, dim)); }, [&] { return loss(x); }}));
}

Results cross_entropy_case(const Given& in) {
  return y(cross_entropy(in[input], in[target],
                         {.weight = in["weight"],
                          .ignore_index = in.integer("ignore_index", -100),
                          .label_smoothing = in.number("label_smoothing", 0),
                          .reduction = in.reduction()}));
}

Results nll_case(const Given& in) {
  const NllLossOptions options{
      .weight = in["weight"], .ignore_index = in.integer("ignore_index", -100), .reduction = in.reduction()};
  const auto t = in[target];
  return of_logarithms(in, 1, [&](const Tensor& x) { return nll_loss(x, t, options); });
}

Results kl_div_case(const Given& in) {
  const KlDivOptions options{.reduction = in.reduction(),
                             .batch_mean = in.text("reduction", "mean") == "batchmean",
                             .log_target = in.flag("log_target")};
  const auto t = in[target];
  return of_logarithms(in, -1, [&](const Tensor& x) {
    if (!options.log_target) return kl_div(x, t, options);
    return chosen(in, {[&] { return kl_div(x, t, options); }, [&] { return kl_div(x, log(t), options); }});
  });
}

Results ctc_case(const Given& in) {
  // Lengths are inputs, or lists among the attributes.
  const auto lengths = [&](const char* name) {
    const auto given = in[name];
    if (given.defined()) return cast(given, in[target].dtype());
    const auto numbers = in.integers(name);
    if (!numbers) throw Failed(std::string("there is no ") + name);
    return cast(Tensor::from(*numbers), in[target].dtype());
  };
  const auto of_input = lengths("input_lengths"), of_target = lengths("target_lengths");
  const CtcOptions options{
      .blank = in.integer("blank", 0), .reduction = in.reduction(), .zero_infinity = in.flag("zero_infinity")};
  const auto t = in[target];
  return of_logarithms(in, -1, [&](const Tensor& x) { return ctc_loss(x, t, of_input, of_target, options); });
}

}  // namespace

void add_losses(Operations& operations) {
  operations["mse_loss"] = plain(mse_loss);
  operations["l1_loss"] = plain(l1_loss);
  operations["soft_margin_loss"] = plain(soft_margin_loss);
  operations["multilabel_soft_margin_loss"] = [](const Given& in) {
    return y(multilabel_soft_margin_loss(in[input], in[target], in.reduction(), in["weight"]));
  };
  operations["multi_margin_loss"] = [](const Given& in) {
    return y(multi_margin_loss(in[input], in[target],
                               {.p = static_cast<int>(in.integer("p", 1)),
                                .margin = in.number("margin", 1),
                                .weight = in["weight"],
                                .reduction = in.reduction()}));
  };
  operations["multilabel_margin_loss"] = [](const Given& in) {
    return y(multilabel_margin_loss(in[input], in[target], in.reduction()));
  };
  operations["bce"] = operations["binary_cross_entropy"] = [](const Given& in) {
    return y(bce(in[input], in[target], in.reduction(), in["weight"]));
  };
  operations["bce_with_logits"] = operations["binary_cross_entropy_with_logits"] = [](const Given& in) {
    return y(bce_with_logits(in[input], in[target], in.reduction(), in["weight"], in["pos_weight"]));
  };
  operations["focal_loss"] = operations["sigmoid_focal_loss"] = [](const Given& in) {
    return y(focal_loss(in[input], in[target], in.reduction(), in.number("alpha", 0.25), in.number("gamma", 2)));
  };
  operations["cross_entropy"] = cross_entropy_case;
  operations["nll_loss"] = nll_case;
  operations["kl_div"] = operations["kl"] = kl_div_case;
  operations["ctc_loss"] = ctc_case;
  operations["smooth_l1_loss"] = [](const Given& in) {
    return y(smooth_l1_loss(in[input], in[target], in.reduction(), in.number("beta", 1)));
  };
  operations["huber_loss"] = [](const Given& in) {
    return y(huber_loss(in[input], in[target], in.reduction(), in.number("delta", 1)));
  };
  operations["poisson_nll_loss"] = [](const Given& in) {
    return y(poisson_nll_loss(in[input], in[target],
                              {.log_input = in.flag("log_input", true),
                               .full = in.flag("full"),
                               .eps = in.number("eps", 1e-8),
                               .reduction = in.reduction()}));
  };
  operations["gaussian_nll_loss"] = [](const Given& in) {
    return y(gaussian_nll_loss(in[input], in[target], in[{"var", "variance"}],
                               {.full = in.flag("full"), .eps = in.number("eps", 1e-6), .reduction = in.reduction()}));
  };
  operations["hinge_embedding_loss"] = [](const Given& in) {
    return y(hinge_embedding_loss(in[input], in[target], in.number("margin", 1), in.reduction()));
  };
  operations["margin_ranking_loss"] = [](const Given& in) {
    return y(margin_ranking_loss(in[one], in[other], in[target], in.number("margin", 0), in.reduction()));
  };
  operations["cosine_embedding_loss"] = [](const Given& in) {
    return y(cosine_embedding_loss(in[one], in[other], in[target], in.number("margin", 0), in.reduction()));
  };
  operations["triplet_margin_loss"] = [](const Given& in) {
    return y(triplet_margin_loss(in[{"anchor", "a", "x"}], in[{"positive", "pos", "p", "b"}], in[{"negative", "neg", "n", "c"}],
                                 {.margin = in.number("margin", 1),
                                  .p = in.number("p", 2),
                                  .eps = in.number("eps", 1e-6),
                                  .swap = in.flag("swap"),
                                  .reduction = in.reduction()}));
  };
}

}  // namespace clnet::torch
