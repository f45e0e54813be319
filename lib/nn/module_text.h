// Texts about modules: names, warnings, summaries.
#pragma once

#include <string>

#include "clnet/nn/module.h"

namespace clnet::nn {

/// kind(), or the name of the module's class where kind() is the default.
std::string class_name(const Module& module);
/// Warns about a parameter outside of any module when a module's forward() reads it.
void warn_if_in_forward();
/// Reports a layer's output to this thread's summary() or features(), if any.
void note_for_summary(const void* state, const Module& module, const Tensor& output);
void note_for_features(const void* state, const Tensor& output);

}  // namespace clnet::nn
