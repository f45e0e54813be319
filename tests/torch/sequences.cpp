// Recurrent networks and attention. Parameters are inputs of a case: those of a module stand in for them.
#include <algorithm>

#include "tests/torch/cases.h"

namespace clnet::torch {

namespace {

/// The module with the parameters that the case has under their names, dots being underscores there or not.
template <class M>
void load_parameters(const Given& in, M& module, Results& results) {
  io::StateDict state;
  for (const auto& [name, parameter] : module.parameters()) {
    auto key = name;
    std::replace(key.begin(), key.end(), '.', '_');
    const auto value = in[{key.c_str(), name.c_str()}];
    if (!value.defined()) throw Failed("there is no input " + key);
    state.emplace_back(name, value);
  }
  module.load_state_dict(state);
  for (const auto& [name, parameter] : module.parameters()) {
    auto key = name;
    std::replace(key.begin(), key.end(), '.', '_');
    results.stand_ins[key] = results.stand_ins[name] = parameter.value();
  }
}

const Names first_state{"h0", "hx", "h"}, first_cell{"c0", "cx", "c"};

Results rnn_case(const Given& in) {
  const auto kind = plain_name(in.text("kind", in.op));
  const bool is_relu = in.text("nonlinearity", kind == "rnnrelu" ? "relu" : "tanh") == "relu";
  const auto x = in[{"x", "input"}], weight = in["weight_hh_l0"];
  if (!x.defined() || !weight.defined()) throw Failed("there is no x or weight_hh_l0");
  // Nothing is dropped in what PyTorch computed; the biases are there or not.
  in.restated("bias");
  if (in.number("dropout", 0) != 0) throw Failed("dropout is random");
  const auto gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  const auto input_size = in.integer("input_size", x.size(-1)), hidden = in.integer("hidden_size", weight.size(0) / gates),
             layers = in.integer({"layers", "num_layers"}, 1);
  const nn::RecurrentOptions options{.nonlinearity = is_relu ? Nonlinearity::relu : Nonlinearity::tanh,
                                     .bias = in["bias_ih_l0"].defined(),
                                     .batch_first = in.flag("batch_first"),
                                     .bidirectional = in.flag("bidirectional"),
                                     .proj_size = in.integer("proj_size", 0)};
  Results results;
  if (kind == "lstm") {
    nn::LSTM layer(input_size, hidden, layers, options);
    load_parameters(in, layer, results);
    const auto result = layer(x, LstmState{in[first_state], in[first_cell]}, in["lengths"]);
    results.outputs = {{"y", result.output}, {"hn", result.h}, {"cn", result.c}};
    return results;
  }
  const auto run = [&](auto layer) {
    load_parameters(in, layer, results);
    const auto result = layer(x, in[first_state], in["lengths"]);
    results.outputs = {{"y", result.output}, {"hn", result.h}};
  };
  if (kind == "gru")
    run(nn::GRU(input_size, hidden, layers, options));
  else if (kind == "rnn" || kind == "rnntanh" || kind == "rnnrelu")
    run(nn::RNN(input_size, hidden, layers, options));
  else
    throw Failed("unknown kind " + in.text("kind", in.op));
  return results;
}

/// One step.
Results cell_case(const Given& in) {
  in.restated({"input_size", "hidden_size", "bias"});
  const auto x = in[{"x", "input"}], h = in[first_state], weight = in["weight_hh"];
  if (!x.defined() || !weight.defined()) throw Failed("there is no x or weight_hh");
  const auto kind = plain_name(in.text("kind", in.op));
  const auto features = x.size(-1), hidden = weight.size(-1);
  const bool bias = in["bias_ih"].defined();
  Results results;
  if (kind.ends_with("lstmcell") || kind == "lstm") {
    nn::LSTMCell cell(features, hidden, {.bias = bias});
    load_parameters(in, cell, results);
    const auto state = cell(x, LstmState{h, in[first_cell]});
    results.outputs = {{"c", state.c}, {"cn", state.c}, {"c1", state.c}, {"h", state.h}};
  } else if (kind.ends_with("grucell") || kind == "gru") {
    nn::GRUCell cell(features, hidden, {.bias = bias});
    load_parameters(in, cell, results);
    results.outputs["h"] = cell(x, h);
  } else {
    const bool is_relu = in.text("nonlinearity", "tanh") == "relu";
    nn::RNNCell cell(features, hidden, {.bias = bias, .nonlinearity = is_relu ? Nonlinearity::relu : Nonlinearity::tanh});
    load_parameters(in, cell, results);
    results.outputs["h"] = cell(x, h);
  }
  for (const char* name : {"y", "hn", "h1"}) results.outputs[name] = results.outputs["h"];
  return results;
}

Results attention_case(const Given& in) {
  // Stored as numbers, a mask may be one of yes and no; what it is, an attribute says.
  auto mask = in.mask({"mask", "attn_mask", "bias"});
  if (mask.defined() && is_floating(mask.dtype()) && !in.flag("additive_mask", true)) mask = greater(mask, 0.5);
  in.restated({"additive_mask", "enable_gqa"});
  AttentionOptions options{.mask = mask, .causal = in.flag({"causal", "is_causal"})};
  if (const auto scale = in.text("scale", "1/sqrt(d)"); scale != "1/sqrt(d)") options.scale = in.number("scale", 1);
  if (in.number({"dropout_p", "dropout"}, 0) != 0) throw Failed("dropout is random");
  return y(scaled_dot_product_attention(in[{"q", "query"}], in[{"k", "key"}], in[{"v", "value"}], options));
}

nn::TransformerLayerOptions layer_options(const Given& in) {
  const auto activation = in.text("activation", "relu");
  if (activation != "relu" && activation != "gelu") throw Failed("unknown activation " + activation);
  if (in.number("dropout", 0) != 0) throw Failed("dropout is random");
  return {.dim_feedforward = in.integer({"ff", "dim_feedforward"}, 2048),
          .dropout = 0,
          .activation = activation == "gelu" ? nn::TransformerActivation::gelu : nn::TransformerActivation::relu,
          .layer_norm_eps = in.number({"eps", "layer_norm_eps"}, 1e-5),
          .batch_first = in.flag("batch_first"),
          .norm_first = in.flag("norm_first"),
          .bias = in.flag("bias", true)};
}

nn::AttentionMasks masks(const Given& in, const Names& attention, const Names& padding, const Names& causal) {
  in.restated("additive_mask");
  return {.attn_mask = in.mask(attention), .key_padding_mask = in.mask(padding), .is_causal = in.flag(causal)};
}

const Names source_mask{"mask", "attn_mask", "src_mask"}, source_padding{"src_key_padding_mask", "key_padding_mask"};
const Names target_mask{"tgt_mask", "mask", "attn_mask"}, target_padding{"tgt_key_padding_mask", "key_padding_mask"};
const Names causal{"causal", "is_causal", "src_is_causal", "tgt_is_causal"};
const Names source_sequence{"x", "src", "input"}, target_sequence{"x", "tgt", "target"};

std::int64_t width(const Given& in, const Names& x) { return in.integer({"d_model", "embed_dim"}, in[x].size(-1)); }
std::int64_t heads(const Given& in) { return in.integer({"heads", "nhead", "num_heads"}, 1); }

template <class Layer>
Results encode(const Given& in, Layer layer) {
  Results results;
  load_parameters(in, layer, results);
  results.outputs["y"] = layer(in[source_sequence], masks(in, source_mask, source_padding, causal));
  return results;
}

template <class Layer>
Results decode(const Given& in, Layer layer) {
  Results results;
  load_parameters(in, layer, results);
  results.outputs["y"] = layer(in[target_sequence], in["memory"], masks(in, target_mask, target_padding, causal),
                               masks(in, "memory_mask", "memory_key_padding_mask", "memory_is_causal"));
  return results;
}

Results multihead_attention_case(const Given& in) {
  in.restated({"bias", "kdim", "vdim", "need_weights"});
  const auto query = in[{"x", "q", "query"}];
  const auto key = in[{"k", "key"}].defined() ? in[{"k", "key"}] : query;
  const auto value = in[{"v", "value"}].defined() ? in[{"v", "value"}] : key;
  nn::MultiheadAttention layer(width(in, {"x", "q", "query"}), heads(in),
                               {.bias = in["in_proj_bias"].defined(),
                                .add_bias_kv = in.flag("add_bias_kv"),
                                .add_zero_attn = in.flag("add_zero_attn"),
                                .kdim = key.size(-1),
                                .vdim = value.size(-1),
                                .batch_first = in.flag("batch_first")});
  if (in.number("dropout", 0) != 0) throw Failed("dropout is random");
  Results results;
  load_parameters(in, layer, results);
  const auto masked = masks(in, {"mask", "attn_mask"}, "key_padding_mask", {"causal", "is_causal"});
  const bool average = in.flag({"average_attn_weights", "average_weights"}, true);
  for (const char* name : {"weights", "attn_weights", "w", "attn"})
    if (in.outputs.contains(name)) {
      const auto both = layer.forward_with_weights(query, key, value, masked, average);
      results.outputs = {{"y", both.y}, {name, both.weights}};
      return results;
    }
  results.outputs["y"] = layer(query, key, value, masked);
  return results;
}

Results transformer_case(const Given& in) {
  nn::Transformer model(width(in, {"src", "source", "x"}), heads(in), in.integer("num_encoder_layers", 1),
                        in.integer("num_decoder_layers", 1), layer_options(in));
  Results results;
  load_parameters(in, model, results);
  results.outputs["y"] = model(in[{"src", "source", "x"}], in[{"tgt", "target"}],
                               {.source = masks(in, "src_mask", "src_key_padding_mask", "src_is_causal"),
                                .target = masks(in, "tgt_mask", "tgt_key_padding_mask", "tgt_is_causal"),
                                .memory = masks(in, "memory_mask", "memory_key_padding_mask", "memory_is_causal")});
  return results;
}

}  // namespace

void add_sequences(Operations& operations) {
  for (const char* name : {"rnn", "lstm", "gru", "rnn_tanh", "rnn_relu"}) operations[name] = rnn_case;
  for (const char* name : {"rnn_cell", "lstm_cell", "gru_cell"}) operations[name] = cell_case;
  operations["sdpa"] = operations["scaled_dot_product_attention"] = attention_case;
  operations["transformer_encoder_layer"] = [](const Given& in) {
    return encode(in, nn::TransformerEncoderLayer(width(in, source_sequence), heads(in), layer_options(in)));
  };
  operations["transformer_decoder_layer"] = [](const Given& in) {
    return decode(in, nn::TransformerDecoderLayer(width(in, target_sequence), heads(in), layer_options(in)));
  };
  operations["transformer_encoder"] = [](const Given& in) {
    const auto layers = in.integer({"layers", "num_layers"}, 1);
    return encode(in, nn::TransformerEncoder(width(in, source_sequence), heads(in), layers, layer_options(in),
                                             in[{"norm_weight", "norm.weight"}].defined()));
  };
  operations["transformer_decoder"] = [](const Given& in) {
    const auto layers = in.integer({"layers", "num_layers"}, 1);
    return decode(in, nn::TransformerDecoder(width(in, target_sequence), heads(in), layers, layer_options(in),
                                             in[{"norm_weight", "norm.weight"}].defined()));
  };
  operations["transformer"] = transformer_case;
  operations["multihead_attention"] = operations["mha"] = multihead_attention_case;
}

}  // namespace clnet::torch
