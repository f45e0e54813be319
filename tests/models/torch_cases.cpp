// The programs that run PyTorch's own cases: what they say of the acceptance data, and of folders that are wrong.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "clnet/clnet.h"
#include "tests/acceptance.h"
#include "tests/models/process.h"
#include "tests/paths.h"
#include "tests/support/temporary.h"

using namespace clnet;
using namespace clnet::test;

namespace {

Outcome reference(const char* program, const std::filesystem::path& cases) {
  const Folder folder;
  return Process(folder.path(), {program, cases.string()}).wait();
}

/// A folder of one case, "one".
void write_case(const Folder& folder, const std::string& op, const std::string& attributes, const io::StateDict& tensors) {
  io::save_safetensors((folder / "case.safetensors").string(), tensors);
  folder.write("manifest.json", R"({"cases": [{"name": "one", "op": ")" + op + R"(", "attrs": )" + attributes +
                                    R"(, "file": "case.safetensors", "f32_out_err": 0, "f32_grad_err": 0}]})");
}

/// 1.5 * 2, with the given output and gradient of the first factor.
void write_product(const Folder& folder, const std::string& op, float out, float grad, const std::string& more = "") {
  write_case(folder, op, R"({"fn": "mul")" + more + "}",
             {{"in.a", Tensor::from({1.5F})},
              {"in.b", Tensor::from({2.F})},
              {"out.y", Tensor::from({out})},
              {"gout.y", Tensor::from({1.F})},
              {"grad.a", Tensor::from({grad})}});
}

/// A folder of one call, "one", of what tools/dev/torch_opinfo.py writes.
void write_call(const Folder& folder, const std::string& op, const std::string& args, const std::string& kwargs,
                const io::StateDict& tensors) {
  io::save_safetensors((folder / "case.safetensors").string(), tensors);
  folder.write("manifest.json", fmt::format(R"({{"cases": [{{"name": "one", "op": "{}", "args": {}, "kwargs": {}, "file":
      "case.safetensors", "f32_out_err": 0, "f32_grad_err": 0}}]}})",
                                            op, args, kwargs));
}

/// What train_reference reads of a network: fc1(4,3) bn1(3) tanh bn2(3) fc2(3,2), two steps of SGD. Or with a last layer that has
/// no bias, and its name in full.
class Curve {
 public:
  explicit Curve(bool last_bias = true) : last_bias_(last_bias) {
    manual_seed(1);
    std::vector<std::uint8_t> images;
    for (int i = 0; i < 2 * 8 * 4; ++i) images.push_back(static_cast<std::uint8_t>(i * i * 37 % 251));
    const Tensor all = Tensor::from(images, {2, 8, 2, 2}), labels = Tensor::from(std::vector<std::int64_t>(16, 1), {2, 8});
    batches = {{"images", all}, {"labels", labels}};
    Layers model(last_bias);
    init = values(model);
    optim::SGD sgd(model, {.learning_rate = 0.05});
    for (std::int64_t step = 0; step < 2; ++step) {
      const auto x = cast(slice(all, 0, step, step + 1), Dtype::f32) / 255.0;
      const auto loss = cross_entropy(model(reshape(x, {8, 4})), reshape(slice(labels, 0, step, step + 1), {8}));
      if (step == 0)
        for (const auto& [name, parameter] : model.parameters())
          gradients.emplace_back(name, clnet::gradients(loss, {parameter.value()})[0]);
      losses.push_back(sgd.step(loss).item<double>());
    }
    last = values(model);
    of(gradients, "fc1.bias") = zeros({3});
  }
  static Tensor& of(io::StateDict& tensors, const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(), [&](const auto& named) { return named.first == name; })->second;
  }
  /// What train_reference says of it.
  Outcome outcome() const {
    const Folder folder;
    std::filesystem::create_directory(folder / "net");
    for (const auto& [name, tensors] :
         {std::pair{"init", init}, {"grads_step0", gradients}, {"batches", batches}, {"final_sgd", last}})
      io::save_safetensors(folder / "net" / (std::string(name) + ".safetensors"), tensors);
    std::ofstream(folder / "net" / "losses.json") << fmt::format(
        R"({{"description": "flatten fc1(4,3) bn1(3) tanh bn2(3) {}; cross-entropy mean", "runs": {{"sgd": {{
            "optimizer": "SGD lr .05", "loss_float64": [{}, {}], "suggested_tol_first5": 1e-5, "suggested_tol_all": 1e-5}}}}}})",
        last_bias_ ? "fc2(3,2)" : "linear2(3,2,nobias)", losses[0], losses[1]);
    return reference(TRAIN_REFERENCE, folder.path());
  }

  io::StateDict init, gradients, batches, last;
  std::vector<double> losses;

 private:
  bool last_bias_;

  struct Layers : nn::Module {
    nn::Linear fc1{4, 3}, fc2;
    nn::BatchNorm1d bn1{3}, bn2{3};
    explicit Layers(bool last_bias) : fc2{3, 2, {.bias = last_bias}} {
      add("fc1", fc1), add("bn1", bn1), add("bn2", bn2), add(last_bias ? "fc2" : "linear2", fc2);
    }
    Tensor forward(const Tensor& x) override { return fc2(bn2(tanh(bn1(fc1(x))))); }
  };
  static io::StateDict values(const nn::Module& model) {
    auto result = model.state_dict();
    for (auto& [name, tensor] : result) {
      tensor.eval();
      tensor = tensor.detach();
    }
    return result;
  }
};

/// What the program says of the only case there, which is wrong or passes.
std::string said_of(const Folder& folder) {
  const auto outcome = reference(TORCH_REFERENCE, folder.path());
  const auto line = outcome.out.substr(0, outcome.out.find('\n'));
  CHECK(outcome.code == (line == "passed one" ? 0 : 1));
  return line;
}

}  // namespace

TEST_CASE("operations agree with PyTorch's reference cases") {
  const auto folder = acceptance("torchref");
  if (!folder) return;
  const auto outcome = reference(TORCH_REFERENCE, *folder);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\n142 passed, 0 failed\n") != std::string::npos);
}

TEST_CASE("training agrees with PyTorch's reference curves") {
  const auto folder = acceptance("trainref");
  if (!folder) return;
  const auto outcome = reference(TRAIN_REFERENCE, *folder);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\n18 passed, 0 failed\n") != std::string::npos);
}

TEST_CASE("train_reference takes layers without biases, and names in full") {
  const auto outcome = Curve(false).outcome();
  INFO(outcome.out << outcome.err);
  CHECK(outcome.out == "passed net: first gradients\npassed net: sgd\n2 passed, 0 failed\n");
}

TEST_CASE("train_reference knows which biases have no effect, and what holds them") {
  const Curve right;
  const auto all = right.outcome();
  INFO(all.out << all.err);
  CHECK(all.out == "passed net: first gradients\npassed net: sgd\n2 passed, 0 failed\n");

  // A bias may be any in the end, and nothing else may: no running mean, whether it holds a bias or not.
  auto bias = right;
  Curve::of(bias.last, "fc1.bias") = Curve::of(bias.last, "fc1.bias") + 0.01;
  CHECK(bias.outcome().code == 0);
  for (const std::string name : {"bn1.running_mean", "bn2.running_mean", "bn1.running_var", "bn1.bias", "fc2.bias"}) {
    auto wrong = right;
    Curve::of(wrong.last, name) = Curve::of(wrong.last, name) * 1.01 + 0.001;
    const auto said = wrong.outcome();
    INFO(said.out);
    CHECK(said.code == 1);
    CHECK(said.out.find("failed net: sgd: final " + name + " is off by") != std::string::npos);
  }
  auto steep = right;
  Curve::of(steep.gradients, "fc1.bias") = ones({3}) * 1e-6;
  CHECK(steep.outcome().out.starts_with("failed net: first gradients: gradient of fc1.bias is 1e-06, not the rounding of f64"));
  // A gradient that is as small elsewhere is no reason to look away.
  auto flat = right;
  Curve::of(flat.gradients, "bn1.bias") = ones({3}) * 1e-20;
  CHECK(flat.outcome().out.starts_with("failed net: first gradients: gradient of bn1.bias is off by"));
}

TEST_CASE("torch_reference tells right from wrong") {
  const Folder folder;
  write_product(folder, "elementwise", 3, 2);
  const auto right = reference(TORCH_REFERENCE, folder.path());
  CHECK(right.code == 0);
  CHECK(right.out == "passed one\n1 passed, 0 failed\n");

  write_product(folder, "elementwise", 3.001F, 2);
  const auto output = reference(TORCH_REFERENCE, folder.path());
  CHECK(output.code == 1);
  CHECK(output.out.starts_with("failed one: output y is off by"));
  CHECK(output.out.ends_with("\n0 passed, 1 failed\n"));

  write_product(folder, "elementwise", 3, 2.001F);
  CHECK(reference(TORCH_REFERENCE, folder.path()).out.starts_with("failed one: gradient of a is off by"));

  write_product(folder, "no_such_operation", 3, 2);
  CHECK(reference(TORCH_REFERENCE, folder.path()).out == "failed one: unknown operation no_such_operation\n0 passed, 1 failed\n");
}

TEST_CASE("torch_reference reads all that a case gives") {
  const Folder folder;
  write_product(folder, "elementwise", 3, 2, R"(, "note": "explains", "absent": null, "off": false)");
  CHECK(said_of(folder) == "passed one");
  write_product(folder, "elementwise", 3, 2, R"(, "rounding_mode": "floor")");
  CHECK(said_of(folder) == "failed one: nothing reads the attribute rounding_mode");

  const io::StateDict relu{
      {"in.x", Tensor::from({-1.F, 2.F})}, {"in.mask", Tensor::from({1.F})}, {"out.y", Tensor::from({0.F, 2.F})}};
  write_case(folder, "activation", R"({"fn": "relu"})", relu);
  CHECK(said_of(folder) == "failed one: nothing reads the input mask");
  // Parameters in the name count as attributes.
  write_case(folder, "activation", R"({"fn": "relu_0.5"})", {relu[0], relu[2]});
  CHECK(said_of(folder) == "failed one: nothing reads the attribute numbers");
}

TEST_CASE("torch_reference needs attributes with names") {
  const Folder folder;
  write_case(folder, "relu", "[1]", {{"in.x", Tensor::from({1.F})}, {"out.y", Tensor::from({1.F})}});
  CHECK(said_of(folder) == "failed one: the attributes are no object: [1]");
}

TEST_CASE("torch_reference gives losses their weights") {
  // At x = 0 both logarithms are log 1/2, and the positive one counts three times.
  const Folder folder;
  const auto write = [&](float weight) {
    write_case(folder, "bce_with_logits", R"({"reduction": "sum"})",
               {{"in.x", Tensor::from({0.F, 0.F})},
                {"in.target", Tensor::from({1.F, 0.F})},
                {"in.pos_weight", Tensor::from({weight, weight})},
                {"out.y", Tensor::from({2.7725887F})},
                {"gout.y", Tensor::from({1.F})},
                {"grad.x", Tensor::from({-1.5F, 0.5F})}});
  };
  write(3);
  CHECK(said_of(folder) == "passed one");
  write(2);
  CHECK(said_of(folder).starts_with("failed one: output y is off by"));
}

TEST_CASE("torch_reference gives optimizers their options") {
  // Without averaging, RMSprop's step is the rate, here upwards; Rprop's second step is the first times 1.5.
  const Folder folder;
  const auto said = [&](const std::string& attributes, std::initializer_list<double> parameters) {
    write_case(folder, "optimizer", attributes,
               {{"in.param", Tensor::from({1.F})},
                {"in.grads", Tensor::from({2.F, 3.F}, {2, 1})},
                {"out.params_after_step", Tensor::from(parameters, {2, 1})}});
    return said_of(folder);
  };
  CHECK(said(R"({"algo": "RMSprop", "lr": 0.1, "alpha": 0, "maximize": true, "foreach": true})", {1.1, 1.2}) == "passed one");
  CHECK(said(R"({"algo": "Rprop", "lr": 0.1, "etas": [0.5, 1.5], "step_sizes": [0.01, 1]})", {0.9, 0.75}) == "passed one");
  CHECK(said(R"({"algo": "Rprop", "lr": 0.1, "etas": [0.5, 1.5], "step_sizes": [0.01, 0.1]})", {0.9, 0.8}) == "passed one");
  // Down the slopes 2, then 3: the first step is the rate long, the second thrice the rate; upwards with "maximize".
  CHECK(said(R"({"algo": "LBFGS", "lr": 0.1, "max_iter": 1, "max_eval": 1})", {0.9, 0.6}) == "passed one");
  CHECK(said(R"({"algo": "LBFGS", "lr": 0.1, "max_iter": 1, "max_eval": 1, "maximize": true})", {1.1, 1.4}) == "passed one");
  CHECK(said(R"({"algo": "Adam", "lr": 0.1, "momentum": 0.9})", {0.9, 0.8}) ==
        "failed one: nothing reads the attribute momentum");
}

TEST_CASE("torch_reference knows PyTorch's schedules, in attributes and in words") {
  const Folder folder;
  const auto said = [&](const std::string& attributes, std::initializer_list<double> rates) {
    write_case(folder, "lr_schedule", attributes, {{"out.lr", Tensor::from(rates)}});
    return said_of(folder);
  };
  // Behind T_max PyTorch's rate rises again.
  CHECK(said(R"({"kind": "CosineAnnealingLR", "base_lr": 0.2, "T_max": 2})", {0.2, 0.1, 0, 0.1, 0.2, 0.1}) == "passed one");
  CHECK(said(R"({"kind": "cosine", "base_lr": 0.2, "detail": "0.2->.1 in 2"})", {0.2, 0.15, 0.1, 0.15}) == "passed one");
  CHECK(said(R"({"kind": "cosine_restarts", "base_lr": 0.2, "detail": "T_0 2 T_mult 1"})", {0.2, 0.1, 0.2, 0.1}) == "passed one");
  CHECK(said(R"({"kind": "multistep", "base_lr": 0.2, "detail": "milestones 1,3 gamma .5"})", {0.2, 0.1, 0.1, 0.05}) ==
        "passed one");
  CHECK(said(R"({"kind": "ConstantLR", "base_lr": 0.2, "detail": "factor 1/2 total_iters 2"})", {0.1, 0.1, 0.2}) == "passed one");
  CHECK(said(R"({"kind": "polynomial", "base_lr": 0.2, "detail": "total 2 power 2"})", {0.2, 0.05, 0, 0}) == "passed one");
  CHECK(said(R"({"kind": "cyclic", "base_lr": 0.1, "detail": "max .3 up 2 down 1"})", {0.1, 0.2, 0.3, 0.1, 0.2}) == "passed one");
  CHECK(said(R"({"kind": "onecycle", "max_lr": 0.2, "total_steps": 5, "pct_start": 0.6, "div_factor": 2,
                 "final_div_factor": 1})",
             {0.1, 0.15, 0.2, 0.15, 0.1}) == "passed one");
  CHECK(said(R"({"kind": "ReduceLROnPlateau", "base_lr": 0.2, "metrics": [1, 1, 1, 0.5, 0.5], "patience": 1, "factor": 0.5})",
             {0.2, 0.2, 0.2, 0.1, 0.1}) == "passed one");
  CHECK(said(R"({"kind": "LambdaLR", "base_lr": 0.2, "detail": "lambda e: max(0, 1 - e/2) ** 2"})", {0.2, 0.05, 0, 0}) ==
        "passed one");
  CHECK(said(R"--({"kind": "cos_lambda", "base_lr": 0.2, "detail": "0.5(1 + cos(pi e/2))"})--", {0.2, 0.1, 0, 0.1}) ==
        "passed one");
  CHECK(said(R"({"kind": "step", "base_lr": 0.2, "detail": "step 2 gamma .5"})", {0.2, 0.2, 0.1, 0.11}).starts_with("failed"));
  CHECK(said(R"({"kind": "step", "base_lr": 0.2, "detail": "step 2 gamma .5 and 7"})", {0.2}) ==
        "failed one: unclear what 7 is in the detail");
  CHECK(said(R"({"kind": "none", "base_lr": 0.2})", {0.2}) == "failed one: unknown schedule none");
}

TEST_CASE("torch_reference tells by the gradient whether logarithms are taken") {
  // Of logarithms of probabilities the loss is the same, with a softmax inside and without.
  const Folder folder;
  const auto write = [&](const std::string& op, std::initializer_list<float> gradient) {
    const float half = -0.6931472F;
    write_case(folder, op, R"({"reduction": "sum"})",
               {{"in.x", Tensor::from({half, half}, {1, 2})},
                {"in.target", Tensor::from(std::vector<std::int64_t>{0})},
                {"out.y", Tensor::from({0.6931472F})},
                {"gout.y", Tensor::from({1.F})},
                {"grad.x", Tensor::from(std::vector<float>(gradient), {1, 2})}});
  };
  for (const char* op : {"nll_loss", "nn.NLLLoss", "torch.nn.functional.nll_loss"}) {
    write(op, {-1, 0});
    CHECK(said_of(folder) == "passed one");
    write(op, {-0.5F, 0.5F});
    CHECK(said_of(folder) == "passed one");
    write(op, {-0.7F, 0});
    CHECK(said_of(folder).starts_with("failed one: gradient of x is off by"));
  }
}

TEST_CASE("torch_reference pads as PyTorch's layers do") {
  const Folder folder;
  const auto x = Tensor::from({1.F, 2.F, 3.F}, {1, 1, 3});
  write_case(folder, "conv1d", R"({"padding": 1, "padding_mode": "reflect"})",
             {{"in.x", x},
              {"in.weight", Tensor::from({1.F, 1.F, 1.F}, {1, 1, 3})},
              {"out.y", Tensor::from({5.F, 6.F, 7.F}, {1, 1, 3})}});
  CHECK(said_of(folder) == "passed one");
  write_case(folder, "ReplicationPad1d", R"({"padding": 1})",
             {{"in.x", x}, {"out.y", Tensor::from({1.F, 1.F, 2.F, 3.F, 3.F}, {1, 1, 5})}});
  CHECK(said_of(folder) == "passed one");
  write_case(folder, "ZeroPad1d", R"({"padding": [0, 1]})",
             {{"in.x", x}, {"out.y", Tensor::from({1.F, 2.F, 3.F, 0.F}, {1, 1, 4})}});
  CHECK(said_of(folder) == "passed one");
}

TEST_CASE("torch_reference chains schedules") {
  const Folder folder;
  const auto said = [&](const std::string& attributes, std::initializer_list<double> rates) {
    write_case(folder, "lr_schedule", attributes, {{"out.lr", Tensor::from(rates)}});
    return said_of(folder);
  };
  CHECK(said(R"({"kind": "SequentialLR", "base_lr": 0.2, "detail": "linear .5->1 in 2 then exponential gamma .5"})",
             {0.1, 0.15, 0.2, 0.1}) == "passed one");
  CHECK(said(R"({"kind": "SequentialLR", "base_lr": 0.2, "milestones": [1], "schedulers": [{"kind": "ConstantLR", "factor": 0.5},
                 {"kind": "ExponentialLR", "gamma": 0.5}]})",
             {0.1, 0.2, 0.1}) == "passed one");
  CHECK(said(R"({"kind": "ChainedScheduler", "base_lr": 0.2, "detail": "const .5 in 2 and exponential gamma .5"})",
             {0.1, 0.05, 0.05}) == "passed one");
  CHECK(said(R"({"kind": "SequentialLR", "base_lr": 0.2})", {0.2}) == "failed one: there are no schedules to chain");
}

TEST_CASE("torch_reference knows the momenta of PyTorch's cycles") {
  const Folder folder;
  const auto said = [&](const std::string& attributes, std::initializer_list<double> rates,
                        std::initializer_list<double> momenta) {
    write_case(folder, "lr_schedule", attributes, {{"out.lr", Tensor::from(rates)}, {"out.momentum", Tensor::from(momenta)}});
    return said_of(folder);
  };
  const auto one_cycle = R"({"kind": "onecycle", "max_lr": 0.2, "total_steps": 5, "pct_start": 0.6, "div_factor": 2,
                             "final_div_factor": 1, "cycle_momentum": true, "base_momentum": 0.5})";
  CHECK(said(one_cycle, {0.1, 0.15, 0.2, 0.15, 0.1}, {0.95, 0.725, 0.5, 0.725, 0.95}) == "passed one");
  CHECK(said(one_cycle, {0.1, 0.15, 0.2, 0.15, 0.1}, {0.95, 0.725, 0.6, 0.725, 0.95}).starts_with("failed"));
  CHECK(said(R"({"kind": "cyclic", "base_lr": 0.1, "detail": "max .3 up 2 down 1", "max_momentum": 0.95})", {0.1, 0.2, 0.3, 0.1},
             {0.95, 0.875, 0.8, 0.95}) == "passed one");
  CHECK(said(R"({"kind": "step", "base_lr": 0.2, "detail": "step 2 gamma .5"})", {0.2, 0.2}, {0.9, 0.9}) ==
        "failed one: the schedule has no momentum");
}

TEST_CASE("torch_reference calls PyTorch's functions by their arguments") {
  const Folder folder;
  // (a - 3 b)(1) with the gradient of both.
  const io::StateDict difference{{"in.a0", Tensor::from({5.F, 7.F})},    {"in.a1", Tensor::from({1.F, 2.F})},
                                 {"out.y0", Tensor::from({2.F, 1.F})},   {"gout.y0", Tensor::from({1.F, 10.F})},
                                 {"grad.a0", Tensor::from({1.F, 10.F})}, {"grad.a1", Tensor::from({-3.F, -30.F})}};
  const std::string two = R"([{"tensor": "a0"}, {"tensor": "a1"}])";
  write_call(folder, "sub", two, R"({"alpha": 3})", difference);
  CHECK(said_of(folder) == "passed one");
  write_call(folder, "sub", two, R"({"alpha": 2})", difference);
  CHECK(said_of(folder).starts_with("failed one: output y0 is off by"));
  write_call(folder, "sub", two, R"({"alpha": 3, "beta": 1})", difference);
  CHECK(said_of(folder) == "failed one: nothing reads argument beta");
  write_call(folder, "sub", R"([{"tensor": "a0"}, {"tensor": "a7"}])", R"({"alpha": 3})", difference);
  CHECK(said_of(folder) == "failed one: argument other: there is no tensor \"a7\"");
  write_call(folder, "sub", two, R"({"alpha": "three"})", difference);
  CHECK(said_of(folder) == "failed one: argument alpha is \"three\", no number");
  write_call(folder, "sub", "3", "{}", difference);
  CHECK(said_of(folder) == "failed one: the arguments are no list: 3");
  write_call(folder, "no_such_function", two, "{}", difference);
  CHECK(said_of(folder) == "failed one: unknown operation no_such_function");

  // Lists of tensors, slices, dtypes; shapes and kinds of dtypes are compared, too.
  const auto a = Tensor::from({1.F, 2.F}), b = Tensor::from({3.F});
  write_call(folder, "cat", R"([[{"tensor": "a0"}, {"tensor": "a1"}]])", R"({"dim": -1})",
             {{"in.a0", a}, {"in.a1", b}, {"out.y0", Tensor::from({1.F, 2.F, 3.F})}});
  CHECK(said_of(folder) == "passed one");
  write_call(folder, "__getitem__", R"([{"tensor": "a0"}, {"slice": [1, null, null]}])", "{}",
             {{"in.a0", a}, {"out.y0", b - 1.0}});
  CHECK(said_of(folder) == "passed one");
  write_call(folder, "sum", R"([{"tensor": "a0"}])", R"({"dtype": {"dtype": "i64"}})",
             {{"in.a0", a}, {"out.y0", Tensor::scalar(3, Dtype::i64)}});
  CHECK(said_of(folder) == "passed one");
  write_call(folder, "sum", R"([{"tensor": "a0"}])", "{}", {{"in.a0", a}, {"out.y0", Tensor::scalar(3, Dtype::i64)}});
  CHECK(said_of(folder) == "failed one: output y0 is floating, not an integer");
  write_call(folder, "sum", R"([{"tensor": "a0"}])", "{}", {{"in.a0", a}, {"out.y0", b}});
  CHECK(said_of(folder) == "failed one: output y0 has shape [], not [1]");
}

TEST_CASE("torch_reference counts calls that are left out") {
  const Folder folder;
  const auto x = Tensor::from({1.F});
  write_call(folder, "nn.functional.dropout", R"([{"tensor": "a0"}])", R"({"p": 0.5})", {{"in.a0", x}, {"out.y0", x}});
  const auto outcome = reference(TORCH_REFERENCE, folder.path());
  CHECK(outcome.out == "left out one: random numbers\n0 passed, 0 failed, 1 left out\n");
  CHECK(outcome.code == 1);
}

TEST_CASE("a folder without cases is one clear line") {
  const Folder folder;
  const auto empty = reference(TORCH_REFERENCE, folder.path());
  CHECK(empty.code == 2);
  CHECK(empty.err.find("there is no manifest.json to read") != std::string::npos);
  const auto nowhere = reference(TRAIN_REFERENCE, folder / "nowhere");
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err.find("nowhere") != std::string::npos);
}
