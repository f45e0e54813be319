// Recurrent layers. Names, options, parameters and initial values (uniform within 1 / sqrt(hidden_size)) are PyTorch's.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clnet/export.h"
#include "clnet/nn/module.h"
#include "clnet/ops/recurrent.h"

namespace clnet::nn {

struct RecurrentOptions {
  Nonlinearity nonlinearity = Nonlinearity::tanh;  ///< for RNN only
  bool bias = true;
  bool batch_first = false;    ///< x is {N, T, I}, and the output likewise
  double dropout = 0;          ///< dropout probability in training, on the outputs of all layers but the last
  bool bidirectional = false;  ///< adds a direction from the end; their outputs are concatenated
  std::int64_t proj_size = 0;  ///< for LSTM: the width of h after a projection; 0: no projection
};

/// The base of RNN, LSTM and GRU. Parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 (weight_hr_l0), ..., with
/// _reverse for the other direction. Constructors throw Error for sizes or options out of range, calls ShapeError for inputs that
/// do not fit.
class CLNET_API Recurrent : public Module {
 public:
  std::string kind() const override;

 protected:
  struct Sizes {
    std::int64_t input_size, hidden_size, num_layers;
  };
  Recurrent(std::string name, std::int64_t gates, const Sizes& sizes, const RecurrentOptions& options);
  /// `c0` is for LSTM only.
  LstmResult run(const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& lengths) const;

 private:
  struct Direction {
    Parameter weight_ih, weight_hh;
    std::optional<Parameter> bias_ih, bias_hh, weight_hr;
    RecurrentWeights weights() const;
  };
  /// Runs a sequence {T, N, I}, or {N, T, I}.
  LstmResult run_batch(const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& lengths, bool batch_first) const;

  std::string name_;
  std::int64_t gates_;
  Sizes sizes_;
  RecurrentOptions options_;
  std::vector<Direction> directions_;  ///< layer by layer
};

/// x {T, N, input_size}, or {T, input_size} without a batch. A call with initial states h0 {layers * directions, N, hidden_size}
/// (undefined: zeros) also returns the final states. `lengths` i32 or i64 {N}: the number of steps of each sequence (PyTorch's
/// packed sequences); numbers above T count as T.
class CLNET_API RNN : public Recurrent {
 public:
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : RNN(input_size, hidden_size, 1, options) {}
  RNN(std::int64_t input_size, std::int64_t hidden_size, std::integral auto num_layers, const RecurrentOptions& options = {})
      : Recurrent("RNN", 1, {input_size, hidden_size, static_cast<std::int64_t>(num_layers)}, options) {}
  using Module::operator();
  Tensor forward(const Tensor& x) override { return run(x, {}, {}, {}).output; }
  RnnResult operator()(const Tensor& x, const Tensor& h0, const Tensor& lengths = {}) const;
};
/// The same with c0 {layers * directions, N, hidden_size}. With a proj_size, h0 and the output have proj_size in place of
/// hidden_size.
class CLNET_API LSTM : public Recurrent {
 public:
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : LSTM(input_size, hidden_size, 1, options) {}
  LSTM(std::int64_t input_size, std::int64_t hidden_size, std::integral auto num_layers, const RecurrentOptions& options = {})
      : Recurrent("LSTM", 4, {input_size, hidden_size, static_cast<std::int64_t>(num_layers)}, options) {}
  using Module::operator();
  Tensor forward(const Tensor& x) override { return run(x, {}, {}, {}).output; }
  LstmResult operator()(const Tensor& x, const LstmState& initial, const Tensor& lengths = {}) const {
    return called(*this, [&](auto& self) { return self.run(x, initial.h, initial.c, lengths); });
  }
};
class CLNET_API GRU : public Recurrent {
 public:
  GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : GRU(input_size, hidden_size, 1, options) {}
  GRU(std::int64_t input_size, std::int64_t hidden_size, std::integral auto num_layers, const RecurrentOptions& options = {})
      : Recurrent("GRU", 3, {input_size, hidden_size, static_cast<std::int64_t>(num_layers)}, options) {}
  using Module::operator();
  Tensor forward(const Tensor& x) override { return run(x, {}, {}, {}).output; }
  RnnResult operator()(const Tensor& x, const Tensor& h0, const Tensor& lengths = {}) const;
};

struct RecurrentCellOptions {
  bool bias = true;
  Nonlinearity nonlinearity = Nonlinearity::tanh;  ///< for RNNCell only
};
/// One step. Parameters weight_ih, weight_hh, bias_ih, bias_hh. x is {N, input_size} or {input_size}, states likewise.
class CLNET_API RecurrentCell : public Module {
 public:
  std::string kind() const override;

 protected:
  RecurrentCell(std::string name, std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size, bool bias);
  RecurrentWeights weights() const;

 private:
  std::string name_;
  std::int64_t input_, hidden_;
  Parameter weight_ih_, weight_hh_;
  std::optional<Parameter> bias_ih_, bias_hh_;
};

class CLNET_API RNNCell : public RecurrentCell {
 public:
  RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RecurrentCellOptions& options = {})
      : RecurrentCell("RNNCell", 1, input_size, hidden_size, options.bias), nonlinearity_(options.nonlinearity) {}
  using Module::operator();
  /// The next state after a zero state.
  Tensor forward(const Tensor& x) override { return next(x, Tensor{}); }
  Tensor operator()(const Tensor& x, const Tensor& h) const {
    return called(*this, [&](auto& self) { return self.next(x, h); });
  }

 private:
  Tensor next(const Tensor& x, const Tensor& h) const;

  Nonlinearity nonlinearity_;
};
class CLNET_API LSTMCell : public RecurrentCell {
 public:
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const RecurrentCellOptions& options = {})
      : RecurrentCell("LSTMCell", 4, input_size, hidden_size, options.bias) {}
  using Module::operator();
  Tensor forward(const Tensor& x) override { return next(x, LstmState{}).h; }
  LstmState operator()(const Tensor& x, const LstmState& state) const {
    return called(*this, [&](auto& self) { return self.next(x, state); });
  }

 private:
  LstmState next(const Tensor& x, const LstmState& state) const;
};
class CLNET_API GRUCell : public RecurrentCell {
 public:
  GRUCell(std::int64_t input_size, std::int64_t hidden_size, const RecurrentCellOptions& options = {})
      : RecurrentCell("GRUCell", 3, input_size, hidden_size, options.bias) {}
  using Module::operator();
  Tensor forward(const Tensor& x) override { return next(x, Tensor{}); }
  Tensor operator()(const Tensor& x, const Tensor& h) const {
    return called(*this, [&](auto& self) { return self.next(x, h); });
  }

 private:
  Tensor next(const Tensor& x, const Tensor& h) const;
};

}  // namespace clnet::nn
