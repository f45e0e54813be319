#include "lib/exec/elementwise.h"

#include <fmt/format.h>

#include <algorithm>

namespace clnet::exec {

namespace {

/// The output's dimensions with the inputs' strides, merged where every input allows it; outermost first.
struct Loops {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides;  // [input][dimension]
};

Loops merge(const Shape& output, const std::vector<Shape>& inputs) {
  Loops all;
  all.extents = output.extents();
  for (const auto& shape : inputs) {
    std::vector<std::int64_t> strides(all.extents.size(), 0);
    std::int64_t stride = 1;
    for (int back = 1; back <= shape.rank(); ++back) {
      const auto extent = shape[-back];
      if (extent != 1) strides[strides.size() - static_cast<std::size_t>(back)] = stride;
      stride *= extent;
    }
    all.strides.push_back(std::move(strides));
  }

  Loops merged;
  merged.strides.resize(inputs.size());
  for (std::size_t d = 0; d < all.extents.size(); ++d) {
    if (all.extents[d] == 1) continue;
    bool joins = !merged.extents.empty();
    for (std::size_t k = 0; k < inputs.size() && joins; ++k)
      joins = merged.strides[k].back() == all.strides[k][d] * all.extents[d];
    if (joins)
      merged.extents.back() *= all.extents[d];
    else
      merged.extents.push_back(all.extents[d]);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (joins)
        merged.strides[k].back() = all.strides[k][d];
      else
        merged.strides[k].push_back(all.strides[k][d]);
    }
  }
  if (merged.extents.empty()) {
    merged.extents.push_back(1);
    for (auto& strides : merged.strides) strides.push_back(0);
  }
  return merged;
}

}  // namespace

void lower_elementwise(const Op& op, Recorder& recorder) {
  Specs specs;
  std::vector<Shape> shapes;
  for (std::size_t k = 0; k < recorder.input_count(); ++k) {
    specs.push_back(recorder.spec(recorder.input(k)));
    shapes.push_back(specs.back().shape);
  }
  const auto& output = recorder.spec(recorder.output()).shape;
  const auto loops = merge(output, shapes);
  const auto rank = loops.extents.size();
  const auto inner = loops.extents.back();
  // With rows long enough to fill work-groups each dimension is one of the range's; otherwise the linear index is taken apart.
  const bool by_range = rank == 1 || (rank <= 3 && inner >= 64);

  const auto letter = [](std::size_t k) { return static_cast<char>('a' + k); };
  std::string parameters = "OUT(y)", loads, index;
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (recorder.host_scalar(k)) {
      parameters += fmt::format(", SCALAR({})", letter(k));
      continue;
    }
    parameters += fmt::format(", IN(in{})", k);
    std::string at;
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (loops.strides[k][d] != 0) at += fmt::format("i{} * s{}_{} + ", d, k, d);
    at += loops.strides[k].back() != 0 ? fmt::format("i{}", rank - 1) : "0";
    loads += fmt::format("  const VALUE(in{0}) {1} = LOAD(in{0}, {2});\n", k, letter(k), at);
  }
  for (std::size_t p = 0; p < op.parameters().size(); ++p) parameters += fmt::format(", const float p{}", p);
  for (std::size_t d = 0; d < rank; ++d) parameters += fmt::format(", const int n{}", d);
  for (std::size_t k = 0; k < specs.size(); ++k)
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (!recorder.host_scalar(k) && loops.strides[k][d] != 0) parameters += fmt::format(", const int s{}_{}", k, d);

  if (by_range) {
    std::string inside, linear;
    for (std::size_t d = 0; d < rank; ++d) {
      index += fmt::format("  const int i{} = (int)get_global_id({});\n", d, rank - 1 - d);
      inside += fmt::format("{}i{} < n{}", d ? " && " : "", d, d);
      linear = d ? fmt::format("({}) * n{} + i{}", linear, d, d) : "i0";
    }
    index += fmt::format("  if (!({})) return;\n  const int i = {};\n", inside, linear);
  } else {
    std::string total;
    for (std::size_t d = 0; d < rank; ++d) total += fmt::format("{}n{}", d ? " * " : "", d);
    index += fmt::format("  const int i = (int)get_global_id(0);\n  if (i >= {}) return;\n  int rest = i;\n", total);
    for (std::size_t d = rank; d-- > 0;)
      index += d ? fmt::format("  const int i{0} = REMAINDER(rest, n{0});\n  rest /= n{0};\n", d) : "  const int i0 = rest;\n";
  }

  const auto function = fmt::format("{}_elementwise", op.name());
  auto source = fmt::format("#include \"clnet.clh\"\n\nkernel void {}({}) {{\n{}{}  STORE(y, i, {});\n}}\n", function, parameters,
                            index, loads, op.expr(specs));
  auto& launch = recorder.generated(op.name(), std::move(source), function);
  launch.out("y", recorder.output());
  for (std::size_t k = 0; k < specs.size(); ++k) {
    if (recorder.host_scalar(k))
      launch.scalar(std::string(1, letter(k)), recorder.input(k));
    else
      launch.in(fmt::format("in{}", k), recorder.input(k));
  }
  for (float parameter : op.parameters()) launch.arg_float(parameter);
  for (auto extent : loops.extents) launch.arg(extent);
  for (std::size_t k = 0; k < specs.size(); ++k)
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (!recorder.host_scalar(k) && loops.strides[k][d] != 0) launch.arg(loops.strides[k][d]);

  const auto group = static_cast<std::int64_t>(std::min<std::size_t>(256, recorder.device().max_work_group_size));
  if (!by_range || rank == 1)
    launch.range({output.numel()}, {group});
  else if (rank == 2)
    launch.range({inner, loops.extents[0]}, {group, 1});
  else
    launch.range({inner, loops.extents[1], loops.extents[0]}, {group, 1, 1});
  launch.detail(to_string(output)).flops(static_cast<double>(output.numel()));
}

}  // namespace clnet::exec
