// docs/ops.md: every operation of ops.h with its names elsewhere, gradient, dtypes and solvers. With CLNET_WRITE_DOCS=1 the test
// writes the file; otherwise it holds it to what the code says.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lib/exec/choose/solver.h"
#include "tests/paths.h"
#include "tests/support/declared_operations.h"
#include "tests/support/temporary.h"

using namespace clnet;
using clnet::test::content;

namespace {

struct OperationNames {
  std::string ours, torch, onnx;
};

/// The names in PyTorch (torch, torch.nn.functional where nothing else is said) and ONNX; empty: there is none.
// clang-format off
const std::vector<OperationNames> operation_names{
    {"abs", "abs", "Abs"},
    {"adaptive_avg_pool1d", "adaptive_avg_pool1d", ""},
    {"adaptive_avg_pool2d", "adaptive_avg_pool2d", ""},
    {"adaptive_avg_pool3d", "adaptive_avg_pool3d", ""},
    {"adaptive_max_pool1d", "adaptive_max_pool1d", ""},
    {"adaptive_max_pool1d_with_indices", "adaptive_max_pool1d(return_indices)", ""},
    {"adaptive_max_pool2d", "adaptive_max_pool2d", ""},
    {"adaptive_max_pool2d_with_indices", "adaptive_max_pool2d(return_indices)", ""},
    {"adaptive_max_pool3d", "adaptive_max_pool3d", ""},
    {"adaptive_max_pool3d_with_indices", "adaptive_max_pool3d(return_indices)", ""},
    {"addcdiv", "addcdiv", ""},
    {"addcmul", "addcmul", ""},
    {"addmm", "addmm", "Gemm"},
    {"all", "all", ""},
    {"alpha_dropout", "alpha_dropout", ""},
    {"any", "any", ""},
    {"arange", "arange", "Range"},
    {"argmax", "argmax", "ArgMax"},
    {"argmin", "argmin", "ArgMin"},
    {"argsort", "argsort", ""},
    {"atan2", "atan2", ""},
    {"avg_pool1d", "avg_pool1d", "AveragePool"},
    {"avg_pool2d", "avg_pool2d", "AveragePool"},
    {"avg_pool3d", "avg_pool3d", "AveragePool"},
    {"batch_norm_inference", "batch_norm(training=False)", "BatchNormalization"},
    {"batch_norm_training", "batch_norm(training=True)", "BatchNormalization"},
    {"bernoulli", "bernoulli", "Bernoulli"},
    {"binary_cross_entropy", "binary_cross_entropy", ""},
    {"binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits", ""},
    {"cast", "Tensor.to", "Cast"},
    {"ceil", "ceil", "Ceil"},
    {"celu", "celu", "Celu"},
    {"clamp", "clamp", "Clip"},
    {"concat", "cat", "Concat"},
    {"conv1d", "conv1d", "Conv"},
    {"conv2d", "conv2d", "Conv"},
    {"conv3d", "conv3d", "Conv"},
    {"conv_transpose1d", "conv_transpose1d", "ConvTranspose"},
    {"conv_transpose2d", "conv_transpose2d", "ConvTranspose"},
    {"conv_transpose3d", "conv_transpose3d", "ConvTranspose"},
    {"cos", "cos", "Cos"},
    {"cosine_embedding_loss", "cosine_embedding_loss", ""},
    {"cross_entropy", "cross_entropy", "SoftmaxCrossEntropyLoss"},
    {"ctc_loss", "ctc_loss", ""},
    {"cumprod", "cumprod", "CumProd"},
    {"cumsum", "cumsum", "CumSum"},
    {"diag", "diag", ""},
    {"diagonal", "diagonal", ""},
    {"dropout", "dropout", "Dropout"},
    {"dropout1d", "dropout1d", ""},
    {"dropout2d", "dropout2d", ""},
    {"dropout3d", "dropout3d", ""},
    {"einsum", "einsum", "Einsum"},
    {"elu", "elu", "Elu"},
    {"embedding", "embedding", "Gather"},
    {"eq", "eq", "Equal"},
    {"erf", "erf", "Erf"},
    {"exp", "exp", "Exp"},
    {"expand", "expand", "Expand"},
    {"expm1", "expm1", ""},
    {"eye", "eye", "EyeLike"},
    {"feature_alpha_dropout", "feature_alpha_dropout", ""},
    {"flatten", "flatten", "Flatten"},
    {"flip", "flip", ""},
    {"floor", "floor", "Floor"},
    {"fmod", "fmod", "Mod"},
    {"fold", "fold", "Col2Im"},
    {"frac", "frac", ""},
    {"full", "full", "ConstantOfShape"},
    {"gather", "gather", "GatherElements"},
    {"gaussian_nll_loss", "gaussian_nll_loss", ""},
    {"gelu", "gelu", "Gelu"},
    {"global_avg_pool1d", "adaptive_avg_pool1d(1)", "GlobalAveragePool"},
    {"global_avg_pool2d", "adaptive_avg_pool2d(1)", "GlobalAveragePool"},
    {"global_avg_pool3d", "adaptive_avg_pool3d(1)", "GlobalAveragePool"},
    {"global_max_pool1d", "adaptive_max_pool1d(1)", "GlobalMaxPool"},
    {"global_max_pool2d", "adaptive_max_pool2d(1)", "GlobalMaxPool"},
    {"global_max_pool3d", "adaptive_max_pool3d(1)", "GlobalMaxPool"},
    {"global_norm", "nn.utils.get_total_norm", ""},
    {"glu", "glu", ""},
    {"greater", "gt", "Greater"},
    {"greater_equal", "ge", "GreaterOrEqual"},
    {"group_norm", "group_norm", "GroupNormalization"},
    {"gru_cell", "nn.GRUCell", ""},
    {"gru_layer", "nn.GRU", "GRU"},
    {"gumbel_softmax", "gumbel_softmax", ""},
    {"hardshrink", "hardshrink", "Shrink"},
    {"hardsigmoid", "hardsigmoid", "HardSigmoid"},
    {"hardswish", "hardswish", "HardSwish"},
    {"hardtanh", "hardtanh", ""},
    {"hinge_embedding_loss", "hinge_embedding_loss", ""},
    {"huber_loss", "huber_loss", ""},
    {"hypot", "hypot", ""},
    {"index_add", "index_add", ""},
    {"index_select", "index_select", "Gather"},
    {"instance_norm", "instance_norm", "InstanceNormalization"},
    {"interpolate", "interpolate", "Resize"},
    {"is_nan", "isnan", "IsNaN"},
    {"kl_div", "kl_div", ""},
    {"l1_loss", "l1_loss", ""},
    {"layer_norm", "layer_norm", "LayerNormalization"},
    {"leaky_relu", "leaky_relu", "LeakyRelu"},
    {"lerp", "lerp", ""},
    {"less", "lt", "Less"},
    {"less_equal", "le", "LessOrEqual"},
    {"linear", "linear", "Gemm"},
    {"linspace", "linspace", ""},
    {"local_response_norm", "local_response_norm", "LRN"},
    {"log", "log", "Log"},
    {"log1p", "log1p", ""},
    {"log2", "log2", ""},
    {"log_sigmoid", "logsigmoid", ""},
    {"log_softmax", "log_softmax", "LogSoftmax"},
    {"logaddexp", "logaddexp", ""},
    {"logical_and", "logical_and", "And"},
    {"logical_not", "logical_not", "Not"},
    {"logical_or", "logical_or", "Or"},
    {"logsumexp", "logsumexp", "ReduceLogSumExp"},
    {"lp_pool1d", "lp_pool1d", "LpPool"},
    {"lp_pool2d", "lp_pool2d", "LpPool"},
    {"lp_pool3d", "lp_pool3d", "LpPool"},
    {"lstm_cell", "nn.LSTMCell", ""},
    {"lstm_layer", "nn.LSTM", "LSTM"},
    {"margin_ranking_loss", "margin_ranking_loss", ""},
    {"masked_fill", "masked_fill", ""},
    {"matmul", "matmul", "MatMul"},
    {"max", "amax", "ReduceMax"},
    {"max_pool1d", "max_pool1d", "MaxPool"},
    {"max_pool1d_with_indices", "max_pool1d(return_indices)", "MaxPool"},
    {"max_pool2d", "max_pool2d", "MaxPool"},
    {"max_pool2d_with_indices", "max_pool2d(return_indices)", "MaxPool"},
    {"max_pool3d", "max_pool3d", "MaxPool"},
    {"max_pool3d_with_indices", "max_pool3d(return_indices)", "MaxPool"},
    {"max_unpool1d", "max_unpool1d", "MaxUnpool"},
    {"max_unpool2d", "max_unpool2d", "MaxUnpool"},
    {"max_unpool3d", "max_unpool3d", "MaxUnpool"},
    {"maximum", "maximum", "Max"},
    {"mean", "mean", "ReduceMean"},
    {"min", "amin", "ReduceMin"},
    {"minimum", "minimum", "Min"},
    {"mish", "mish", "Mish"},
    {"mse_loss", "mse_loss", ""},
    {"multi_margin_loss", "multi_margin_loss", ""},
    {"multilabel_margin_loss", "multilabel_margin_loss", ""},
    {"multilabel_soft_margin_loss", "multilabel_soft_margin_loss", ""},
    {"multinomial", "multinomial", "Multinomial"},
    {"nan_to_num", "nan_to_num", ""},
    {"narrow", "narrow", ""},
    {"nll_loss", "nll_loss", "NegativeLogLikelihoodLoss"},
    {"norm", "norm", "ReduceL2"},
    {"not_equal", "ne", ""},
    {"one_hot", "one_hot", "OneHot"},
    {"ones", "ones", ""},
    {"ones_like", "ones_like", ""},
    {"outer", "outer", ""},
    {"pad", "pad", "Pad"},
    {"permute", "permute", "Transpose"},
    {"pixel_shuffle", "pixel_shuffle", "DepthToSpace"},
    {"pixel_unshuffle", "pixel_unshuffle", "SpaceToDepth"},
    {"poisson_nll_loss", "poisson_nll_loss", ""},
    {"pow", "pow", "Pow"},
    {"prelu", "prelu", "PRelu"},
    {"prod", "prod", "ReduceProd"},
    {"rand", "rand", "RandomUniform"},
    {"randint", "randint", ""},
    {"randn", "randn", "RandomNormal"},
    {"randperm", "randperm", ""},
    {"reciprocal", "reciprocal", "Reciprocal"},
    {"relu", "relu", "Relu"},
    {"relu6", "relu6", "Clip"},
    {"repeat", "Tensor.repeat", ""},
    {"repeat_interleave", "repeat_interleave", ""},
    {"reshape", "reshape", "Reshape"},
    {"rms_norm", "rms_norm", "RMSNormalization"},
    {"rnn_cell", "nn.RNNCell", ""},
    {"rnn_layer", "nn.RNN", "RNN"},
    {"roll", "roll", ""},
    {"rotary_embedding", "", "RotaryEmbedding"},
    {"round", "round", "Round"},
    {"rrelu", "rrelu", ""},
    {"rsqrt", "rsqrt", ""},
    {"scaled_dot_product_attention", "scaled_dot_product_attention", "Attention"},
    {"scatter", "scatter", "ScatterElements"},
    {"scatter_add", "scatter_add", "ScatterElements(add)"},
    {"scatter_reduce", "scatter_reduce", "ScatterElements(reduction)"},
    {"selu", "selu", "Selu"},
    {"sigmoid", "sigmoid", "Sigmoid"},
    {"sigmoid_focal_loss", "torchvision.ops.sigmoid_focal_loss", ""},
    {"sign", "sign", "Sign"},
    {"silu", "silu", "Swish"},
    {"sin", "sin", "Sin"},
    {"sinusoidal_positions", "", ""},
    {"slice", "Tensor[a:b:c]", "Slice"},
    {"slice_update", "slice_scatter", ""},
    {"smooth_l1_loss", "smooth_l1_loss", ""},
    {"soft_margin_loss", "soft_margin_loss", ""},
    {"softmax", "softmax", "Softmax"},
    {"softmin", "softmin", ""},
    {"softplus", "softplus", "Softplus"},
    {"softshrink", "softshrink", "Shrink"},
    {"softsign", "softsign", "Softsign"},
    {"sort", "sort", ""},
    {"split", "split", "Split"},
    {"sqrt", "sqrt", "Sqrt"},
    {"square", "square", ""},
    {"squeeze", "squeeze", "Squeeze"},
    {"stack", "stack", ""},
    {"stddev", "std", ""},
    {"stop_gradient", "Tensor.detach", ""},
    {"sum", "sum", "ReduceSum"},
    {"sum_to", "Tensor.sum_to_size", ""},
    {"tanh", "tanh", "Tanh"},
    {"tanhshrink", "tanhshrink", ""},
    {"threshold", "threshold", "ThresholdedRelu"},
    {"tile", "tile", "Tile"},
    {"topk", "topk", "TopK"},
    {"trace", "trace", ""},
    {"transpose", "transpose", "Transpose"},
    {"tril", "tril", "Trilu"},
    {"triplet_margin_loss", "triplet_margin_loss", ""},
    {"triu", "triu", "Trilu"},
    {"trunc", "trunc", ""},
    {"unfold", "unfold", ""},
    {"unsqueeze", "unsqueeze", "Unsqueeze"},
    {"var", "var", ""},
    {"where", "where", "Where"},
    {"xlogy", "xlogy", ""},
    {"zeros", "zeros", ""},
    {"zeros_like", "zeros_like", ""},
};
// clang-format on

/// What is constant or a choice between constants: no gradient flows.
const std::set<std::string> without_gradient{"all",           "any",           "arange",
                                             "argmax",        "argmin",        "argsort",
                                             "bernoulli",     "ceil",          "eq",
                                             "eye",           "floor",         "full",
                                             "greater",       "greater_equal", "is_nan",
                                             "less",          "less_equal",    "linspace",
                                             "logical_and",   "logical_not",   "logical_or",
                                             "multinomial",   "not_equal",     "one_hot",
                                             "ones",          "ones_like",     "rand",
                                             "randint",       "randn",         "randperm",
                                             "round",         "sign",          "sinusoidal_positions",
                                             "stop_gradient", "trunc",         "zeros",
                                             "zeros_like"};

/// Whose solvers an operation goes by, where they have another name.
const std::map<std::string, std::string> solved_by{
    {"adaptive_avg_pool1d", "avg_pool2d"},
    {"adaptive_avg_pool2d", "avg_pool2d"},
    {"adaptive_avg_pool3d", "avg_pool2d"},
    {"adaptive_max_pool1d", "max_pool2d"},
    {"adaptive_max_pool1d_with_indices", "max_pool2d"},
    {"adaptive_max_pool2d", "max_pool2d"},
    {"adaptive_max_pool2d_with_indices", "max_pool2d"},
    {"adaptive_max_pool3d", "max_pool2d"},
    {"adaptive_max_pool3d_with_indices", "max_pool2d"},
    {"addmm", "matmul"},
    {"all", "reduce"},
    {"any", "reduce"},
    {"argmax", "arg_reduce"},
    {"argmin", "arg_reduce"},
    {"avg_pool1d", "avg_pool2d"},
    {"avg_pool3d", "avg_pool2d"},
    {"batch_norm_training", "batch_norm"},
    {"conv1d", "conv2d"},
    {"conv3d", "conv2d"},
    {"conv_transpose1d", "conv2d_backward_data"},
    {"conv_transpose2d", "conv2d_backward_data"},
    {"conv_transpose3d", "conv2d_backward_data"},
    {"einsum", "matmul"},
    {"fold", "index_add"},
    {"global_avg_pool1d", "reduce"},
    {"global_avg_pool2d", "reduce"},
    {"global_avg_pool3d", "reduce"},
    {"global_max_pool1d", "max_pool2d"},
    {"global_max_pool2d", "max_pool2d"},
    {"global_max_pool3d", "max_pool2d"},
    {"gru_layer", "recurrent"},
    {"interpolate", "resample"},
    {"linear", "matmul"},
    {"log_softmax", "softmax"},
    {"logsumexp", "reduce"},
    {"lp_pool1d", "avg_pool2d"},
    {"lp_pool2d", "avg_pool2d"},
    {"lp_pool3d", "avg_pool2d"},
    {"lstm_layer", "recurrent"},
    {"max", "reduce"},
    {"max_pool1d", "max_pool2d"},
    {"max_pool1d_with_indices", "max_pool2d"},
    {"max_pool2d_with_indices", "max_pool2d"},
    {"max_pool3d", "max_pool2d"},
    {"max_pool3d_with_indices", "max_pool2d"},
    {"mean", "reduce"},
    {"min", "reduce"},
    {"permute", "strided_copy"},
    {"prod", "reduce"},
    {"rnn_layer", "recurrent"},
    {"scatter", "last_picks"},
    {"scaled_dot_product_attention", "attention"},
    {"softmin", "softmax"},
    {"sort", "argsort"},
    {"stddev", "reduce"},
    {"sum", "reduce"},
    {"topk", "argsort"},
    {"transpose", "strided_copy"},
    {"var", "reduce"},
};

/// The dtypes that an operation takes, by docs/dtypes.md's rows: which of f16, i32 and bool are not refused.
std::map<std::string, std::string> dtypes_taken() {
  const auto text = content(std::string(CLNET_SOURCE_DIR) + "/docs/dtypes.md");
  std::map<std::string, std::string> result;
  const std::regex row(R"(\n\| `(\w+)`[^|]*\| ([^|]+) \| ([^|]+) \| ([^|]+) \|)");
  for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match) {
    std::vector<std::string> taken;
    const std::vector<std::string> kinds{"floating", "integers", "bool"};
    for (std::size_t i = 0; i < kinds.size(); ++i)
      if ((*match)[i + 2].str().find("refused") == std::string::npos) taken.push_back(kinds[i]);
    result.emplace((*match)[1], taken.size() == kinds.size() ? "all" : fmt::format("{}", fmt::join(taken, ", ")));
  }
  // What the page says in words.
  result.emplace("relu6", result.at("hardtanh"));
  result.emplace("randint", "integers");
  result.emplace("randperm", "i64");
  return result;
}

std::string_view gradient_of(const std::string& name) { return without_gradient.contains(name) ? "none" : "any order"; }

std::string solvers_of(const std::string& name) {
  const auto other = solved_by.find(name);
  const auto& op = other == solved_by.end() ? name : other->second;
  const auto solvers = exec::solver_names(op);
  if (solvers.empty()) return "";
  const auto list = fmt::format("{}", fmt::join(solvers, ", "));
  return op == name ? list : fmt::format("{}: {}", op, list);
}

std::string document() {
  const auto taken = dtypes_taken();
  std::string text =
      "# Operations\n\n"
      "Every operation of `clnet/ops.h`, in alphabetical order; the headers of its families say what each does. This file is "
      "made by\n"
      "`CLNET_WRITE_DOCS=1 build/tests/clnet-op-tests \"docs/ops.md*\"`, and the same test holds it to the code.\n\n"
      "- PyTorch: the name in `torch` or `torch.nn.functional`. ONNX: the operator that it computes, or the nearest one.\n"
      "- Gradient: of any order, unless the column says otherwise. Second derivatives of recurrence, attention and CTC are made "
      "of\n"
      "  other operations.\n"
      "- Dtypes: which inputs are taken; [dtypes.md](dtypes.md) has results, arithmetic and errors.\n"
      "- Solvers: in the order of preference, for `CLNET_SOLVER`; where there is none, the operation is generated by fusion, has "
      "one\n"
      "  kernel, or is made of others.\n\n"
      "| operation | PyTorch | ONNX | gradient | dtypes | solvers |\n|---|---|---|---|---|---|\n";
  for (const auto& [ours, torch, onnx] : operation_names)
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", ours, torch.empty() ? "" : "`" + torch + "`",
                        onnx.empty() ? "" : "`" + onnx + "`", gradient_of(ours), taken.at(ours), solvers_of(ours));
  return text;
}

/// A block of code in a document, and the files that the heading above it names.
struct Shown {
  std::vector<std::string> files;
  std::string code;
};

std::vector<Shown> shown_in(const std::string& document) {
  std::vector<Shown> result;
  std::vector<std::string> files;
  bool inside = false;
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      files.clear();
      const std::regex path(R"([\w/]+\.(cpp|h|clh|cl))");
      for (std::sregex_iterator match(line.begin(), line.end(), path), end; match != end; ++match) files.push_back(match->str());
    } else if (line.starts_with("```")) {
      inside = !inside;
      if (inside) result.push_back({files, ""});
    } else if (inside) {
      result.back().code += line + '\n';
    }
  }
  return result;
}

}  // namespace

TEST_CASE("docs/adding-a-solver.md shows the files as they are") {
  const auto all = shown_in(content(std::string(CLNET_SOURCE_DIR) + "/docs/adding-a-solver.md"));
  CHECK(all.size() > 5);
  for (const auto& [files, code] : all) {
    INFO(code);
    CHECK(std::any_of(files.begin(), files.end(), [&, &code = code](const auto& file) {
      return content(std::string(CLNET_SOURCE_DIR) + "/" + file).find(code) != std::string::npos;
    }));
  }
}

TEST_CASE("docs/ops.md lists every operation as it is") {
  auto declared = clnet::test::declared_operations(CLNET_SOURCE_DIR);
  for (const auto* state : {"manual_seed", "random_state", "set_random_state"}) declared.erase(state);
  std::erase_if(declared, [](const auto& name) { return name.starts_with("operator"); });
  std::set<std::string> listed;
  for (const auto& entry : operation_names) CHECK(listed.insert(entry.ours).second);
  CHECK(listed == declared);
  for (const auto& [ours, op] : solved_by) {
    INFO(ours);
    CHECK_FALSE(exec::solver_names(op).empty());
  }

  const auto path = std::string(CLNET_SOURCE_DIR) + "/docs/ops.md";
  const auto text = document();
  if (const char* write = std::getenv("CLNET_WRITE_DOCS"); write && *write) std::ofstream(path, std::ios::binary) << text;
  CHECK(content(path) == text);
}
