// Outputs of a model's layers, by name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"

namespace clnet::nn {

/// The outputs of layers in one forward pass model(x), in the order of `names`, as torchvision's create_feature_extractor().
/// Names are those of child(): "layer4.1".
///   const auto maps = nn::features(model, images, {"layer1", "layer4.1"});
///
/// Gradients flow through the outputs; unneeded values are not computed. A layer that is called several times gives its last
/// output, one with several results its first, as for hooks (Module::on_forward). A replaced layer gives the output of its
/// replacement. Functions of a Sequential have no names. Under compile() the outputs are part of the graph. Several threads may
/// use one model.
///
/// Throws Error for an unknown name and for a layer that the pass does not call. Direct forward() calls and calls within a
/// function of compile() do not count.
CLNET_API std::vector<Tensor> features(const Module& model, const Tensor& x, const std::vector<std::string>& names);
/// The same for a model with several inputs, called by `forward`.
///   const auto states = nn::features(model, [&] { model(source, target); }, {"encoder"});
CLNET_API std::vector<Tensor> features(const Module& model, const std::function<void()>& forward,
                                       const std::vector<std::string>& names);

}  // namespace clnet::nn
