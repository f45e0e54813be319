#include "clnet/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>

#include "clnet/error.h"
#include "clnet/ops/random.h"
#include "clnet/ops/shape.h"
#include "lib/nn/layer.h"

namespace clnet::nn {

namespace {

std::optional<Parameter> none() { return std::nullopt; }

Tensor initial(const Shape& shape, std::int64_t hidden) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return init::uniform(shape, -bound, bound);
}

/// The extents of a layer's weights in gates times width.
void require_sizes(const char* name, std::int64_t gates, std::int64_t input, std::int64_t hidden) {
  require_positive(name, "input_size", input);
  require_positive(name, "hidden_size", hidden);
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (input > most || hidden > most / gates)
    throw Error(fmt::format("{}: input_size {} or hidden_size {} is too large", name, input, hidden));
}

Tensor with_batch(const Tensor& state) { return state.defined() ? unsqueeze(state, state.rank() - 1) : state; }

}  // namespace

RecurrentWeights Recurrent::Direction::weights() const {
  return {weight_ih, weight_hh, value_or_none(bias_ih), value_or_none(bias_hh), value_or_none(weight_hr)};
}

Recurrent::Recurrent(std::string name, std::int64_t gates, const Sizes& sizes, const RecurrentOptions& options)
    : name_(std::move(name)), gates_(gates), sizes_(sizes), options_(options) {
  const auto& o = options_;
  require_sizes(name_.c_str(), gates, sizes.input_size, sizes.hidden_size);
  require_positive(name_.c_str(), "num_layers", sizes.num_layers);
  if (!(o.dropout >= 0 && o.dropout <= 1)) throw Error(fmt::format("{}: dropout must be from 0 to 1, not {}", name_, o.dropout));
  if (o.proj_size != 0 && gates != 4) throw Error(fmt::format("{}: proj_size is for an LSTM only", name_));
  if (o.proj_size != 0 && (o.proj_size < 0 || o.proj_size >= sizes_.hidden_size))
    throw Error(fmt::format("{}: proj_size must be from 0 to hidden_size - 1, not {}", name_, o.proj_size));
  const auto out = o.proj_size > 0 ? o.proj_size : sizes_.hidden_size, rows = gates * sizes_.hidden_size,
             ways = std::int64_t{1} + o.bidirectional;
  for (std::int64_t layer = 0; layer < sizes_.num_layers; ++layer)
    for (std::int64_t way = 0; way < ways; ++way) {
      const auto suffix = fmt::format("_l{}{}", layer, way == 1 ? "_reverse" : "");
      const auto parameter = [&](const char* what, const Shape& shape) {
        return add_parameter(what + suffix, initial(shape, sizes_.hidden_size));
      };
      const auto ih = parameter("weight_ih", {rows, layer == 0 ? sizes_.input_size : out * ways}),
                 hh = parameter("weight_hh", {rows, out});
      const auto bias_ih = o.bias ? parameter("bias_ih", {rows}) : none(),
                 bias_hh = o.bias ? parameter("bias_hh", {rows}) : none();
      const auto hr = o.proj_size > 0 ? parameter("weight_hr", {out, sizes_.hidden_size}) : none();
      directions_.push_back({ih, hh, bias_ih, bias_hh, hr});
    }
}

LstmResult Recurrent::run(const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& lengths) const {
  if (!x.defined()) throw Error(fmt::format("{}: x is undefined", name_));
  const auto& o = options_;
  if (x.rank() == 2) {
    if (lengths.defined()) throw Error(fmt::format("{}: lengths need a batch, x is {}", name_, to_string(x.spec())));
    const auto result = run_batch(unsqueeze(x, 1), with_batch(h0), with_batch(c0), {}, false);
    return {squeeze(result.output, 1), squeeze(result.h, 1), result.c.defined() ? squeeze(result.c, 1) : Tensor{}};
  }
  return run_batch(x, h0, c0, lengths, o.batch_first);
}

LstmResult Recurrent::run_batch(const Tensor& x, const Tensor& h0, const Tensor& c0, const Tensor& lengths,
                                bool batch_first) const {
  const auto& o = options_;
  if (x.rank() != 3 || x.size(-1) != sizes_.input_size)
    throw ShapeError(fmt::format("{}: x must be {}, {}] or [T, {}], got {}", name_, batch_first ? "[N, T" : "[T, N",
                                 sizes_.input_size, sizes_.input_size, to_string(x.spec())));
  const auto count = static_cast<std::int64_t>(directions_.size()), ways = std::int64_t{1} + o.bidirectional,
             batch = x.size(batch_first ? 0 : 1);
  const auto part = [&](const char* what, const Tensor& states, std::size_t which) {
    if (!states.defined()) return Tensor{};
    const auto width = what[0] == 'h' && o.proj_size > 0 ? o.proj_size : sizes_.hidden_size;
    if (states.shape() != Shape{count, batch, width})
      throw ShapeError(fmt::format("{}: {} must have shape {} for x {}, got {}", name_, what,
                                   to_string(Shape{count, batch, width}), to_string(x.shape()), to_string(states.shape())));
    const auto first = static_cast<std::int64_t>(which);
    return reshape(slice(states, 0, first, first + 1), Shape{batch, width});
  };
  Tensor sequence = batch_first ? transpose(x, 0, 1) : x;
  std::vector<Tensor> h, c;
  for (std::size_t at = 0; at < directions_.size();) {
    if (at > 0 && o.dropout > 0 && training()) sequence = dropout(sequence, o.dropout);
    std::vector<Tensor> outputs;
    for (std::int64_t way = 0; way < ways; ++way, ++at) {
      const auto weights = directions_[at].weights();
      const clnet::RecurrentOptions options{way == 1, lengths};
      const Tensor first = part("h0", h0, at);
      if (gates_ == 4) {
        const auto result = lstm_layer(sequence, first, part("c0", c0, at), weights, options);
        outputs.push_back(result.output);
        h.push_back(result.h);
        c.push_back(result.c);
      } else {
        const auto result = gates_ == 3 ? gru_layer(sequence, first, weights, options)
                                        : rnn_layer(sequence, first, weights, o.nonlinearity, options);
        outputs.push_back(result.output);
        h.push_back(result.h);
      }
    }
    sequence = ways == 1 ? outputs[0] : concat(outputs, 2);
  }
  return {batch_first ? transpose(sequence, 0, 1) : sequence, stack(h), c.empty() ? Tensor{} : stack(c)};
}

std::string Recurrent::kind() const {
  const auto& o = options_;
  auto text = fmt::format("{}({}, {}", name_, sizes_.input_size, sizes_.hidden_size);
  if (o.proj_size > 0) text += fmt::format(", proj_size={}", o.proj_size);
  if (sizes_.num_layers > 1) text += fmt::format(", num_layers={}", sizes_.num_layers);
  if (!o.bias) text += ", bias=false";
  if (o.batch_first) text += ", batch_first=true";
  if (o.dropout > 0) text += fmt::format(", dropout={}", o.dropout);
  if (o.bidirectional) text += ", bidirectional=true";
  return text + ")";
}

RnnResult RNN::operator()(const Tensor& x, const Tensor& h0, const Tensor& lengths) const {
  const auto result = called(*this, [&](auto& self) { return self.run(x, h0, {}, lengths); });
  return {result.output, result.h};
}
RnnResult GRU::operator()(const Tensor& x, const Tensor& h0, const Tensor& lengths) const {
  const auto result = called(*this, [&](auto& self) { return self.run(x, h0, {}, lengths); });
  return {result.output, result.h};
}

RecurrentCell::RecurrentCell(std::string name, std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size, bool bias)
    : name_(std::move(name)),
      input_(input_size),
      hidden_(hidden_size),
      weight_ih_([&] {
        require_sizes(name_.c_str(), gates, input_size, hidden_size);
        return add_parameter("weight_ih", initial({gates * hidden_size, input_size}, hidden_size));
      }()),
      weight_hh_(add_parameter("weight_hh", initial({gates * hidden_size, hidden_size}, hidden_size))) {
  if (!bias) return;
  bias_ih_ = add_parameter("bias_ih", initial({gates * hidden_size}, hidden_size));
  bias_hh_ = add_parameter("bias_hh", initial({gates * hidden_size}, hidden_size));
}

RecurrentWeights RecurrentCell::weights() const {
  return {weight_ih_, weight_hh_, value_or_none(bias_ih_), value_or_none(bias_hh_), {}};
}
std::string RecurrentCell::kind() const {
  return fmt::format("{}({}, {}{})", name_, input_, hidden_, bias_ih_ ? "" : ", bias=false");
}

namespace {

bool lacks_batch(const Tensor& x) { return x.defined() && x.rank() == 1; }

}  // namespace

Tensor RNNCell::next(const Tensor& x, const Tensor& h) const {
  if (lacks_batch(x)) return squeeze(next(unsqueeze(x, 0), with_batch(h)), 0);
  return rnn_cell(x, h, weights(), nonlinearity_);
}
LstmState LSTMCell::next(const Tensor& x, const LstmState& state) const {
  if (!lacks_batch(x)) return lstm_cell(x, state, weights());
  const auto after = next(unsqueeze(x, 0), {with_batch(state.h), with_batch(state.c)});
  return {squeeze(after.h, 0), squeeze(after.c, 0)};
}
Tensor GRUCell::next(const Tensor& x, const Tensor& h) const {
  if (lacks_batch(x)) return squeeze(next(unsqueeze(x, 0), with_batch(h)), 0);
  return gru_cell(x, h, weights());
}

}  // namespace clnet::nn
