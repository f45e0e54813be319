// What the modules of this thread are doing.
#pragma once

#include <memory>
#include <vector>

#include "lib/nn/cloning.h"

namespace clnet::nn {

class Module;
struct Awaited;
struct SummaryLine;

struct Here {
  const void* call = nullptr;                   ///< the innermost Module::Call
  const Module* called = nullptr;               ///< its module
  Awaited* awaited = nullptr;                   ///< what features() waits for
  std::vector<SummaryLine>* summary = nullptr;  ///< what summary() has seen so far
  bool uncounted = false;                       ///< modules that are made belong to a handle as child() gives it
  std::shared_ptr<void> state_of_copies;        ///< what a copy gets of a layer that child() keeps
  std::unique_ptr<Clones> clones;               ///< of the clone that is being made
  int cloning_depth = 0;                        ///< Clonings that live
  bool uncounted_outside = false;               ///< of the outermost of these
};

Here& here();

}  // namespace clnet::nn
