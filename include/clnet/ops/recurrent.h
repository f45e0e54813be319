// Recurrent networks: one layer in one direction over a sequence, and single steps. nn::RNN, nn::LSTM and nn::GRU are made of
// them.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// PyTorch's parameters of one layer and direction, of G gates: 1 (RNN), 3 (GRU: r, z, n) or 4 (LSTM: i, f, g, o). Biases may be
/// undefined. All have the dtype of x.
struct RecurrentWeights {
  Tensor weight_ih{};           ///< {G H, I}
  Tensor weight_hh{};           ///< {G H, P}; P is H but in an LSTM with a projection
  Tensor bias_ih{}, bias_hh{};  ///< {G H}
  Tensor weight_hr{};           ///< {P, H}: h becomes weight_hr h; of an LSTM only
};
struct RecurrentOptions {
  bool reverse = false;  ///< from the last step to the first
  /// i32 or i64 {N}: the steps that each sequence has; the others are padding. It begins at step 0 also in reverse. Where it is
  /// over, outputs are 0 and states stay what they were; less than 0 counts as 0, more than T as T. Undefined: T.
  Tensor lengths{};
};
enum class Nonlinearity : std::uint8_t { tanh, relu };

struct RnnResult {
  Tensor output;  ///< {T, N, H}: h of each step
  Tensor h;       ///< {N, H}: h after the sequence
};
struct LstmResult {
  Tensor output;  ///< {T, N, P}: h of each step
  Tensor h, c;    ///< {N, P} and {N, H}: the states after the sequence
};
struct LstmState {
  Tensor h{}, c{};
};

/// x {T, N, I} of at least one step, h0 {N, H} (undefined: zeros): h = tanh or relu(W_ih x + b_ih + W_hh h + b_hh).
/// Floating dtypes; states and sums are f32 within the layer, and f16 and bf16 are rounded once, at its end. Throws ShapeError or
/// DtypeError naming the argument that does not fit.
CLNET_API RnnResult rnn_layer(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                              Nonlinearity nonlinearity = Nonlinearity::tanh, const RecurrentOptions& options = {});
/// The same with c0 {N, H}: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c).
CLNET_API LstmResult lstm_layer(const Tensor& x, const Tensor& h0, const Tensor& c0, const RecurrentWeights& weights,
                                const RecurrentOptions& options = {});
/// The same with n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn)), h = (1 - sigmoid(z)) n + sigmoid(z) h.
CLNET_API RnnResult gru_layer(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                              const RecurrentOptions& options = {});

/// One step: x {N, I}, h {N, H} (undefined: zeros). For loops of one's own; the layers are faster.
CLNET_API Tensor rnn_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& weights,
                          Nonlinearity nonlinearity = Nonlinearity::tanh);
CLNET_API LstmState lstm_cell(const Tensor& x, const LstmState& state, const RecurrentWeights& weights);
CLNET_API Tensor gru_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& weights);

}  // namespace clnet
