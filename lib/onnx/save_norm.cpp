// How normalizations are written.
#include "lib/onnx/exporter.h"
#include "lib/onnx/write.h"

namespace clnet::onnx {
namespace {

std::string filled(SaveCall& call, const ExtentList& extents, double value, Dtype dtype) {
  std::vector<std::int64_t> numbers;
  for (const auto& extent : extents) {
    if (!extent.fixed()) return call.expand(call.scalar(value, dtype), extents);
    numbers.push_back(extent.constant);
  }
  const Shape shape(numbers);
  return call.tensor(HostTensor::of(type_of(dtype), shape, std::vector<double>(static_cast<std::size_t>(shape.numel()), value)));
}

/// Inputs: x, mean, var; weight, bias.
void batch_norm(SaveCall& call) {
  const ExtentList channels{call.shape(0)[1]};
  const auto statistic = call.dtype(1);
  const auto of = [&](std::size_t input, double otherwise) {
    return call.has(input) ? call.in_as(input, call.dtype()) : filled(call, channels, otherwise, call.dtype());
  };
  std::vector<std::string> attributes{write_attribute("epsilon", call.number("eps"))};
  // Of the running statistics in training; nothing computes with it here.
  if (call.has_field("kept")) attributes.push_back(write_attribute("momentum", call.number("kept")));
  call.give(call.op("BatchNormalization", {call.in(0), of(3, 1), of(4, 0), call.in_as(1, statistic), call.in_as(2, statistic)},
                    std::move(attributes)));
}

void layer_norm(SaveCall& call) {
  const auto dims = call.integer("dims");
  const auto axis = call.rank() - dims;
  const auto x = call.shape(0);
  const ExtentList inner(x.begin() + axis, x.end());
  const bool weighted = call.flag("weighted"), biased = call.flag("biased");
  const auto scale = weighted ? call.in_as(1, call.dtype()) : filled(call, inner, 1, call.dtype());
  std::vector<std::string> inputs{call.in(0), scale};
  if (biased) inputs.push_back(call.in_as(weighted ? 2 : 1, call.dtype()));
  const auto all =
      call.ops("LayerNormalization", inputs, {write_attribute("axis", axis), write_attribute("epsilon", call.number("eps"))}, 1);
  call.give(all[0]);
}

void softmax_of(SaveCall& call) {
  const auto op = call.name() == "softmax" ? "Softmax" : "LogSoftmax";
  if (call.rank() == 0) {
    const auto line = call.reshape(call.in(0), fixed({1}));
    return call.give(call.reshape(call.op(op, {line}), {}));
  }
  call.give(call.op(op, {call.in(0)}, {write_attribute("axis", call.integer("dim"))}));
}

bool is_affine(const SaveCall& call) {
  return call.has(1) && call.has(2) && call.dtype(1) == call.dtype(0) && call.dtype(2) == call.dtype(0);
}
/// Before operator set 22 none of bf16.
bool fits_instance_norm(const SaveCall& call) { return is_affine(call) && (call.opset() >= 22 || call.dtype() != Dtype::bf16); }
bool fits_group_norm(const SaveCall& call) { return call.opset() >= 21 && is_affine(call); }

void group_norm_of(SaveCall& call) {
  call.give(call.op("GroupNormalization", {call.in(0), call.in(1), call.in(2)},
                    {write_attribute("epsilon", call.number("eps")), write_attribute("num_groups", call.integer("groups"))}));
}
void instance_norm_of(SaveCall& call) {
  call.give(
      call.op("InstanceNormalization", {call.in(0), call.in(1), call.in(2)}, {write_attribute("epsilon", call.number("eps"))}));
}

bool fits_rms_norm(const SaveCall& call) { return call.opset() >= 23 && call.has(1) && call.dtype(1) == call.dtype(0); }
void rms_norm_of(SaveCall& call) {
  call.give(call.op("RMSNormalization", {call.in(0), call.in(1)},
                    {write_attribute("axis", -call.integer("dims")), write_attribute("epsilon", call.number("eps"))}));
}

void local_response(SaveCall& call) {
  call.give(call.op("LRN", {call.in(0)},
                    {write_attribute("size", call.integer("size")), write_attribute("alpha", call.number("alpha")),
                     write_attribute("beta", call.number("beta")), write_attribute("bias", call.number("k"))}));
}
bool is_f32(const SaveCall& call) { return call.dtype() == Dtype::f32; }

void only_training(SaveCall& call) { call.refuse("is of training, and only inference is written"); }

}  // namespace

std::vector<Saver> norm_savers() {
  return {{"batch_norm_inference", batch_norm},
          {"layer_norm", layer_norm},
          {"softmax", softmax_of},
          {"log_softmax", softmax_of},
          {"group_norm", group_norm_of, fits_group_norm},
          {"instance_norm", instance_norm_of, fits_instance_norm},
          {"rms_norm", rms_norm_of, fits_rms_norm},
          {"local_response_norm", local_response, is_f32},
          {"batch_norm", only_training},
          {"batch_norm_backward", only_training},
          {"layer_norm_backward", only_training},
          {"layer_norm_parameters", only_training},
          {"optimizer_update", only_training},
          {"cross_entropy_backward", only_training},
          {"conv2d_backward_weights", only_training},
          {"max_pool2d_backward", only_training},
          {"avg_pool2d_backward", only_training},
          {"attention_backward", only_training},
          {"recurrent_backward", only_training}};
}

}  // namespace clnet::onnx
