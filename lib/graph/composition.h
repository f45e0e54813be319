// Functions that other operations make up, kept whole for whoever listens while the graph is built: the export to ONNX. Nobody
// else does, and the graph itself does not know them.
#pragma once

#include <deque>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/graph/node.h"

namespace clnet {

/// A call of such a function. Undefined inputs were left out.
struct Composition {
  std::string_view name;
  Tensors inputs;
  Fields fields;
  Tensors outputs;
};

class Compositions {
 public:
  void add(Composition composition);
  /// The calls that gave this tensor, the outermost first.
  std::vector<const Composition*> of(const Tensor& output) const;

 private:
  std::deque<Composition> all_;
  std::map<std::pair<const Node*, int>, std::vector<const Composition*>> by_output_;
};

/// What listens in this thread; null: nothing does.
Compositions* composing();

/// Listens in this thread while it lives.
class Composing {
 public:
  explicit Composing(Compositions& into);
  ~Composing();
  Composing(const Composing&) = delete;
  Composing& operator=(const Composing&) = delete;

 private:
  Compositions* before_;
};

/// Tells the call that `make` describes where somebody listens.
template <class Make>
void note_composition(const Make& make) {
  if (auto* all = composing()) all->add(make());
}
/// The same for a function with one output, which `make` leaves out.
template <class Make>
Tensor composed(Tensor output, const Make& make) {
  note_composition([&] {
    auto call = make();
    call.outputs = {output};
    return call;
  });
  return output;
}

}  // namespace clnet
