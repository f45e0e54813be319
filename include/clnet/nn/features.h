// Outputs of a model's layers by their names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"

namespace clnet::nn {

/// The outputs of layers in one forward pass model(x), in the order of `names`, which are those of child(): "layer4.1".
///   const auto maps = nn::features(model, images, {"layer1", "layer4.1"});
///
/// Gradients flow through them, and what no output needs is not computed. Of a layer that is called several times it is the last
/// output, of one with several results the first, as hooks see them (Module::on_forward); a replaced layer's is that of what
/// replaced it. Throws Error for a name that there is not, and for a layer that the pass does not call, or calls only by its
/// forward() or in a function that compile() made. Functions of a Sequential have no names. Within a function that compile() runs
/// it is graph as everything else. Several threads may ask one model.
CLNET_API std::vector<Tensor> features(const Module& model, const Tensor& x, const std::vector<std::string>& names);
/// The same for a model of several inputs, which `forward` calls.
///   const auto states = nn::features(model, [&] { model(source, target); }, {"encoder"});
CLNET_API std::vector<Tensor> features(const Module& model, const std::function<void()>& forward,
                                       const std::vector<std::string>& names);

}  // namespace clnet::nn
