#include "lib/nn/cloning.h"

#include "clnet/nn/module.h"

namespace clnet::nn {

namespace {

thread_local std::unique_ptr<Clones> clones;
thread_local int depth = 0;

}  // namespace

Clones* cloning_now() { return clones.get(); }

Cloning::Cloning() {
  if (depth++ == 0) clones = std::make_unique<Clones>();
}
Cloning::~Cloning() {
  if (on_ && --depth == 0) clones.reset();
}

void Cloning::finish() {
  on_ = false;
  if (--depth > 0) return;
  const auto made = std::move(clones);
  Module::require_held(*made);
}

}  // namespace clnet::nn
