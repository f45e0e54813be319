// Training steps of chains of layers: a limit of memory bites there, and values can be computed twice.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

Ref Generator::add_layer(Ref x, std::vector<Ref>& weights) {
  const auto dtype = dtype_of(x);
  const auto shape = shape_of(x);
  const auto first = x;
  const auto weight = [&](const Shape& of, double size) {
    weights.push_back(leaf(of, dtype, {-size, size}));
    return weights.back();
  };
  // What is not cheap.
  if (shape.rank() == 4) {
    const auto c = shape[1];
    if (choose_.chance(0.3)) {
      const auto w = weight({c, 1, 3, 3}, 0.5);
      x = add("conv2d", fmt::format("conv2d($0, $1, {{}}, {{.padding = 1, .groups = {}}})", c), {x, w},
              [c](const Tensors& in) { return conv2d(in[0], in[1], {}, {.padding = 1, .groups = static_cast<int>(c)}); },
              {-8, 8});
    } else {
      const auto w = weight({c, c, 3, 3}, 0.5);
      x = add("conv2d", "conv2d($0, $1, {}, {.padding = 1})", {x, w},
              [](const Tensors& in) { return conv2d(in[0], in[1], {}, {.padding = 1}); }, {-8, 8});
    }
  } else {
    const auto w = weight({shape[1], shape[1]}, 0.5);
    x = add("matmul", "matmul($0, $1)", {x, w}, [](const Tensors& in) { return matmul(in[0], in[1]); }, {-8, 8});
  }
  // What is: a normalisation, which also keeps the numbers in bounds, and an activation or two.
  const bool affine = choose_.chance(0.5);
  if (shape.rank() == 4 || choose_.chance(0.7)) {
    std::vector<Ref> inputs{x};
    if (affine) {
      inputs.push_back(weight({shape[1]}, 1));
      inputs.push_back(weight({shape[1]}, 1));
    }
    x = add("batch_norm_training", fmt::format("batch_norm_training($0, {}, 0.01).y", affine ? "$1, $2" : "{}, {}"), inputs,
            [affine](const Tensors& in) {
              return batch_norm_training(in[0], affine ? in[1] : Tensor{}, affine ? in[2] : Tensor{}, 0.01).y;
            },
            {-8, 8});
  } else {
    x = add("layer_norm", "layer_norm($0, 1, {}, {}, 0.01)", {x},
            [](const Tensors& in) { return layer_norm(in[0], 1, {}, {}, 0.01); }, {-8, 8});
  }
  const auto activations = choose_.integer(1, 2);
  for (std::int64_t k = 0; k < activations; ++k) switch (choose_.below(5)) {
      case 0:
        x = add(
            "relu", "relu($0)", {x}, [](const Tensors& in) { return relu(in[0]); }, range(x));
        break;
      case 1: x = add("tanh", "tanh($0)", {x}, [](const Tensors& in) { return tanh(in[0]); }, {-1, 1}); break;
      case 2:
        x = add(
            "silu", "silu($0)", {x}, [](const Tensors& in) { return silu(in[0]); }, range(x));
        break;
      case 3:
        x = add(
            "gelu", "gelu($0)", {x}, [](const Tensors& in) { return gelu(in[0]); }, range(x));
        break;
      default:
        x = add(
            "operator*", "$0 * 0.75 + 0.25", {x}, [](const Tensors& in) { return in[0] * 0.75 + 0.25; }, range(x));
    }
  if (choose_.chance(0.25))
    x = add("operator+", "$0 + $1", {x, first}, [](const Tensors& in) { return in[0] + in[1]; }, {-16, 16});
  return x;
}

void Generator::add_training_step() {
  const auto structure = choose_.next();
  Ref x;
  if (choose_.chance(0.6)) {
    const auto c = sizes_.integer(2, 5), h = sizes_.integer(6, 14), w = sizes_.integer(6, 14);
    x = leaf({std::max<std::int64_t>(2, settings_.most_elements / (c * h * w)), c, h, w}, main_dtype_);
  } else {
    const auto width = sizes_.integer(3, 33);
    x = leaf({settings_.most_elements / width, width}, main_dtype_);
  }
  std::vector<Ref> weights;
  const auto layers = choose_.integer(5, std::max(6, settings_.max_ops));
  for (std::int64_t k = 0; k < layers; ++k) {
    choose_ = Rng(mix(structure, static_cast<std::uint64_t>(k)));
    x = add_layer(x, weights);
  }
  const auto y =
      size_of(main_dtype_) >= size_of(Dtype::f32)
          ? x
          : add(
                "cast", "cast($0, Dtype::f32)", {x}, [](const Tensors& in) { return cast(in[0], Dtype::f32); }, range(x));
  const auto loss = add("mean", "mean(square($0))", {y}, [](const Tensors& in) { return mean(square(in[0])); }, {0, 256});
  std::vector<Ref> inputs{loss};
  std::vector<std::string> names;
  for (const auto& weight : weights) {
    inputs.push_back(weight);
    names.push_back(fmt::format("${}", names.size() + 1));
  }
  auto wanted = add_all("gradients", fmt::format("gradients($0, {{{}}})", fmt::join(names, ", ")), inputs,
                        [](const Tensors& in) { return gradients(in[0], std::span(in).subspan(1)); }, {-100, 100});
  wanted.push_back(loss);
  program_.lets_go = true;
  program_.evaluations.push_back({program_.steps.size(), std::move(wanted)});
}

}  // namespace clnet::fuzz
