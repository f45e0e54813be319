// A network and an optimizer made from their descriptions in trainref: "conv1(1,8,k3,p1) relu maxpool2 flatten fc(784,10)",
// "SGD lr .05 momentum .9".
#pragma once

#include <map>
#include <memory>
#include <string>

#include "clnet/clnet.h"
#include "tests/torch/cases.h"

namespace clnet::torch {

/// What stands before the first semicolon; a word that is not known throws Failed, now or in its forward pass. A recurrent layer
/// reads {N, T, width}. What a layer of that description may have or lack, as a bias, the names of `weights` tell.
std::unique_ptr<nn::Module> network(const std::string& description, const Named& weights);
/// The biases that a batch normalisation behind them subtracts again, at most with pooling in between: on them the loss does not
/// depend. By the name of the running mean that holds them.
std::map<std::string, std::string> biases_without_effect(const std::string& description);
Steps optimizer(const std::string& description, const nn::Module& module);

}  // namespace clnet::torch
