// What modules say of themselves.
#pragma once

#include <string>

#include "clnet/nn/module.h"

namespace clnet::nn {

/// kind(), or the name of the module's class where that says nothing.
std::string class_name(const Module& module);
/// Of a parameter that no module has, when a module's forward() reads it.
void warn_if_in_forward();
/// Tell a summary and features() that this thread makes, if any, of a layer's output.
void note_for_summary(const void* state, const Module& module, const Tensor& output);
void note_for_features(const void* state, const Tensor& output);

}  // namespace clnet::nn
