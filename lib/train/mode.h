// Training or inference mode for the time of a scope.
#pragma once

#include "clnet/nn.h"

namespace clnet::train {

class KeptMode {
 public:
  KeptMode(nn::Module& module, bool training) : module_(module), before_(module.training()) { module.train(training); }
  ~KeptMode() { module_.train(before_); }
  KeptMode(const KeptMode&) = delete;
  KeptMode& operator=(const KeptMode&) = delete;

 private:
  nn::Module& module_;
  bool before_;
};

}  // namespace clnet::train
