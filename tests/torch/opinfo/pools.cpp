// Pooling.
#include "tests/torch/opinfo/adapters.h"
#include "tests/torch/opinfo/axes.h"

namespace clnet::torch::opinfo {

namespace {

/// A list that is empty or absent: the kernel's size.
template <std::size_t axes>
std::optional<typename Of<axes>::Size> stride_of(const Args& in, int at) {
  const auto given = in.maybe_integers(at, "stride");
  if (!given || given->empty()) return std::nullopt;
  return Of<axes>::size(in.axes(at, "stride", axes, 1));
}

template <std::size_t axes, class Options, class WithIndices>
Adapter max_pooled(WithIndices pool) {
  return [pool](const Args& in) -> Outputs {
    Options options;
    options.stride = stride_of<axes>(in, 2);
    options.padding = Of<axes>::around(in.axes(3, "padding", axes, 0));
    options.dilation = Of<axes>::size(in.axes(4, "dilation", axes, 1));
    options.ceil_mode = in.flag(5, "ceil_mode");
    const auto result = pool(in.tensor(0), Of<axes>::size(in.axes(1, "kernel_size", axes, 1)), options);
    return in.flag(6, "return_indices") ? Outputs{result.y, result.indices} : Outputs{result.y};
  };
}

template <std::size_t axes, class Options, class Function>
Adapter averaged(Function pool) {
  return one([pool](const Args& in) {
    Options options;
    options.stride = stride_of<axes>(in, 2);
    options.padding = Of<axes>::around(in.axes(3, "padding", axes, 0));
    options.ceil_mode = in.flag(4, "ceil_mode");
    options.count_include_pad = in.flag(5, "count_include_pad", true);
    if (in.find(6, "divisor_override") != nullptr) options.divisor_override = in.integer(6, "divisor_override");
    return pool(in.tensor(0), Of<axes>::size(in.axes(1, "kernel_size", axes, 1)), options);
  });
}

template <std::size_t axes, class Options, class Function>
Adapter unpooled(Function unpool) {
  return one([unpool](const Args& in) {
    Options options;
    options.stride = stride_of<axes>(in, 3);
    options.padding = Of<axes>::around(in.axes(4, "padding", axes, 0));
    if (auto size = in.maybe_integers(5, "output_size")) {
      size->erase(size->begin(), size->end() - static_cast<std::ptrdiff_t>(axes));
      options.output_size = Of<axes>::size(*size);
    }
    return unpool(in.tensor(0), in.tensor(1, "indices"), Of<axes>::size(in.axes(2, "kernel_size", axes, 1)), options);
  });
}

template <std::size_t axes, class Function>
Adapter adaptive_mean(Function pool) {
  return one([pool](const Args& in) { return pool(in.tensor(0), Of<axes>::size(in.axes(1, "output_size", axes, -1))); });
}

template <std::size_t axes, class WithIndices>
Adapter adaptive_max(WithIndices pool) {
  return [pool](const Args& in) -> Outputs {
    const auto result = pool(in.tensor(0), Of<axes>::size(in.axes(1, "output_size", axes, -1)));
    return in.flag(2, "return_indices") ? Outputs{result.y, result.indices} : Outputs{result.y};
  };
}

}  // namespace

void add_pools(Adapters& adapters) {
  const std::string functional = "nn.functional.";
  adapters[functional + "max_pool1d"] = max_pooled<1, MaxPool1dOptions>(max_pool1d_with_indices);
  adapters[functional + "max_pool2d"] = max_pooled<2, MaxPool2dOptions>(max_pool2d_with_indices);
  adapters[functional + "max_pool3d"] = max_pooled<3, MaxPool3dOptions>(max_pool3d_with_indices);
  adapters[functional + "avg_pool1d"] = averaged<1, AvgPool1dOptions>(avg_pool1d);
  adapters[functional + "avg_pool2d"] = averaged<2, AvgPool2dOptions>(avg_pool2d);
  adapters[functional + "avg_pool3d"] = averaged<3, AvgPool3dOptions>(avg_pool3d);
  adapters[functional + "max_unpool1d"] = unpooled<1, MaxUnpool1dOptions>(max_unpool1d);
  adapters[functional + "max_unpool2d"] = unpooled<2, MaxUnpool2dOptions>(max_unpool2d);
  adapters[functional + "max_unpool3d"] = unpooled<3, MaxUnpool3dOptions>(max_unpool3d);
  adapters[functional + "adaptive_avg_pool1d"] = adaptive_mean<1>(adaptive_avg_pool1d);
  adapters[functional + "adaptive_avg_pool2d"] = adaptive_mean<2>(adaptive_avg_pool2d);
  adapters[functional + "adaptive_avg_pool3d"] = adaptive_mean<3>(adaptive_avg_pool3d);
  adapters[functional + "adaptive_max_pool1d"] = adaptive_max<1>(adaptive_max_pool1d_with_indices);
  adapters[functional + "adaptive_max_pool2d"] = adaptive_max<2>(adaptive_max_pool2d_with_indices);
  adapters[functional + "adaptive_max_pool3d"] = adaptive_max<3>(adaptive_max_pool3d_with_indices);
}

}  // namespace clnet::torch::opinfo
