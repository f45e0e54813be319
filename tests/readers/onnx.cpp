// libFuzzer: networks in ONNX files. What loads also runs, on zeros of the declared extents, as far as building the graph; on the
// null driver what a run reads is zeros, too.
#include "clnet/onnx.h"

#include <string_view>

#include "clnet/clnet.h"
#include "lib/onnx/host_tensor.h"
#include "tests/readers/input.h"

namespace {

constexpr int most_nodes = 300;  // that run; a longer run is sound and slow
constexpr std::int64_t most_elements = 1 << 14;

struct Enough : clnet::Error {
  using Error::Error;
};

void require_one_line(std::string_view text) {
  if (text.empty() || text.find('\n') != std::string_view::npos) std::abort();
}

/// Zeros as the file declares the input; undefined where that is too large, or no tensor.
clnet::Tensor zeros_for(const clnet::onnx::ValueInfo& input) {
  const auto type = clnet::onnx::element_type_of(input.type);
  if (type == clnet::onnx::ElementType::undefined || input.is_sequence || input.extents.size() > 8) return {};
  std::vector<std::int64_t> extents;
  std::int64_t count = 1;
  for (const auto& text : input.extents) {
    const bool is_number = !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos;
    extents.push_back(is_number ? std::stoll(text) : 2);
    count *= std::max<std::int64_t>(1, extents.back());
    if (count > most_elements) return {};
  }
  return clnet::zeros(clnet::Shape(extents), clnet::onnx::dtype_of(type));
}

}  // namespace

CLNET_READER(onnx) {
  const clnet::test::MemoryFile file(data, size);
  try {
    auto model = clnet::onnx::load(file.path());
    std::vector<clnet::onnx::Value> inputs;
    for (const auto& input : model.inputs()) {
      inputs.emplace_back(input.optional ? clnet::Tensor{} : zeros_for(input));
      inputs.back().type = input.type;
    }
    int nodes = 0;
    model.set_check([&] {
      if (++nodes > most_nodes) throw Enough("enough");
    });
    model.run_values(inputs);
  } catch (const clnet::Error& error) {
    require_one_line(error.what());
  }
  return 0;
}
