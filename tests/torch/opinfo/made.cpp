// Functions that make tensors.
#include <cmath>

#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

namespace {

/// What PyTorch takes for a number that names no dtype.
Dtype dtype_of_number(const json* value) {
  if (value != nullptr && value->is_boolean()) return Dtype::boolean;
  return value != nullptr && value->is_number_integer() ? Dtype::i64 : Dtype::f32;
}

Adapter made(double value) {
  return one([value](const Args& in) {
    in.without_effect({"requires_grad"});
    return full(Shape(in.sizes(0)), value, in.dtype(-1, "dtype", Dtype::f32));
  });
}
Adapter made_like(double value) {
  return one([value](const Args& in) {
    in.without_effect({"requires_grad"});
    return full(in.tensor(0).shape(), value, in.dtype(-1, "dtype", in.tensor(0).dtype()));
  });
}
Adapter made_newly(double value) {
  return one([value](const Args& in) {
    in.without_effect({"requires_grad"});
    return full(Shape(in.sizes(1)), value, in.dtype(-1, "dtype", in.tensor(0).dtype()));
  });
}

Tensor counted(const Args& in) {
  in.without_effect({"requires_grad"});
  const bool one_number = in.find(1, "end") == nullptr;
  const double start = one_number ? 0 : in.number(0, "start"), end = in.number(one_number ? 0 : 1, "end");
  const double step = in.number(2, "step", 1);
  auto usual = Dtype::i64;
  for (int at = 0; at < in.count(); ++at)
    if (dtype_of_number(in.find(at, "")) == Dtype::f32) usual = Dtype::f32;
  return arange(static_cast<std::int64_t>(std::ceil((end - start) / step)), start, step, in.dtype(-1, "dtype", usual));
}

}  // namespace

void add_made(Adapters& adapters) {
  adapters["zeros"] = made(0);
  adapters["ones"] = made(1);
  adapters["zeros_like"] = made_like(0);
  adapters["ones_like"] = made_like(1);
  adapters["new_zeros"] = made_newly(0);
  adapters["new_ones"] = made_newly(1);
  adapters["full"] = one([](const Args& in) {
    in.without_effect({"requires_grad"});
    return full(Shape(in.integers(0, "size")), in.number(1, "fill_value"),
                in.dtype(-1, "dtype", dtype_of_number(in.find(1, "fill_value"))));
  });
  for (const char* name : {"full_like", "fill"})
    adapters[name] = one([value = std::string(name) == "fill" ? "value" : "fill_value"](const Args& in) {
      const auto x = in.tensor(0);
      const auto number = in.is_tensor(1, value) ? in.tensor(1, value).item<double>() : in.number(1, value);
      return full(x.shape(), number, in.dtype(-1, "dtype", x.dtype()));
    });
  adapters["new_full"] = one([](const Args& in) {
    return full(Shape(in.integers(1, "size")), in.number(2, "fill_value"), in.dtype(-1, "dtype", in.tensor(0).dtype()));
  });
  adapters["scalar_tensor"] = one([](const Args& in) {
    in.without_effect({"requires_grad"});
    return Tensor::scalar(in.number(0, "s"), in.dtype(-1, "dtype", Dtype::f32));
  });
  adapters["eye"] = one([](const Args& in) {
    in.without_effect({"requires_grad"});
    return eye(in.integer(0, "n"), in.integer(1, "m", -1), in.dtype(-1, "dtype", Dtype::f32));
  });
  adapters["arange"] = one(counted);
  adapters["linspace"] = one([](const Args& in) {
    in.without_effect({"requires_grad"});
    const auto end_of = [&](int at, const char* name) {
      return in.is_tensor(at, name) ? in.tensor(at, name).item<double>() : in.number(at, name);
    };
    return linspace(end_of(0, "start"), end_of(1, "end"), in.integer(2, "steps"), in.dtype(-1, "dtype", Dtype::f32));
  });
}

}  // namespace clnet::torch::opinfo
