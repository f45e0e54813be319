// Random calls of recurrent layers and their single steps.
#include <fmt/format.h>

#include "tests/fuzz/generator.h"

namespace clnet::fuzz {

namespace {

/// x {T, N, I}, or {N, I} for a single step, of a few steps: a graph's size grows with them.
Ref sequence(Generator& g, bool single) {
  const auto x = g.any(
      [&](const Ref& ref) {
        const auto& s = g.shape_of(ref);
        return is_floating(g.dtype_of(ref)) && s.rank() == (single ? 2 : 3) && (single || (s[0] > 0 && s[0] <= 6));
      },
      [&] {
        const auto batch = g.extent(), input = g.sizes().integer(1, 9);
        return single ? g.leaf({batch, input}, g.float_dtype())
                      : g.leaf({g.sizes().integer(1, 6), batch, input}, g.float_dtype());
      });
  return g.tame(x, 4);
}

enum class Kind { rnn, lstm, gru };

bool add_recurrent(Generator& g, Kind kind, bool single) {
  const auto x = sequence(g, single);
  const auto& shape = g.shape_of(x);
  const auto dtype = g.dtype_of(x);
  const auto input = shape[-1], batch = shape[-2], hidden = static_cast<std::int64_t>(g.sizes().of({1, 2, 3, 5, 8, 17, 33}));
  const bool lstm = kind == Kind::lstm;
  const auto rows = (lstm ? 4 : kind == Kind::gru ? 3 : 1) * hidden;
  const bool projects = lstm && hidden > 1 && g.choose().chance(0.15), biased = g.choose().chance(0.6),
             stateful = g.choose().chance(0.6), reverse = !single && g.choose().chance(0.4),
             padded = !single && g.choose().chance(0.3), relu = kind == Kind::rnn && g.choose().chance(0.4);
  const auto out = projects ? (hidden + 1) / 2 : hidden;
  if (!g.fits(rows * std::max<std::int64_t>(input, hidden)) || !g.fits((single ? 1 : shape[0]) * batch * rows)) return false;
  const Range small{-0.5, 0.5};
  std::vector<Ref> inputs{x, g.leaf({rows, input}, dtype, small), g.leaf({rows, out}, dtype, small)};
  const auto next = [&](const Ref& ref) {
    inputs.push_back(ref);
    return inputs.size() - 1;
  };
  std::size_t bias_ih = 0, bias_hh = 0, hr = 0, h0 = 0, c0 = 0, lengths = 0;
  if (biased) bias_ih = next(g.leaf({rows}, dtype)), bias_hh = next(g.leaf({rows}, dtype));
  if (projects) hr = next(g.leaf({out, hidden}, dtype, small));
  if (stateful) h0 = next(g.leaf({batch, out}, dtype));
  if (stateful && lstm) c0 = next(g.leaf({batch, hidden}, dtype));
  if (padded)
    // Of a sequence without elements onnxruntime has a last state of zeros, and not the first one.
    lengths = next(g.leaf({batch}, g.choose().of({Dtype::i32, Dtype::i64}),
                          {g.is_plain() ? 1.0 : 0.0, static_cast<double>(shape[0])}, Fill::integers));
  const auto text = [](std::size_t at) { return at == 0 ? std::string("{}") : fmt::format("${}", at); };
  const auto weights = fmt::format("{{$1, $2, {}, {}, {}}}", text(bias_ih), text(bias_hh), text(hr));
  const auto states = lstm && single ? fmt::format("{{{}, {}}}", text(h0), text(c0))
                      : lstm         ? fmt::format("{}, {}", text(h0), text(c0))
                                     : text(h0);
  const auto name = fmt::format("{}_{}", lstm ? "lstm" : kind == Kind::gru ? "gru" : "rnn", single ? "cell" : "layer");
  auto code = fmt::format("{}($0, {}, {}{}", name, states, weights,
                          kind != Kind::rnn ? ""
                          : relu            ? ", Nonlinearity::relu"
                                            : ", Nonlinearity::tanh");
  if (!single) code += fmt::format(", {{{}, {}}}", reverse, text(lengths));
  code += ")";
  if (lstm)
    code = single ? fmt::format("[](LstmState r) {{ return std::vector{{r.h, r.c}}; }}({})", code)
                  : fmt::format("[](LstmResult r) {{ return std::vector{{r.output, r.h, r.c}}; }}({})", code);
  else
    code = single ? fmt::format("std::vector{{{}}}", code)
                  : fmt::format("[](RnnResult r) {{ return std::vector{{r.output, r.h}}; }}({})", code);
  g.add_all(
      name, code, inputs,
      [=](const Tensors& in) -> Tensors {
        const auto given = [&](std::size_t at) { return at == 0 ? Tensor{} : in[at]; };
        const RecurrentWeights w{in[1], in[2], given(bias_ih), given(bias_hh), given(hr)};
        const RecurrentOptions options{reverse, given(lengths)};
        const auto nonlinearity = relu ? Nonlinearity::relu : Nonlinearity::tanh;
        if (lstm && single) {
          const auto r = lstm_cell(in[0], {given(h0), given(c0)}, w);
          return {r.h, r.c};
        }
        if (lstm) {
          const auto r = lstm_layer(in[0], given(h0), given(c0), w, options);
          return {r.output, r.h, r.c};
        }
        if (single) return {kind == Kind::gru ? gru_cell(in[0], given(h0), w) : rnn_cell(in[0], given(h0), w, nonlinearity)};
        const auto r =
            kind == Kind::gru ? gru_layer(in[0], given(h0), w, options) : rnn_layer(in[0], given(h0), w, nonlinearity, options);
        return {r.output, r.h};
      },
      relu ? Range{-1000, 1000} : Range{-9, 9});
  return true;
}

}  // namespace

std::vector<Entry> recurrent_entries() {
  return {{"rnn_layer", 0.5, [](Generator& g) { return add_recurrent(g, Kind::rnn, false); }},
          {"lstm_layer", 0.7, [](Generator& g) { return add_recurrent(g, Kind::lstm, false); }},
          {"gru_layer", 0.6, [](Generator& g) { return add_recurrent(g, Kind::gru, false); }},
          {"rnn_cell", 0.3, [](Generator& g) { return add_recurrent(g, Kind::rnn, true); }},
          {"lstm_cell", 0.4, [](Generator& g) { return add_recurrent(g, Kind::lstm, true); }},
          {"gru_cell", 0.3, [](Generator& g) { return add_recurrent(g, Kind::gru, true); }}};
}

}  // namespace clnet::fuzz
