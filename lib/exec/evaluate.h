// Evaluations: of tensors, and of a collected work with other leaves.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/cl/context.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/plan/plan.h"

namespace clnet::exec {

using Results = std::vector<std::shared_ptr<DeviceValue>>;

/// Where the leaves' values are, or the evaluation is wanted, or the current one. Throws DeviceError where that is not one
/// device, and Error for the input of a function that is being compiled.
std::shared_ptr<ocl::Context> device_of(std::span<const std::shared_ptr<Value>> values, std::shared_ptr<ocl::Context> wanted);

/// Enqueues, by the options, the work's plan, which is made or found unless it is given, with `leaves` and their `values` in the
/// place of its own. `finish` gets the values of what is wanted, then those that the plan keeps, while the device is locked.
void execute(const Work& work, std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values,
             const std::shared_ptr<ocl::Context>& device, const Options& options, std::shared_ptr<Plan>& plan,
             const std::function<void(const Results&)>& finish);

/// Computes what the tensors need, and what effects on it bring: on `wanted`, or where device_of() says.
void evaluate(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted, const Giving& giving = {});
/// The same for the outside: throws nothing but clnet's own errors, and looks for anomalies.
void evaluate_checked(std::span<const Tensor> tensors, const Device* wanted, const Giving& giving = {});

/// The tensor's value after evaluation: never null.
std::shared_ptr<Value> evaluated(const Tensor& tensor);

/// Throws Error for the input of a function that is being compiled.
void require_given(const Value* value);
/// Throws DeviceError where another value was made in its memory.
void require_there(const DeviceValue& value, const Spec& spec);

}  // namespace clnet::exec
