// Evaluation of tensors, and of a collected work with other leaves.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/cl/context.h"
#include "lib/exec/collect/value.h"
#include "lib/exec/collect/work.h"
#include "lib/exec/plan/plan.h"
#include "lib/graph/capture.h"
#include "lib/graph/slot.h"

namespace clnet::exec {

using Results = std::vector<std::shared_ptr<DeviceValue>>;

/// The device of the leaves' values, else `wanted`, else the current one. Throws DeviceError where these are several devices, and
/// Error for an input of a function under compile().
std::shared_ptr<ocl::Context> device_of(std::span<const std::shared_ptr<Value>> values, std::shared_ptr<ocl::Context> wanted);

/// The leaves that an evaluation has moved from the host to devices. It moves them back unless keep() is called.
class Placements {
 public:
  Placements() = default;
  ~Placements();
  Placements(const Placements&) = delete;
  Placements& operator=(const Placements&) = delete;
  void move(const Tensor& leaf, const std::shared_ptr<Value>& host, const std::shared_ptr<DeviceValue>& placed);
  void keep() { moved_.clear(); }

 private:
  struct Moved {
    Tensor leaf;  ///< uncounted
    std::shared_ptr<Value> host, placed;
  };
  std::vector<Moved> moved_;
};

/// Enqueues the work's plan with `leaves` and their `values` in place of its own. Makes or finds the plan by the options, unless
/// it is given. `finish` gets the wanted values, then the speculative outputs, while the device is locked.
void execute(const Work& work, std::span<const Tensor> leaves, std::span<const std::shared_ptr<Value>> values,
             const std::shared_ptr<ocl::Context>& device, const Options& options, std::shared_ptr<Plan>& plan,
             Placements& placements, const std::function<void(const Results&)>& finish);

/// Computes the tensors, and the effects that come with them: on `wanted`, or on the device of device_of().
void evaluate(std::span<const Tensor> asked, const std::shared_ptr<ocl::Context>& wanted, const DonationOffer& offer = {},
              std::span<const CallEffect> more = {});
/// The same for public functions: throws only clnet's own errors, and looks for anomalies.
void evaluate_checked(std::span<const Tensor> tensors, const Device* wanted, const DonationOffer& offer = {},
                      std::span<const CallEffect> more = {});

/// Drops all values that evaluations returned without a request: whether these exist depends on who holds other tensors. To be
/// called where it matters which nodes the next evaluation computes. In a lane it drops those on the lane's device.
void forget_speculative();
/// The same where an evaluation of the tensors may read one that lies on another device than it would be computed on: such a
/// value does not decide where anything is computed. Evaluations do so by themselves.
void forget_elsewhere(std::span<const Tensor> tensors);

/// Applies the effects of earlier evaluations that a device could not; in a lane those of the lane. Does nothing where nothing
/// may be evaluated now, and where it still cannot.
void apply_overdue();
/// Drops those on a slot that gets another value.
void drop_overdue(const Slot& slot);

/// The tensor's value after evaluation: never null.
std::shared_ptr<Value> evaluated(const Tensor& tensor);

/// Throws Error for an input of a function under compile().
void require_given(const Value* value);
/// Throws DeviceError where another value has overwritten its memory.
void require_there(const DeviceValue& value, const Spec& spec);

}  // namespace clnet::exec
