#include "tests/torch/opinfo/adapters.h"

namespace clnet::torch::opinfo {

const Adapters& all_adapters() {
  static const Adapters all = [] {
    Adapters adapters;
    for (const auto& add : {add_elementwise, add_functions, add_indexed, add_joined, add_layers, add_losses, add_made, add_norms,
                            add_ordered, add_pools, add_products, add_reductions, add_shapes, add_special})
      add(adapters);
    return adapters;
  }();
  return all;
}

Outputs call(const std::string& name, const Args& args) {
  const auto found = all_adapters().find(name);
  if (found == all_adapters().end()) throw Failed("unknown operation " + name);
  auto outputs = found->second(args);
  args.require_all_read();
  return outputs;
}

}  // namespace clnet::torch::opinfo
