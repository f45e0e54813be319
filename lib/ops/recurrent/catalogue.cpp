// The operations of clnet/ops/recurrent.h; lib/ops/catalogue.h says what the columns mean.
#include "lib/ops/catalogue.h"

namespace clnet::ops {

// clang-format off
std::vector<Operation> recurrent_operations() {
  return {
      {.name = "gru_cell", .torch = "nn.GRUCell", .operands = {{"x", Holds::value, {-1, 1}}, {"weight_ih", Holds::value, {-1, 1}}, {"weight_hh", Holds::value, {-0.5, 0.5}}, optional("h", {-1, 1}), optional("bias_ih", {-1, 1}), optional("bias_hh", {-1, 1})}, .roundings = 40},
      {.name = "gru_layer", .torch = "nn.GRU", .onnx = {"GRU", 22}, .operands = {{"x", Holds::value, {-1, 1}}, {"weight_ih", Holds::value, {-1, 1}}, {"weight_hh", Holds::value, {-0.5, 0.5}}, optional("h0", {-1, 1}), optional("bias_ih", {-1, 1}), optional("bias_hh", {-1, 1})}, .roundings = 100, .solvers = "recurrent"},
      {.name = "lstm_cell", .torch = "nn.LSTMCell", .operands = {{"x", Holds::value, {-1, 1}}, {"weight_ih", Holds::value, {-1, 1}}, {"weight_hh", Holds::value, {-0.5, 0.5}}, optional("h", {-1, 1}), optional("c", {-2, 2}), optional("bias_ih", {-1, 1}), optional("bias_hh", {-1, 1})}, .roundings = 40},
      {.name = "lstm_layer", .torch = "nn.LSTM", .onnx = {"LSTM", 22}, .operands = {{"x", Holds::value, {-1, 1}}, {"weight_ih", Holds::value, {-1, 1}}, {"weight_hh", Holds::value, {-0.5, 0.5}}, optional("h0", {-1, 1}), optional("c0", {-2, 2}), optional("bias_ih", {-1, 1}), optional("bias_hh", {-1, 1})}, .roundings = 100, .solvers = "recurrent"},
      {.name = "rnn_cell", .torch = "nn.RNNCell", .operands = {{"x", Holds::value, {-1, 1}}, {"weight_ih", Holds::value, {-1, 1}}, {"weight_hh", Holds::value, {-0.5, 0.5}}, optional("h", {-1, 1}), optional("bias_ih", {-1, 1}), optional("bias_hh", {-1, 1})}, .roundings = 40},
      {.name = "rnn_layer", .torch = "nn.RNN", .onnx = {"RNN", 22}, .operands = {{"x", Holds::value, {-1, 1}}, {"weight_ih", Holds::value, {-1, 1}}, {"weight_hh", Holds::value, {-0.5, 0.5}}, optional("h0", {-1, 1}), optional("bias_ih", {-1, 1}), optional("bias_hh", {-1, 1})}, .roundings = 100, .solvers = "recurrent"},
  };
}
// clang-format on

}  // namespace clnet::ops
