// Recurrent networks: one layer in one direction over a sequence, and single steps. nn::RNN, nn::LSTM and nn::GRU use them.
#pragma once

#include <cstdint>

#include "clnet/export.h"
#include "clnet/tensor.h"

namespace clnet {

/// PyTorch's parameters of one layer and direction with G gates: 1 (RNN), 3 (GRU: r, z, n) or 4 (LSTM: i, f, g, o). Biases may be
/// undefined. All have x's dtype.
struct RecurrentWeights {
  Tensor weight_ih{};           ///< {G H, I}
  Tensor weight_hh{};           ///< {G H, P}; P is H, except in an LSTM with a projection
  Tensor bias_ih{}, bias_hh{};  ///< {G H}
  Tensor weight_hr{};           ///< {P, H}: projects h to weight_hr h; for LSTM only
};
struct RecurrentOptions {
  bool reverse = false;  ///< from the last step to the first
  /// i32 or i64 {N}: the number of steps of each sequence; later steps are padding. In reverse, too, a sequence begins at step 0.
  /// After its end outputs are 0 and states stay the same. Numbers are limited to 0..T; undefined means T.
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

/// x {T, N, I} of at least one step, h0 {N, H} (undefined: zeros): h = tanh or relu(W_ih x + b_ih + W_hh h + b_hh). Floating
/// dtypes; states and sums within the layer are f32, and f16 and bf16 are rounded once, at its end. Throws ShapeError or
/// DtypeError with the argument that does not fit.
CLNET_API RnnResult rnn_layer(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                              Nonlinearity nonlinearity = Nonlinearity::tanh, const RecurrentOptions& options = {});
/// LSTM (Hochreiter and Schmidhuber 1997), the same with c0 {N, H}: c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o)
/// tanh(c).
CLNET_API LstmResult lstm_layer(const Tensor& x, const Tensor& h0, const Tensor& c0, const RecurrentWeights& weights,
                                const RecurrentOptions& options = {});
/// GRU (Cho et al. 2014), the same with n = tanh(W_in x + b_in + sigmoid(r) (W_hn h + b_hn)), h = (1 - sigmoid(z)) n + sigmoid(z)
/// h.
CLNET_API RnnResult gru_layer(const Tensor& x, const Tensor& h0, const RecurrentWeights& weights,
                              const RecurrentOptions& options = {});

/// One step: x {N, I}, h {N, H} (undefined: zeros). For hand-written loops; the layers are faster.
CLNET_API Tensor rnn_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& weights,
                          Nonlinearity nonlinearity = Nonlinearity::tanh);
CLNET_API LstmState lstm_cell(const Tensor& x, const LstmState& state, const RecurrentWeights& weights);
CLNET_API Tensor gru_cell(const Tensor& x, const Tensor& h, const RecurrentWeights& weights);

}  // namespace clnet
