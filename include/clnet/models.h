// The networks that clnet-train knows, with parameters named as PyTorch names them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn.h"

namespace clnet::models {

/// The names that make() takes.
CLNET_API std::vector<std::string> names();

/// A classifier of images of shape {channels, height, width}. Throws Error for an unknown name or an image too small for it.
/// - mlp: flatten, linear 128, relu, linear
/// - keras-cnn: conv 3x3 without padding to 32, relu, max-pool 2, flatten, linear
/// - cnn: conv 3x3 padding 1 to 32, relu, max-pool 2, conv 3x3 padding 1 to 64, relu, max-pool 2, flatten, linear 128, relu,
/// linear
/// - lenet5: conv 5x5 padding 2 to 6, tanh, avg-pool 2, conv 5x5 to 16, tanh, avg-pool 2, flatten, linear 120, tanh, 84, tanh,
/// linear
/// - resnet20: He et al. 2015 for CIFAR: 3 stages of 3 blocks, 16, 32, 64 channels
/// - resnet18, mobilenetv2: torchvision's, for images of about 224x224
CLNET_API std::unique_ptr<nn::Module> make(std::string_view name, const Shape& image, std::int64_t classes);

}  // namespace clnet::models
