// refused: declared as: Tensor forward\(const Tensor& x\) override
#include <clnet/clnet.h>

using namespace clnet;

struct Net : nn::Module {
  nn::Linear fc{4, 2};
  Net() { add("fc", fc); }
  Tensor forward(Tensor x) { return fc(x); }
};

int main() {
  Net net;
  optim::SGD sgd(net, 0.1);
}
