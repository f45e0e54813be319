// The table of parameters in docs/reference/layers.md, which is made from layers as they are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "clnet/nn.h"
#include "tests/ops/catalogue/written.h"

using namespace clnet;

namespace {

struct ShownLayer {
  std::string call;
  io::StateDict state;
};

/// A layer as it is typed.
#define SHOWN(...) \
  ShownLayer { #__VA_ARGS__, (__VA_ARGS__).state_dict() }

std::vector<ShownLayer> shown_layers() {
  return {SHOWN(nn::Linear(4, 8)),
          SHOWN(nn::Embedding(50, 8)),
          SHOWN(nn::Flatten()),
          SHOWN(nn::Unflatten(1, {2, 4})),
          SHOWN(nn::Identity()),
          SHOWN(nn::Conv1d(4, 8, 3)),
          SHOWN(nn::Conv2d(4, 8, 3, {.groups = 2})),
          SHOWN(nn::Conv3d(4, 8, 3)),
          SHOWN(nn::ConvTranspose1d(4, 8, 3)),
          SHOWN(nn::ConvTranspose2d(4, 8, 3)),
          SHOWN(nn::ConvTranspose3d(4, 8, 3)),
          SHOWN(nn::BatchNorm1d(8)),
          SHOWN(nn::BatchNorm2d(8)),
          SHOWN(nn::BatchNorm3d(8)),
          SHOWN(nn::InstanceNorm1d(8, {.affine = true})),
          SHOWN(nn::InstanceNorm2d(8, {.track_running_stats = true})),
          SHOWN(nn::InstanceNorm3d(8)),
          SHOWN(nn::GroupNorm(2, 8)),
          SHOWN(nn::LocalResponseNorm(5)),
          SHOWN(nn::LayerNorm({4, 8})),
          SHOWN(nn::RMSNorm(8)),
          SHOWN(nn::RNN(4, 8)),
          SHOWN(nn::LSTM(4, 8, 2, {.proj_size = 5})),
          SHOWN(nn::GRU(4, 8, {.bidirectional = true})),
          SHOWN(nn::RNNCell(4, 8)),
          SHOWN(nn::LSTMCell(4, 8)),
          SHOWN(nn::GRUCell(4, 8)),
          SHOWN(nn::MultiheadAttention(8, 2)),
          SHOWN(nn::MultiheadAttention(8, 2, {.add_bias_kv = true, .kdim = 4, .vdim = 6})),
          SHOWN(nn::PositionalEncoding(8)),
          SHOWN(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16})),
          SHOWN(nn::TransformerDecoderLayer(8, 2, {.dim_feedforward = 16})),
          SHOWN(nn::TransformerEncoder(8, 2, 1, {.dim_feedforward = 16}, true)),
          SHOWN(nn::TransformerDecoder(8, 2, 1, {.dim_feedforward = 16}, true)),
          SHOWN(nn::Transformer(8, 2, 1, 1, {.dim_feedforward = 16})),
          SHOWN(nn::AdaptiveLogSoftmaxWithLoss(32, 10, {2, 5}))};
}
#undef SHOWN

std::string parameters_page(const std::string& now) {
  std::string table = "| layer | parameters and buffers |\n|---|---|\n";
  for (const auto& [call, state] : shown_layers()) {
    std::vector<std::string> cells;
    for (const auto& [name, tensor] : state) cells.push_back(fmt::format("`{} {}`", name, to_string(tensor.shape())));
    table += fmt::format("| `{}` | {} |\n", call, cells.empty() ? "none" : fmt::format("{}", fmt::join(cells, ", ")));
  }
  return testing::with_section(now, "parameters", table);
}

}  // namespace

TEST_CASE("docs/reference/layers.md has the layers' parameters", "[written]") {
  testing::check_written("docs/reference/layers.md", parameters_page);
}
