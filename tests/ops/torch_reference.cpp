// PyTorch's own results: every case of the acceptance data whose operation clnet has, forward and backward, by the public API.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "clnet/clnet.h"
#include "tests/acceptance.h"

using namespace clnet;
using json = nlohmann::json;

namespace {

using Named = std::map<std::string, Tensor>;

/// A case's attributes and inputs; what is not there is an undefined tensor.
struct Given {
  json attributes;
  Named inputs;
  Tensor operator[](const std::string& name) const {
    const auto found = inputs.find(name);
    return found == inputs.end() ? Tensor{} : found->second;
  }
  Pair pair(const char* name) const {
    return {attributes.at(name).at(0).get<std::int64_t>(), attributes.at(name).at(1).get<std::int64_t>()};
  }
  Padding padding() const {
    const auto p = pair("padding");
    return {p.height, p.width, p.height, p.width};
  }
  std::string function() const { return attributes.at("fn"); }
  Reduction reduction() const { return attributes.at("reduction") == "sum" ? Reduction::sum : Reduction::mean; }
};
using Function = std::function<Named(const Given&)>;

Named y(const Tensor& value) { return {{"y", value}}; }

Named activation(const Given& in) {
  static const std::map<std::string, std::function<Tensor(const Tensor&)>> table{
      {"relu6", relu6},
      {"celu_0.7", [](const Tensor& x) { return celu(x, 0.7); }},
      {"silu", silu},
      {"mish", mish},
      {"hardswish", hardswish},
      {"hardsigmoid", hardsigmoid},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"logsigmoid", log_sigmoid},
      {"softsign", softsign},
      {"glu", [](const Tensor& x) { return glu(x); }},
      {"softmax_d1", [](const Tensor& x) { return softmax(x, 1); }},
      {"softmax_d-1", [](const Tensor& x) { return softmax(x, -1); }},
      {"log_softmax_d1", [](const Tensor& x) { return log_softmax(x, 1); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"sigmoid", sigmoid},
  };
  return y(table.at(in.function())(in["x"]));
}

Named elementwise(const Given& in) {
  const auto &a = in["a"], &b = in["b"];
  const auto name = in.function();
  if (name == "add") return y(a + b);
  if (name == "mul") return y(a * b);
  if (name == "div") return y(a / b);
  if (name == "maximum") return y(maximum(a, b));
  if (name == "minimum") return y(minimum(a, b));
  throw Unsupported(name);
}

Named reduction(const Given& in) {
  const auto x = in["x"];
  const auto name = in.function();
  if (name == "sum_all") return y(sum(x));
  if (name == "mean_d02_keep") return y(mean(x, {0, 2}, true));
  if (name == "max_d2") return y(max(x, {2}));
  if (name == "min_d0") return y(min(x, {0}));
  if (name == "std_d2_biased") return y(stddev(x, {2}, 0));
  if (name == "norm2_all") return y(norm(x));
  throw Unsupported(name);
}

Named shape(const Given& in) {
  const auto x = in["x"];
  const auto name = in.function();
  if (name == "slice") return y(slice(slice(slice(x, 1, 1, 4), 2, 0, 4, 2), 3, 1, 3));
  if (name == "pad_const") return y(pad(x, {0, 0, 0, 1}, {0, 0, 3, 2}, 0.5));
  if (name == "cat_self") return y(concat({x, x * 2.0}, 1));
  if (name == "pad_replicate") return y(pad(x, {0, 0, 2, 1}, {0, 0, 1, 2}, 0, PadMode::edge));
  if (name == "tile") return y(tile(x, {1, 2, 1, 3}));
  if (name == "pixel_shuffle2") return y(pixel_shuffle(x, 2));
  if (name == "pixel_unshuffle2") return y(pixel_unshuffle(x, 2));
  throw Unsupported(name);
}

Named batch_norm(const Given& in) {
  const auto x = in["x"], old_mean = in["rm"], old_var = in["rv"];
  const double momentum = in.attributes.at("momentum"), eps = in.attributes.at("eps");
  if (!in.attributes.at("training").get<bool>())
    return {{"y", batch_norm_inference(x, old_mean, old_var, in["weight"], in["bias"], eps)},
            {"running_mean_after", old_mean},
            {"running_var_after", old_var}};
  const auto result = batch_norm_training(x, in["weight"], in["bias"], eps);
  return {{"y", result.y},
          {"running_mean_after", old_mean * (1 - momentum) + result.mean * momentum},
          {"running_var_after", old_var * (1 - momentum) + result.var * momentum}};
}

Named loss(const Given& in, const std::function<Tensor(const Tensor&, const Tensor&, Reduction)>& function) {
  return y(function(in["x"], in["target"], in.reduction()));
}

const std::map<std::string, Function>& operations() {
  static const std::map<std::string, Function> table{
      {"conv2d",
       [](const Given& in) {
         return y(conv2d(in["x"], in["weight"], in["bias"],
                         {.stride = in.pair("stride"),
                          .padding = in.padding(),
                          .dilation = in.pair("dilation"),
                          .groups = in.attributes.at("groups")}));
       }},
      {"conv_transpose2d",
       [](const Given& in) {
         return y(conv_transpose2d(in["x"], in["weight"], in["bias"],
                                   {.stride = in.pair("stride"),
                                    .padding = in.padding(),
                                    .output_padding = in.pair("output_padding"),
                                    .dilation = in.pair("dilation"),
                                    .groups = in.attributes.at("groups")}));
       }},
      {"max_pool2d",
       [](const Given& in) {
         return y(max_pool2d(in["x"], in.pair("kernel"),
                             {.stride = in.pair("stride"),
                              .padding = in.padding(),
                              .dilation = in.pair("dilation"),
                              .ceil_mode = in.attributes.at("ceil_mode")}));
       }},
      {"avg_pool2d",
       [](const Given& in) {
         REQUIRE(in.attributes.at("divisor_override").is_null());
         return y(avg_pool2d(in["x"], in.pair("kernel"),
                             {.stride = in.pair("stride"),
                              .padding = in.padding(),
                              .ceil_mode = in.attributes.at("ceil_mode"),
                              .count_include_pad = in.attributes.at("count_include_pad")}));
       }},
      {"adaptive_max_pool2d", [](const Given& in) { return y(adaptive_max_pool2d(in["x"], in.pair("output"))); }},
      {"adaptive_avg_pool2d", [](const Given& in) { return y(adaptive_avg_pool2d(in["x"], in.pair("output"))); }},
      {"batch_norm", batch_norm},
      {"layer_norm",
       [](const Given& in) {
         return y(layer_norm(in["x"], static_cast<int>(in.attributes.at("normalized_shape").size()), in["weight"], in["bias"],
                             in.attributes.at("eps")));
       }},
      {"group_norm",
       [](const Given& in) {
         return y(group_norm(in["x"], in.attributes.at("groups"), in["weight"], in["bias"], in.attributes.at("eps")));
       }},
      {"instance_norm",
       [](const Given& in) { return y(instance_norm(in["x"], in["weight"], in["bias"], in.attributes.at("eps"))); }},
      {"local_response_norm",
       [](const Given& in) {
         const auto& a = in.attributes;
         return y(local_response_norm(in["x"], a.at("size"), a.at("alpha"), a.at("beta"), a.at("k")));
       }},
      {"bce", [](const Given& in) { return y(bce(in["x"], in["target"], in.reduction(), in["weight"])); }},
      {"kl_div",
       [](const Given& in) {
         return y(kl_div(log_softmax(in["x"], -1), in["target"],
                         {.reduction = in.reduction(), .batch_mean = in.attributes.at("reduction") == "batchmean"}));
       }},
      {"cross_entropy",
       [](const Given& in) {
         return y(cross_entropy(in["x"], in["target"],
                                {.weight = in["weight"],
                                 .ignore_index = in.attributes.value("ignore_index", std::int64_t{-100}),
                                 .label_smoothing = in.attributes.value("label_smoothing", 0.0),
                                 .reduction = in.reduction()}));
       }},
      {"mse_loss", [](const Given& in) { return loss(in, mse_loss); }},
      {"l1_loss", [](const Given& in) { return loss(in, l1_loss); }},
      {"bce_with_logits",
       [](const Given& in) {
         return loss(in, [](const Tensor& x, const Tensor& target, Reduction how) { return bce_with_logits(x, target, how); });
       }},
      {"linear", [](const Given& in) { return y(linear(in["x"], in["weight"], in["bias"])); }},
      {"matmul", [](const Given& in) { return y(matmul(in["a"], in["b"])); }},
      {"embedding",
       [](const Given& in) {
         return y(embedding(in["idx"], in["weight"], in.attributes.at("padding_idx").get<std::int64_t>()));
       }},
      {"activation", activation},
      {"elementwise", elementwise},
      {"reduction", reduction},
      {"shape", shape},
      {"index",
       [](const Given& in) {
         if (in.function() == "gather") return y(gather(in["x"], in.attributes.at("dim"), in["idx"]));
         if (in.function() == "where") return y(where(greater(in["c"], 0.0), in["a"], in["b"]));
         throw Unsupported(in.function());
       }},
  };
  return table;
}

/// The largest difference against the largest expected value (at least 1): f32 in another order of summation than PyTorch's own.
void compare(const std::string& what, const Tensor& got, const Tensor& want, double tolerance) {
  INFO(what);
  // The files hold a scalar as one element of shape [1].
  if (want.numel() != 1) REQUIRE(got.shape() == want.shape());
  REQUIRE(got.numel() == want.numel());
  const auto g = got.to_vector<float>(), w = want.to_vector<float>();
  double largest = 1, worst = 0;
  for (float value : w)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (std::isnan(w[i]) && std::isnan(g[i])) continue;
    const double difference = std::abs(static_cast<double>(g[i]) - static_cast<double>(w[i]));
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  CHECK(worst / largest <= tolerance);
}

void run(const json& example, const Function& function, const std::filesystem::path& folder) {
  Named outputs, output_gradients, input_gradients;
  Given given{example.at("attrs"), {}};
  for (const auto& [name, tensor] : io::load_safetensors(folder / example.at("file").get<std::string>()).tensors) {
    const auto dot = name.find('.');
    const auto kind = name.substr(0, dot), rest = name.substr(dot + 1);
    (kind == "in" ? given.inputs : kind == "out" ? outputs : kind == "gout" ? output_gradients : input_gradients)[rest] = tensor;
  }
  const auto results = function(given);
  const auto tolerance = [](double of_pytorch) { return 4 * of_pytorch + 2e-6; };
  for (const auto& [name, want] : outputs) {
    const auto found = results.find(name);
    if (found != results.end()) compare("output " + name, found->second, want, tolerance(example.at("f32_out_err")));
  }
  std::vector<Tensor> from, with, to;
  std::vector<std::string> names;
  for (const auto& [name, gradient] : output_gradients) {
    from.push_back(results.at(name));
    with.push_back(reshape(gradient, from.back().shape()));
  }
  for (const auto& [name, gradient] : input_gradients) {
    to.push_back(given[name]);
    names.push_back(name);
  }
  const auto computed = gradients(from, with, to);
  for (std::size_t i = 0; i < names.size(); ++i)
    compare("gradient of " + names[i], computed[i], input_gradients.at(names[i]), tolerance(example.at("f32_grad_err")));
}

struct Bare : nn::Module {
  nn::Parameter parameter;
  explicit Bare(const Tensor& value) : parameter(add_parameter("p", value)) {}
  Tensor forward(const Tensor& x) override { return x; }
};

optim::Optimizer optimizer(const json& a, const nn::Module& module) {
  const double rate = a.at("lr"), decay = a.value("weight_decay", 0.0);
  if (a.at("algo") == "SGD")
    return optim::SGD{module,
                      {.learning_rate = rate,
                       .momentum = a.value("momentum", 0.0),
                       .nesterov = a.value("nesterov", false),
                       .weight_decay = decay}};
  const auto betas = a.value("betas", std::vector<double>{0.9, 0.999});
  return optim::Adam{
      module, {.learning_rate = rate, .beta1 = betas[0], .beta2 = betas[1], .eps = a.value("eps", 1e-8), .weight_decay = decay}};
}

json manifest(const std::filesystem::path& folder) { return json::parse(std::ifstream(folder / "manifest.json")).at("cases"); }

}  // namespace

TEST_CASE("operations agree with PyTorch's reference cases") {
  const auto folder = test::acceptance("torchref");
  if (!folder) return;
  // What a later version may have, and what a case wants beyond an operation that there is.
  const std::set<std::string> absent{"conv1d",      "einsum",         "interpolate",
                                     "rnn",         "sdpa",           "optimizer",
                                     "lr_schedule", "clip_grad_norm", "transformer_encoder_layer"};
  int ran = 0;
  for (const auto& example : manifest(*folder)) {
    const std::string name = example.at("name"), op = example.at("op");
    INFO(name);
    if (absent.contains(op)) {
      test::skip("clnet does not have this operation", name);
      continue;
    }
    const auto found = operations().find(op);
    REQUIRE(found != operations().end());
    run(example, found->second, *folder);
    ++ran;
  }
  CHECK(ran >= 102);
}

TEST_CASE("optimizers and clipping agree with PyTorch's reference cases") {
  const auto folder = test::acceptance("torchref");
  if (!folder) return;
  int ran = 0;
  for (const auto& example : manifest(*folder)) {
    const std::string name = example.at("name"), op = example.at("op");
    const auto tensors = [&] {
      const auto loaded = io::load_safetensors(*folder / example.at("file").get<std::string>()).tensors;
      return Named(loaded.begin(), loaded.end());
    };
    INFO(name);
    if (op == "clip_grad_norm") {
      const auto t = tensors();
      const std::vector<Tensor> before{t.at("in.g1"), t.at("in.g2")};
      compare("norm", global_norm(before), t.at("out.total_norm"), 2e-6);
      const auto clipped = optim::clip_by_norm(before, example.at("attrs").at("max_norm"));
      compare("first", clipped[0], t.at("out.g1"), 2e-6);
      compare("second", clipped[1], t.at("out.g2"), 2e-6);
      ++ran;
    }
    const auto algorithm = op == "optimizer" ? example.at("attrs").at("algo").get<std::string>() : "";
    if (algorithm != "SGD" && algorithm != "Adam") continue;
    const auto t = tensors();
    const Bare module(t.at("in.param"));
    auto steps = optimizer(example.at("attrs"), module);
    const auto grads = t.at("in.grads"), want = t.at("out.params_after_step");
    for (int i = 0; i < 10; ++i) {
      steps.apply({reshape(slice(grads, 0, i, i + 1), {3, 4})});
      compare("step " + std::to_string(i), module.parameter, reshape(slice(want, 0, i, i + 1), {3, 4}), 5e-6);
    }
    ++ran;
  }
  CHECK(ran == 6);
}
