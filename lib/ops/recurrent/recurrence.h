// What is left of a recurrent layer when the products with its inputs are made: the steps over the states, in f32.
#pragma once

#include <cstdint>
#include <string_view>

#include "clnet/tensor.h"

namespace clnet::ops {

enum class Cell : std::uint8_t { tanh, relu, lstm, gru };
constexpr std::int64_t gate_count(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
constexpr std::string_view to_string(Cell cell) {
  constexpr std::string_view names[] = {"tanh", "relu", "lstm", "gru"};
  return names[static_cast<int>(cell)];
}

struct Recurrence {
  Cell cell = Cell::tanh;
  bool reverse = false;

  bool operator==(const Recurrence&) const = default;
};

/// What a recurrence reads. `gates` {T, N, G H} is what the gates get beside the product with h, activations not applied.
struct RecurrenceInputs {
  Tensor gates;
  Tensor h0, c0;     ///< {N, P}, {N, H} (LSTM)
  Tensor weight_hh;  ///< {G H, P}
  Tensor bias_hn;    ///< {H}, of a GRU: within the product with r
  Tensor weight_hr;  ///< {P, H} or undefined
  Tensor lengths;    ///< {N} or undefined
};
struct RecurrenceOutputs {
  Tensor y{}, h{}, c{};  ///< {T, N, P}, {N, P}, {N, H} (LSTM)
  Tensor gates{};        ///< {T, N, G H}: activations applied; 0 in padding, as in all of these
  Tensor cells{};        ///< {T, N, H} of an LSTM: c of each step; of a GRU: W_hn h + b_hn
};
/// The same of one step: states {N, ...}.
struct CellState {
  Tensor h{}, c{}, gates{}, cells{};
};

/// One step after `h` and `c`: what the gates get from x is `gates` {N, G H}.
CellState one_step(Cell cell, const Tensor& gates, const Tensor& h, const Tensor& c, const RecurrenceInputs& weights);

/// As one operation, whose gradient is one, too.
RecurrenceOutputs recur(const Recurrence& recurrence, const RecurrenceInputs& in);

/// What the gradient reads: those of the results, and of inputs and outputs what the cell's derivatives need.
struct RecurrenceGradientInputs {
  Tensor dy{}, dh{}, dc{};
  Tensor y{}, gates{}, cells{}, h0{}, c0{}, weight_hh{}, lengths{};
};
/// `product`: of the product of weight_hh and h.
struct RecurrenceGradients {
  Tensor gates{}, h0{}, c0{}, product{};
};
RecurrenceGradients recur_backward_composed(const Recurrence& recurrence, const RecurrenceGradientInputs& in);

/// Operation by operation: as many nodes as there are steps, of any order of derivatives.
RecurrenceOutputs recur_composed(const Recurrence& recurrence, const RecurrenceInputs& in);

}  // namespace clnet::ops
