// What tests/life/dlopen.cpp loads: a library that uses clnet, as a plug-in of some host program would.
#include "clnet/clnet.h"

extern "C" __attribute__((visibility("default"))) int use_clnet() {
  using namespace clnet;
  const auto model = models::make("mlp", {1, 8, 8}, 3);
  optim::Adam optimizer{*model};
  const Tensor loss = optimizer.step(cross_entropy((*model)(rand({4, 1, 8, 8})), Tensor::from({0, 1, 2, 0})));
  return loss.item<float>() >= 0 ? 0 : 1;
}
