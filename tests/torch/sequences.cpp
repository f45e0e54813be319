// Recurrent networks and attention.
#include "tests/torch/cases.h"

namespace clnet::torch {

void add_sequences(Operations&) {}

}  // namespace clnet::torch
