// Kernel: an operation from a user's source.
#include "clnet/kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "clnet/error.h"
#include "clnet/ops.h"
#include "lib/cl/split_launch.h"
#include "lib/exec/launch/recorder.h"
#include "lib/graph/op.h"
#include "lib/ops/kernel_source.h"

namespace clnet {

using Kind = ops::KernelParameter::Kind;

struct KernelDefinition {
  std::string name, source;
  std::vector<ops::KernelParameter> parameters;
  std::map<std::string, double, std::less<>> scalars;
  Kernel::Gradient gradient;
  Kernel::Outputs outputs;
  Kernel::Range range;
  std::vector<std::int64_t> local;
  bool zeroed = false;

  std::size_t count(Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.kind == kind; }));
  }
  std::string inputs_text() const {
    std::vector<std::string> names;
    for (const auto& parameter : parameters)
      if (parameter.kind == Kind::in) names.push_back(parameter.name);
    return fmt::format("{} ({})", names.size(), fmt::join(names, ", "));
  }
  /// The first output is what an unnamed number of elements is of.
  static constexpr std::string_view count_of_first_output = "n";

  /// An extent, or a number of elements, that a parameter takes by its name: of a tensor, by its number among inputs or outputs.
  struct Extent {
    bool of_output = false;
    std::size_t tensor = 0;
    std::optional<int> dim;  ///< empty: all elements
  };
  std::optional<Extent> extent(const ops::KernelParameter& parameter) const {
    if (parameter.kind != Kind::integer && parameter.kind != Kind::unsigned_integer) return std::nullopt;
    if (scalars.contains(parameter.name)) return std::nullopt;
    if (parameter.name == count_of_first_output) return Extent{true, 0, std::nullopt};
    std::size_t seen_inputs = 0, seen_outputs = 0;
    for (const auto& tensor : parameters) {
      if (tensor.kind != Kind::in && tensor.kind != Kind::out) continue;
      const bool is_output = tensor.kind == Kind::out;
      auto& number = is_output ? seen_outputs : seen_inputs;
      if (parameter.name == tensor.name + "_count") return Extent{is_output, number, std::nullopt};
      if (const auto prefix = tensor.name + "_size"; parameter.name.starts_with(prefix)) {
        const auto digits = std::string_view(parameter.name).substr(prefix.size());
        if (digits.size() == 1 && digits[0] >= '0' && digits[0] <= '9') return Extent{is_output, number, digits[0] - '0'};
      }
      ++number;
    }
    return std::nullopt;
  }
  bool is_scalar(const ops::KernelParameter& parameter) const {
    return parameter.kind != Kind::in && parameter.kind != Kind::out && !extent(parameter);
  }
};

namespace {

class KernelOp : public Op {
 public:
  explicit KernelOp(std::shared_ptr<const KernelDefinition> definition, std::vector<std::int64_t> global)
      : definition_(std::move(definition)), global_(std::move(global)) {}
  std::string_view name() const override { return definition_->name; }
  Precision precision() const override { return Precision::own; }
  Fields fields() const override {
    Fields result{{"source", definition_->source}, {"global", global_}, {"local", definition_->local}};
    // Values of scalars are inputs, behind the tensors.
    for (const auto& [scalar, value] : definition_->scalars) result.emplace_back(scalar, true);
    result.emplace_back("zeroed", definition_->zeroed);
    return result;
  }

  Specs infer(const Specs& inputs) const override {
    const auto& d = *definition_;
    const auto wanted = d.count(Kind::out);
    if (!d.outputs) return Specs(wanted, inputs.at(0));
    auto outputs = d.outputs(tensors_of(inputs));
    if (outputs.size() != wanted)
      throw Error(fmt::format("kernel {}: outputs() gave {} specs for {} OUT parameters", d.name, outputs.size(), wanted));
    return outputs;
  }

  Tensors vjp(const Tensors& inputs, const Tensors& outputs, const Tensors& gradients) const override {
    const auto& d = *definition_;
    if (!d.gradient) throw Unsupported(fmt::format("kernel {}: has no gradient; give it one with gradient()", d.name));
    auto arrived = gradients;
    for (std::size_t i = 0; i < arrived.size(); ++i)
      if (!arrived[i].defined()) arrived[i] = zeros_like(outputs[i]);
    const auto tensors = tensors_of(inputs);
    auto result = d.gradient(tensors, outputs, std::move(arrived));
    if (result.size() != tensors.size())
      throw Error(fmt::format("kernel {}: its gradient() gave {} tensors for {} inputs", d.name, result.size(), tensors.size()));
    result.resize(inputs.size());
    return result;
  }

  void lower(exec::Recorder& recorder) const override {
    const auto& d = *definition_;
    if (d.zeroed)
      for (std::size_t i = 0; i < d.count(Kind::out); ++i)
        recorder
            .custom("zeros", "#include \"clnet.clh\"\nkernel void zeros(OUT(y)) { STORE(y, get_global_id(0), 0); }\n", "zeros")
            .out("y", recorder.output(i))
            .range({recorder.spec(recorder.output(i)).shape.numel()});
    auto& launch = recorder.custom(d.name, fmt::format("#include \"clnet.clh\"\n#line 1 \"{}\"\n{}", d.name, d.source), d.name);
    const auto elements = recorder.spec(recorder.output()).shape.numel();
    std::size_t inputs = 0, outputs = 0, scalars = d.count(Kind::in);
    bool checks_bounds = false;
    for (const auto& parameter : d.parameters) {
      if (parameter.kind == Kind::in) {
        launch.in(parameter.name, recorder.input(inputs++));
      } else if (parameter.kind == Kind::out) {
        const auto output = recorder.output(outputs++);
        if (d.zeroed)
          launch.inout(parameter.name, output);
        else
          launch.out(parameter.name, output);
      } else if (const auto extent = d.extent(parameter)) {
        const auto& spec = recorder.spec(extent->of_output ? recorder.output(extent->tensor) : recorder.input(extent->tensor));
        launch.arg(extent->dim ? spec.shape[*extent->dim] : spec.shape.numel());
        checks_bounds = checks_bounds || parameter.name == KernelDefinition::count_of_first_output;
      } else {
        launch.scalar(parameter.name, recorder.input(scalars++));
      }
    }
    if (d.range) {
      launch.range(global_, d.local);
      refuse_pieces(launch, recorder.device());
    } else {
      launch.range(std::vector{elements}, checks_bounds ? std::vector<std::int64_t>{64} : std::vector<std::int64_t>{});
    }
  }

 private:
  /// A launch that is enqueued in pieces looks like a whole one to get_global_id() alone.
  void refuse_pieces(const exec::Launch& launch, const DeviceInfo& device) const {
    if (!ocl::is_split(launch.global(), launch.local(), device.max_groups_across)) return;
    for (const char* asks : {"get_group_id", "get_num_groups", "get_global_size", "get_global_offset"})
      if (definition_->source.find(asks) != std::string::npos)
        throw Unsupported(
            fmt::format("kernel {}: the range [{}] has more than {} work-groups in its second or third dimension, which {} takes "
                        "in pieces only, and the kernel calls {}(); put the largest extent first",
                        definition_->name, fmt::join(global_, ", "), device.max_groups_across, device.name, asks));
  }

  /// Without the scalars.
  template <class T>
  std::vector<T> tensors_of(const std::vector<T>& inputs) const {
    const auto count = static_cast<std::ptrdiff_t>(std::min(definition_->count(Kind::in), inputs.size()));
    return {inputs.begin(), inputs.begin() + count};
  }

  std::shared_ptr<const KernelDefinition> definition_;
  std::vector<std::int64_t> global_;
};

/// A leaf that is passed to the kernel by value. The bits of a uint are those of an int.
Tensor scalar_leaf(Kind kind, double value) {
  if (kind == Kind::floating) return Tensor::scalar(value);
  return Tensor::scalar(static_cast<double>(static_cast<std::int32_t>(static_cast<std::int64_t>(value))), Dtype::i32);
}

}  // namespace

Kernel::Kernel(std::string name, std::string source) {
  auto definition = std::make_shared<KernelDefinition>();
  definition->parameters = ops::kernel_parameters(name, source);
  definition->name = std::move(name);
  definition->source = std::move(source);
  if (definition->count(Kind::out) == 0) throw Error(fmt::format("kernel {}: has no OUT parameter", definition->name));
  definition_ = std::move(definition);
}

Kernel Kernel::gradient(Gradient gradient) const {
  auto changed = std::make_shared<KernelDefinition>(*definition_);
  changed->gradient = std::move(gradient);
  return Kernel(std::move(changed));
}

Kernel Kernel::outputs(Outputs outputs) const {
  auto changed = std::make_shared<KernelDefinition>(*definition_);
  changed->outputs = std::move(outputs);
  return Kernel(std::move(changed));
}

Kernel Kernel::zeroed() const {
  auto changed = std::make_shared<KernelDefinition>(*definition_);
  changed->zeroed = true;
  return Kernel(std::move(changed));
}

Kernel Kernel::scalar(std::string_view parameter, double value) const {
  const auto& d = *definition_;
  const auto found = std::find_if(d.parameters.begin(), d.parameters.end(), [&](const auto& p) { return p.name == parameter; });
  if (found == d.parameters.end() || found->kind == Kind::in || found->kind == Kind::out)
    throw Error(fmt::format("kernel {}: has no scalar parameter '{}'", d.name, parameter));
  const bool is_unsigned = found->kind == Kind::unsigned_integer;
  const double low = is_unsigned ? 0 : std::numeric_limits<std::int32_t>::min();
  const double high = is_unsigned ? std::numeric_limits<std::uint32_t>::max() : std::numeric_limits<std::int32_t>::max();
  if (found->kind != Kind::floating && !(value >= low && value <= high && value == std::floor(value)))
    throw Error(fmt::format("kernel {}: parameter '{}' is of type {}, which cannot hold {}", d.name, parameter,
                            is_unsigned ? "uint" : "int", value));
  if (found->kind == Kind::floating && std::isfinite(value) &&
      std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
    throw Error(fmt::format("kernel {}: parameter '{}' is of type float, which cannot hold {}", d.name, parameter, value));
  auto changed = std::make_shared<KernelDefinition>(d);
  changed->scalars.insert_or_assign(std::string(parameter), value);
  return Kernel(std::move(changed));
}

Kernel Kernel::range(std::vector<std::int64_t> global, std::vector<std::int64_t> local) const {
  return range([global = std::move(global)](const auto&, const auto&) { return global; }, std::move(local));
}

Kernel Kernel::range(Range global, std::vector<std::int64_t> local) const {
  auto changed = std::make_shared<KernelDefinition>(*definition_);
  changed->range = std::move(global);
  changed->local = std::move(local);
  return Kernel(std::move(changed));
}

Tensor Kernel::operator()(const Tensor& input) const { return (*this)(std::vector{input}); }

Tensor Kernel::operator()(const std::vector<Tensor>& inputs) const {
  if (const auto count = definition_->count(Kind::out); count != 1)
    throw Error(fmt::format("kernel {}: has {} outputs; all() gives them", definition_->name, count));
  return all(inputs)[0];
}

std::vector<Tensor> Kernel::all(const std::vector<Tensor>& inputs) const {
  const auto& d = *definition_;
  if (inputs.size() != d.count(Kind::in))
    throw Error(fmt::format("kernel {}: takes {} tensors, got {}", d.name, d.inputs_text(), inputs.size()));
  if (inputs.empty() && !d.outputs)
    throw Error(fmt::format("kernel {}: without inputs, outputs() must say what it makes", d.name));
  std::vector<Spec> specs;
  for (const auto& input : inputs) {
    if (!input.defined()) throw Error(fmt::format("kernel {}: input {} is an undefined tensor", d.name, specs.size()));
    specs.push_back(input.spec());
  }
  const auto made = KernelOp(definition_, {}).infer(specs);
  auto all_inputs = inputs;
  for (const auto& parameter : d.parameters) {
    if (const auto extent = d.extent(parameter)) {
      const auto& spec = (extent->of_output ? made : specs)[extent->tensor];
      if (extent->dim && *extent->dim >= spec.shape.rank())
        throw ShapeError(
            fmt::format("kernel {}: parameter '{}' is an extent that {} does not have", d.name, parameter.name, to_string(spec)));
    } else if (d.is_scalar(parameter)) {
      const auto value = d.scalars.find(parameter.name);
      if (value == d.scalars.end())
        throw Error(fmt::format("kernel {}: parameter '{}' has no value; give it one with scalar()", d.name, parameter.name));
      all_inputs.push_back(scalar_leaf(parameter.kind, value->second));
    }
  }
  if (!d.range) return apply_all(std::make_shared<KernelOp>(definition_, std::vector<std::int64_t>{}), std::move(all_inputs));

  auto global = d.range(specs, made);
  bool fits = !global.empty() && global.size() <= 3 && (d.local.empty() || d.local.size() == global.size());
  for (auto size : global) fits = fits && size >= 0;
  for (auto size : d.local) fits = fits && size > 0;
  if (!fits)
    throw Error(fmt::format("kernel {}: [{}] by [{}] is no range of 1 to 3 dimensions", d.name, fmt::join(global, ", "),
                            fmt::join(d.local, ", ")));
  const bool runs = std::find(global.begin(), global.end(), 0) == global.end();
  for (const auto& spec : made)
    if (!runs && !d.zeroed && spec.shape.numel() > 0)
      throw Error(fmt::format("kernel {}: the range [{}] is empty, but {} is to be written", d.name, fmt::join(global, ", "),
                              to_string(spec)));
  return apply_all(std::make_shared<KernelOp>(definition_, std::move(global)), std::move(all_inputs));
}

}  // namespace clnet
