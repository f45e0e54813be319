// Items of clnet-bench that tools/dev/compare_peers.py sets beside PyTorch's functions: order, counts, running values, selection,
// sampling and special functions.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clnet/clnet.h"
#include "tools/bench_items.h"

namespace clnet::bench {

namespace {

using Inputs = std::vector<Tensor>;

/// A function of inputs, of which the first gets a gradient in a -train item; and the bytes that must move forward, in MiB.
struct FunctionCase {
  std::string name;
  double mib;
  std::function<Inputs()> inputs;
  std::function<Tensor(const Inputs&)> call;
  bool gradient = false;
};

const Shape square_shape{1024, 1024};

std::function<Inputs()> square_of_floats() {
  return [] { return Inputs{rand(square_shape)}; };
}
/// Indices below 1024 beside it.
std::function<Inputs()> square_and_indices() {
  return [] { return Inputs{rand(square_shape), randint(0, 1024, square_shape)}; };
}
std::function<Inputs()> two_squares() {
  return [] { return Inputs{rand(square_shape), rand(square_shape)}; };
}

/// Corners of boxes up to 10 % of `side` large.
Tensor random_boxes(std::int64_t count, double side) {
  const Tensor corner = rand({count, 2}) * (0.9 * side), extent = rand({count, 2}) * (0.1 * side);
  return concat({corner, corner + extent}, 1);
}

std::vector<FunctionCase> functions_of_order() {
  const auto x = square_of_floats();
  return {
      {"sort-dim1", 16, x, [](const Inputs& in) { return sort(in[0], 1).values; }, true},
      {"sort-dim0", 16, x, [](const Inputs& in) { return sort(in[0], 0).values; }, true},
      {"sort-whole", 16, x, [](const Inputs& in) { return sort(reshape(in[0], {1 << 20}), 0).values; }},
      {"topk-10", 4, x, [](const Inputs& in) { return topk(in[0], 10, 1).values; }, true},
      {"median", 4, x, [](const Inputs& in) { return median(in[0], 1).values; }, true},
      {"mode", 4, x, [](const Inputs& in) { return mode(in[0], 1).values; }},
      {"quantile", 4, x, [](const Inputs& in) { return quantile(in[0], 0.3, 1); }, true},
      {"searchsorted", 12,
       [] {
         return Inputs{sort(rand({65536}), 0).values, rand(square_shape)};
       },
       [](const Inputs& in) { return searchsorted(in[0], in[1]); }},
      {"isin", 5,
       [] {
         return Inputs{randint(0, 65536, square_shape, Dtype::i32), randint(0, 65536, {1024}, Dtype::i32)};
       },
       [](const Inputs& in) { return isin(in[0], in[1]); }},
      {"argmax-dim1", 4, x, [](const Inputs& in) { return argmax(in[0], 1); }},
      {"argmax-dim0", 4, x, [](const Inputs& in) { return argmax(in[0], 0); }},
  };
}

std::vector<FunctionCase> functions_of_counts() {
  return {
      {"bincount", 8, [] { return Inputs{randint(0, 1024, {1 << 20})}; }, [](const Inputs& in) { return bincount(in[0]); }},
      {"histc", 4, square_of_floats(), [](const Inputs& in) { return histc(in[0], 100, 0, 1); }},
      {"nonzero", 12, [] { return Inputs{greater(rand(square_shape), 0.5)}; }, [](const Inputs& in) { return nonzero(in[0]); }},
      {"masked-select", 7,
       [] {
         return Inputs{rand(square_shape), greater(rand(square_shape), 0.5)};
       },
       [](const Inputs& in) { return masked_select(in[0], in[1]); }, true},
      {"unique-floats", 8, square_of_floats(), [](const Inputs& in) { return unique(in[0]).values; }},
      {"unique-integers", 8, [] { return Inputs{randint(0, 1024, {1 << 20})}; },
       [](const Inputs& in) { return unique(in[0]).values; }},
      {"unique-consecutive", 8, [] { return Inputs{sort(randint(0, 65536, {1 << 20}), 0).values}; },
       [](const Inputs& in) { return unique_consecutive(in[0]).values; }},
      {"one-hot", 16, [] { return Inputs{randint(0, 64, {65536})}; },
       [](const Inputs& in) { return one_hot(in[0], 64, Dtype::i64); }},
      {"nms", 0.1,
       [] {
         return Inputs{random_boxes(4096, 1000), rand({4096})};
       },
       [](const Inputs& in) { return nms(in[0], in[1], 0.5); }},
  };
}

std::vector<FunctionCase> running_functions() {
  const auto x = square_of_floats();
  std::vector<FunctionCase> list;
  for (const int dim : {1, 0}) {
    const auto name = [&](const char* function) { return fmt::format("{}-dim{}", function, dim); };
    list.push_back({name("cumsum"), 8, x, [=](const Inputs& in) { return cumsum(in[0], dim); }, true});
    list.push_back({name("cumprod"), 8, x, [=](const Inputs& in) { return cumprod(in[0], dim); }, true});
    list.push_back({name("cummax"), 8, x, [=](const Inputs& in) { return cummax(in[0], dim).values; }, true});
    list.push_back({name("logcumsumexp"), 8, x, [=](const Inputs& in) { return logcumsumexp(in[0], dim); }, true});
  }
  list.push_back({"cumsum-whole", 8, x, [](const Inputs& in) { return cumsum(reshape(in[0], {1 << 20}), 0); }});
  list.push_back({"cummax-whole", 8, x, [](const Inputs& in) { return cummax(reshape(in[0], {1 << 20}), 0).values; }});
  list.push_back({"logcumsumexp-whole", 8, x, [](const Inputs& in) { return logcumsumexp(reshape(in[0], {1 << 20}), 0); }});
  return list;
}

std::vector<FunctionCase> functions_of_indices() {
  const auto both = square_and_indices();
  const auto with_source = [] { return Inputs{rand(square_shape), randint(0, 1024, square_shape), rand(square_shape)}; };
  const auto rows = [] { return Inputs{rand(square_shape), randint(0, 1024, {512}), rand({512, 1024})}; };
  const auto places = [] { return Inputs{rand(square_shape), randint(0, 1024, {1 << 18, 2}), rand({1 << 18})}; };
  return {
      {"take-along-dim", 16, both, [](const Inputs& in) { return take_along_dim(in[0], in[1], 1); }, true},
      {"index-fill", 8, rows, [](const Inputs& in) { return index_fill(in[0], 0, in[1], 2); }, true},
      {"index-copy", 10, rows, [](const Inputs& in) { return index_copy(in[0], 0, in[1], in[2]); }, true},
      {"index-add", 10, rows, [](const Inputs& in) { return index_add(in[0], 0, in[1], in[2]); }, true},
      {"scatter", 20, with_source, [](const Inputs& in) { return scatter(in[0], 1, in[1], in[2]); }, true},
      {"scatter-add", 20, with_source, [](const Inputs& in) { return scatter_add(in[0], 1, in[1], in[2]); }, true},
      {"scatter-reduce-amax", 20, with_source,
       [](const Inputs& in) { return scatter_reduce(in[0], 1, in[1], in[2], ScatterReduction::amax); }, true},
      {"gather-nd", 6, places, [](const Inputs& in) { return gather_nd(in[0], in[1]); }, true},
      {"scatter-nd", 13, places, [](const Inputs& in) { return scatter_nd(in[0], in[1], in[2]); }, true},
  };
}

std::vector<FunctionCase> other_functions() {
  const auto x = square_of_floats();
  const auto integers = [] {
    return Inputs{randint(0, 1 << 20, square_shape, Dtype::i32), randint(0, 1 << 20, square_shape, Dtype::i32)};
  };
  const auto grid = [](GridSampleOptions options) {
    return [=](const Inputs& in) { return grid_sample(in[0], in[1], options); };
  };
  const auto images = [] { return Inputs{rand({4, 16, 128, 128}), rand({4, 128, 128, 2}) * 2.0 - 1.0}; };
  return {
      {"grid-sample-bilinear", 8.5, images, grid({}), true},
      {"grid-sample-bicubic", 8.5, images, grid({.mode = Interpolation::bicubic}), true},
      {"affine-grid", 8,
       [] {
         return Inputs{rand({64, 2, 3})};
       },
       [](const Inputs& in) {
         return affine_grid(in[0], {64, 1, 128, 128});
       },
       true},
      {"roi-align", 15,
       [] {
         return Inputs{rand({4, 64, 56, 56}), concat({cast(randint(0, 4, {256, 1}), Dtype::f32), random_boxes(256, 448)}, 1)};
       },
       [](const Inputs& in) {
         return roi_align(in[0], in[1], 7, {.spatial_scale = 0.125, .sampling_ratio = 2, .aligned = true});
       },
       true},
      {"tensordot", 1.5,
       [] {
         return Inputs{rand({512, 16, 32}), rand({32, 16, 512})};
       },
       [](const Inputs& in) {
         return tensordot(in[0], in[1], {1, 2}, {1, 0});
       },
       true},
      {"cdist", 1.2,
       [] {
         return Inputs{rand({512, 64}), rand({512, 64})};
       },
       [](const Inputs& in) { return cdist(in[0], in[1]); }, true},
      {"kron", 4,
       [] {
         return Inputs{rand({32, 32}), rand({32, 32})};
       },
       [](const Inputs& in) { return kron(in[0], in[1]); }, true},
      {"cross", 12,
       [] {
         return Inputs{rand({349525, 3}), rand({349525, 3})};
       },
       [](const Inputs& in) { return cross(in[0], in[1]); }, true},
      {"diff", 8, x, [](const Inputs& in) { return diff(in[0]); }, true},
      {"roll", 8, x,
       [](const Inputs& in) {
         return roll(in[0], {100, 100}, {0, 1});
       },
       true},
      {"repeat-interleave", 8,
       [] {
         return Inputs{rand({512, 1024})};
       },
       [](const Inputs& in) { return repeat_interleave(in[0], 2, 1); }, true},
      {"tril", 8, x, [](const Inputs& in) { return tril(in[0]); }, true},
      {"erfinv", 8, x, [](const Inputs& in) { return erfinv(in[0]); }, true},
      {"lgamma", 8, x, [](const Inputs& in) { return lgamma(in[0]); }, true},
      {"digamma", 8, x, [](const Inputs& in) { return digamma(in[0]); }},
      {"logit", 8, x, [](const Inputs& in) { return logit(in[0]); }, true},
      {"logaddexp", 12, two_squares(), [](const Inputs& in) { return logaddexp(in[0], in[1]); }, true},
      {"hypot", 12, two_squares(), [](const Inputs& in) { return hypot(in[0], in[1]); }, true},
      {"xlogy", 12, two_squares(), [](const Inputs& in) { return xlogy(in[0], in[1]); }, true},
      {"sinc", 8, x, [](const Inputs& in) { return sinc(in[0]); }, true},
      {"bitwise-and", 12, integers, [](const Inputs& in) { return bitwise_and(in[0], in[1]); }},
  };
}

Item result_item(const FunctionCase& function) {
  const double bytes = function.mib * (1 << 20);
  return {"function-" + function.name + "-forward", bytes, "byte", 0, bytes, [function]() -> Run {
            const auto inputs = function.inputs();
            eval(inputs);
            return [=] { function.call(inputs).eval(); };
          }};
}

/// The result and the first input's gradient.
Item gradient_item(const FunctionCase& function) {
  const double bytes = 2 * function.mib * (1 << 20);
  return {"function-" + function.name + "-train", bytes, "byte", 0, bytes, [function]() -> Run {
            const auto inputs = function.inputs();
            eval(inputs);
            const Tensor g = rand(function.call(inputs).shape());
            g.eval();
            return [=] {
              const std::vector<Tensor> y{function.call(inputs)}, with{g}, of{inputs[0]};
              eval({y[0], gradients(y, with, of)[0]});
            };
          }};
}

}  // namespace

std::vector<Item> function_items() {
  std::vector<Item> list;
  for (const auto& group :
       {functions_of_order(), functions_of_counts(), running_functions(), functions_of_indices(), other_functions()})
    for (const auto& function : group) {
      list.push_back(result_item(function));
      if (function.gradient) list.push_back(gradient_item(function));
    }
  return list;
}

}  // namespace clnet::bench
