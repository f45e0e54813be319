// Losses.
#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

const Names predicted{"x", "input", "logits", "log_probs"}, target{"target", "targets", "label", "labels", "t"};
const Names one{"a", "x1", "input1", "x"}, other{"b", "x2", "input2", "y"};

/// An input that cases may have as integers, targets of 1 and -1 say; losses want the inputs' dtype.
struct Number {
  Names names;
};
Tensor read(const Given& in, const Names& names) { return in[names]; }
Tensor read(const Given& in, const Number& number) {
  const auto value = in[number.names];
  return !value.defined() || is_floating(value.dtype()) ? value : cast(value, Dtype::f32);
}

/// A layer that the case's options make, called with these inputs.
template <class Make, class... Inputs>
Operation layer(Make make, const Inputs&... inputs) {
  return [=](const Given& in) { return y(make(in)(read(in, inputs)...)); };
}
/// One of input and target with no more options than the reduction.
Operation reduced(nn::Loss (*make)(Reduction)) {
  return layer([make](const Given& in) { return make(in.reduction()); }, predicted, Number{target});
}

/// Of logarithms of probabilities. Manifests don't say whether x is these or has become these by a softmax inside.
Results of_logarithms(const Given& in, int dim, const std::function<Tensor(const Tensor&)>& loss) {
  const auto x = in[predicted];
  if (x.rank() == 0) return y(loss(x));
  return y(chosen(in, {[&] { return loss(log_softmax(x, dim)); }, [&] { return loss(x); }}));
}

Results cross_entropy_case(const Given& in) {
  auto loss = nn::CrossEntropyLoss({.weight = in["weight"],
                                    .ignore_index = in.integer("ignore_index", -100),
                                    .label_smoothing = in.number("label_smoothing", 0),
                                    .reduction = in.reduction()});
  return y(loss(in[predicted], in[target]));
}

Results nll_case(const Given& in) {
  const NllLossOptions options{
      .weight = in["weight"], .ignore_index = in.integer("ignore_index", -100), .reduction = in.reduction()};
  const auto t = in[target];
  // The classes of a single one are its only dimension.
  return of_logarithms(in, in[predicted].rank() == 1 ? 0 : 1, [&](const Tensor& x) { return nn::NLLLoss(options)(x, t); });
}

Results kl_div_case(const Given& in) {
  const KlDivOptions options{.reduction = in.reduction(),
                             .batch_mean = in.text("reduction", "mean") == "batchmean",
                             .log_target = in.flag("log_target")};
  const auto t = in[target];
  return of_logarithms(in, -1, [&](const Tensor& x) {
    if (!options.log_target) return nn::KLDivLoss(options)(x, t);
    return chosen(in, {[&] { return nn::KLDivLoss(options)(x, t); }, [&] { return nn::KLDivLoss(options)(x, log(t)); }});
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
  return of_logarithms(in, -1, [&](const Tensor& x) { return nn::CTCLoss(options)(x, t, of_input, of_target); });
}

}  // namespace

void add_losses(Operations& operations) {
  operations["mse_loss"] = reduced(nn::MSELoss);
  operations["l1_loss"] = reduced(nn::L1Loss);
  operations["soft_margin_loss"] = reduced(nn::SoftMarginLoss);
  operations["multilabel_margin_loss"] =
      layer([](const Given& in) { return nn::MultiLabelMarginLoss(in.reduction()); }, predicted, target);
  const auto of_two = [&](const std::string& name, auto make) { operations[name] = layer(make, predicted, Number{target}); };
  of_two("multilabel_soft_margin_loss",
         [](const Given& in) { return nn::MultiLabelSoftMarginLoss(in.reduction(), in["weight"]); });
  operations["multi_margin_loss"] = layer(
      [](const Given& in) {
        return nn::MultiMarginLoss({.p = static_cast<int>(in.integer("p", 1)),
                                    .margin = in.number("margin", 1),
                                    .weight = in["weight"],
                                    .reduction = in.reduction()});
      },
      predicted, target);
  for (const char* name : {"bce", "binary_cross_entropy"})
    of_two(name, [](const Given& in) { return nn::BCELoss(in.reduction(), in["weight"]); });
  for (const char* name : {"bce_with_logits", "binary_cross_entropy_with_logits"})
    of_two(name, [](const Given& in) { return nn::BCEWithLogitsLoss(in.reduction(), in["weight"], in["pos_weight"]); });
  for (const char* name : {"focal_loss", "sigmoid_focal_loss"})
    of_two(name, [](const Given& in) { return nn::FocalLoss(in.reduction(), in.number("alpha", 0.25), in.number("gamma", 2)); });
  operations["cross_entropy"] = cross_entropy_case;
  operations["nll_loss"] = nll_case;
  operations["kl_div"] = operations["kl"] = kl_div_case;
  operations["ctc_loss"] = ctc_case;
  of_two("smooth_l1_loss", [](const Given& in) { return nn::SmoothL1Loss(in.reduction(), in.number("beta", 1)); });
  of_two("huber_loss", [](const Given& in) { return nn::HuberLoss(in.reduction(), in.number("delta", 1)); });
  of_two("poisson_nll_loss", [](const Given& in) {
    return nn::PoissonNLLLoss({.log_input = in.flag("log_input", true),
                               .full = in.flag("full"),
                               .eps = in.number("eps", 1e-8),
                               .reduction = in.reduction()});
  });
  of_two("hinge_embedding_loss", [](const Given& in) { return nn::HingeEmbeddingLoss(in.number("margin", 1), in.reduction()); });
  operations["gaussian_nll_loss"] = layer(
      [](const Given& in) {
        return nn::GaussianNLLLoss({.full = in.flag("full"), .eps = in.number("eps", 1e-6), .reduction = in.reduction()});
      },
      predicted, target, Names{"var", "variance"});
  operations["margin_ranking_loss"] = layer(
      [](const Given& in) { return nn::MarginRankingLoss(in.number("margin", 0), in.reduction()); }, one, other, Number{target});
  operations["cosine_embedding_loss"] =
      layer([](const Given& in) { return nn::CosineEmbeddingLoss(in.number("margin", 0), in.reduction()); }, one, other,
            Number{target});
  operations["triplet_margin_loss"] = layer(
      [](const Given& in) {
        return nn::TripletMarginLoss({.margin = in.number("margin", 1),
                                      .p = in.number("p", 2),
                                      .eps = in.number("eps", 1e-6),
                                      .swap = in.flag("swap"),
                                      .reduction = in.reduction()});
      },
      Names{"anchor", "a", "x"}, Names{"positive", "pos", "p", "b"}, Names{"negative", "neg", "n", "c"});
}

}  // namespace clnet::torch
