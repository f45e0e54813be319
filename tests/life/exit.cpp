// Static tensors and models, work still in the queue, and exit handlers on both sides of the library's own.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "clnet/clnet.h"

using namespace clnet;

namespace {

// Made before any driver is loaded, and so destroyed after all of them are gone.
Tensor leaf = Tensor::from({1.0F, 2.0F}), value;
std::shared_ptr<nn::Module> model;
optim::Adam* optimizer = nullptr;

struct UsesAtEnd {
  ~UsesAtEnd() {
    try {
      (value + 1.0).eval();
      std::fputs("exit: a device was used after its end\n", stderr);
      std::_Exit(1);
    } catch (const DeviceError& error) {
      if (std::string(error.what()).find("ending") == std::string::npos) std::_Exit(2);
    }
  }
} uses_at_end;

}  // namespace

int main() {
  // Runs after the library's own handler, which comes with the first device.
  std::atexit([] {
    try {
      leaf.eval();
      Device::current().finish();
      std::_Exit(3);
    } catch (const DeviceError&) {
    }
  });
  model = models::make("mlp", {1, 8, 8}, 3);
  optimizer = new optim::Adam{*model};
  for (int i = 0; i < 20; ++i) {
    optimizer->step(cross_entropy((*model)(rand({64, 1, 8, 8})), Tensor::from(std::vector<std::int32_t>(64, 1), Shape{64})));
  }
  value = exp(leaf);
  value.eval();
  // Runs before it: devices still work.
  std::atexit([] {
    if (value.to_vector<float>().size() != 2) std::_Exit(4);
  });
  return 0;
}
