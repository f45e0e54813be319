// The slot behind a parameter.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "clnet/device.h"
#include "clnet/nn/parameter.h"
#include "lib/base/access.h"
#include "lib/graph/slot.h"
#include "lib/graph/slot_scope.h"

namespace clnet::nn {

/// The parameter's own slot, which knows whether it is frozen.
inline const std::shared_ptr<Slot>& own_slot_of(const Parameter& parameter) { return clnet::detail::access::slot(parameter); }
/// The slot of its values in this thread: in a SlotScope it may be another one.
inline const std::shared_ptr<Slot>& slot_of(const Parameter& parameter) { return slot_here(own_slot_of(parameter)); }

/// What Parameter::follow() is given.
struct Following {
  Parameter parameter;
  Tensor value;
  Effect::Update update;
};
/// Parameter::follow() of several slots, in order. Where their values are there, all take the next ones or, where one throws,
/// none.
void follow_together(std::span<const Following> all);

/// Throws Error where Parameter::set() would, whatever the parameter: in a function under compile(), and in an update of
/// follow().
void require_may_set();
/// Evaluates what Parameter::set() would have to in one of the changes, so that a failure comes before the first.
void prepare_to_set(std::span<const std::pair<Parameter, Tensor>> changes);

/// The parameters with their values on a device, each slot once, without those that are there. Setting them throws nothing.
std::vector<std::pair<Parameter, Tensor>> copies_on(std::span<const Parameter> parameters, const Device& device);

}  // namespace clnet::nn
