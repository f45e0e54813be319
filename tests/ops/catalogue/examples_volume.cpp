// Examples of convolution and pooling of lines and volumes.
#include "tests/cases/conv/conv.h"
#include "tests/cases/pool/pool.h"
#include "tests/ops/catalogue/examples.h"

namespace clnet::testing {

namespace {

using Tensors = std::vector<Tensor>;

Example pooled(const std::string& name, const Shape& x, std::function<Tensor(const Tensor&)> run,
               std::function<Array(const Array&)> reference) {
  return {name, {{x}}, [=](const Tensors& in) { return run(in[0]); }, [=](const Arrays& in) { return reference(in[0]); }};
}

/// Pooling by windows of 2 along each axis, to 3 elements, and of everything.
template <class Size>
void add_pools(std::vector<Example>& entries, const std::string& axes, const Shape& x, Size two, Size three, Size one,
               Tensor (*average)(const Tensor&, Size), Tensor (*lp)(const Tensor&, Size),
               MaxPoolResult (*largest)(const Tensor&, Size), Tensor (*adaptive_average)(const Tensor&, Size),
               MaxPoolResult (*adaptive_largest)(const Tensor&, Size), Tensor (*unpool)(const Tensor&, const Tensor&, Size)) {
  const auto plain = [](Size size) {
    std::vector<PoolAxis> result;
    for (auto extent : numbers(size)) result.push_back({extent, extent});
    return result;
  };
  const auto to = [](Size size) { return adaptive_lines(size); };
  const auto add = [&](const std::string& name, auto run, auto reference) { entries.push_back(pooled(name, x, run, reference)); };
  const auto windows = plain(two);
  add(
      "max_pool" + axes + "_with_indices", [=](const Tensor& t) { return largest(t, two).y; },
      [=](const Array& a) { return max_pool_reference(a, windows)[0]; });
  add(
      "adaptive_max_pool" + axes + "_with_indices", [=](const Tensor& t) { return adaptive_largest(t, three).y; },
      [=](const Array& a) { return max_pool_reference(a, to(three))[0]; });
  auto extents = x.extents();
  for (std::size_t d = 2; d < extents.size(); ++d) extents[d] *= 2;
  const Shape twice(extents);
  entries.push_back({"max_unpool" + axes,
                     {{x}, {x, 0, static_cast<double>(twice.numel() / (x[0] * x[1]) - 1), Dtype::i32}},
                     [=](const Tensors& in) { return unpool(in[0], in[1], two); },
                     [=](const Arrays& in) { return max_unpool_reference(in[0], in[1], twice); }});
  add(
      "lp_pool" + axes, [=](const Tensor& t) { return lp(t, two); },
      [=](const Array& a) { return lp_pool_reference(a, 2, windows); });
  if (axes == "2d") return;
  add(
      "avg_pool" + axes, [=](const Tensor& t) { return average(t, two); },
      [=](const Array& a) { return avg_pool_reference(a, windows, true); });
  add(
      "adaptive_avg_pool" + axes, [=](const Tensor& t) { return adaptive_average(t, three); },
      [=](const Array& a) { return avg_pool_reference(a, to(three), true); });
  add(
      "global_avg_pool" + axes, [=](const Tensor& t) { return axes == "1d" ? global_avg_pool1d(t) : global_avg_pool3d(t); },
      [=](const Array& a) { return avg_pool_reference(a, to(one), true); });
  add(
      "max_pool" + axes, [=](const Tensor& t) { return axes == "1d" ? max_pool1d(t, 2) : max_pool3d(t, 2); },
      [=](const Array& a) { return max_pool_reference(a, windows)[0]; });
  add(
      "adaptive_max_pool" + axes,
      [=](const Tensor& t) { return axes == "1d" ? adaptive_max_pool1d(t, 3) : adaptive_max_pool3d(t, 3); },
      [=](const Array& a) { return max_pool_reference(a, to(three))[0]; });
  add(
      "global_max_pool" + axes, [=](const Tensor& t) { return axes == "1d" ? global_max_pool1d(t) : global_max_pool3d(t); },
      [=](const Array& a) { return max_pool_reference(a, to(one))[0]; });
}

Example convolved(const std::string& name, const Shape& x, const Shape& weight, std::function<Tensor(const Tensors&)> run,
                  std::function<Array(const Arrays&)> reference) {
  return {name, {{x}, {weight}, {{4}}}, std::move(run), std::move(reference)};
}

}  // namespace

std::vector<Example> volume_examples() {
  const Shape line{2, 3, 7}, line_weight{4, 3, 3}, volume{2, 3, 4, 5, 5}, volume_weight{4, 3, 3, 3, 3};
  const ConvLines one(1), three(3);
  std::vector<Example> entries{
      convolved(
          "conv1d", line, line_weight, [](const Tensors& in) { return conv1d(in[0], in[1], in[2]); },
          [=](const Arrays& in) { return conv_reference(in, one, 1)[0]; }),
      convolved(
          "conv3d", volume, volume_weight, [](const Tensors& in) { return conv3d(in[0], in[1], in[2]); },
          [=](const Arrays& in) { return conv_reference(in, three, 1)[0]; }),
      convolved(
          "conv_transpose1d", line, {3, 4, 3}, [](const Tensors& in) { return conv_transpose1d(in[0], in[1], in[2]); },
          [=](const Arrays& in) { return conv_transpose_reference(in, one, 1)[0]; }),
      convolved(
          "conv_transpose3d", volume, {3, 4, 3, 3, 3}, [](const Tensors& in) { return conv_transpose3d(in[0], in[1], in[2]); },
          [=](const Arrays& in) { return conv_transpose_reference(in, three, 1)[0]; })};
  using N = std::int64_t;
  using T = const Tensor&;
  add_pools<N>(
      entries, "1d", {2, 3, 8}, 2, 3, 1, [](T x, N k) { return avg_pool1d(x, k); }, [](T x, N k) { return lp_pool1d(x, 2, k); },
      [](T x, N k) { return max_pool1d_with_indices(x, k); }, adaptive_avg_pool1d, adaptive_max_pool1d_with_indices,
      [](T x, T indices, N k) { return max_unpool1d(x, indices, k); });
  add_pools<Pair>(
      entries, "2d", {2, 3, 8, 8}, 2, 3, 1, [](T x, Pair k) { return avg_pool2d(x, k); },
      [](T x, Pair k) { return lp_pool2d(x, 2, k); }, [](T x, Pair k) { return max_pool2d_with_indices(x, k); },
      adaptive_avg_pool2d, adaptive_max_pool2d_with_indices, [](T x, T indices, Pair k) { return max_unpool2d(x, indices, k); });
  add_pools<Triple>(
      entries, "3d", {2, 3, 4, 6, 8}, 2, 3, 1, [](T x, Triple k) { return avg_pool3d(x, k); },
      [](T x, Triple k) { return lp_pool3d(x, 2, k); }, [](T x, Triple k) { return max_pool3d_with_indices(x, k); },
      adaptive_avg_pool3d, adaptive_max_pool3d_with_indices,
      [](T x, T indices, Triple k) { return max_unpool3d(x, indices, k); });
  return entries;
}

}  // namespace clnet::testing
